//! A cluster in memory: objects, providers that do their work between passes, Nodes.
//!
//! All four planners run over it as one. Objects get uids from their name and how often it was used, so that a planner
//! that missed an answer still speaks of the same objects. Statuses follow between passes, together with what providers
//! do, until nothing moves any more: they are functions of what is seen, so a crash before one loses nothing.

use std::collections::BTreeMap;

use hangar_api::cluster::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet};
use hangar_api::contract::Contract;
use hangar_api::reference::ContractVersionedObjectReference;
use hangar_plan::flow::crash::World;
use hangar_plan::flow::{Frontier, Outcome, Read, Step, StepId};
use hangar_plan::machine::{NodeFacts, NodeView};
use hangar_plan::referred::{Claim, Referred};
use hangar_plan::{cluster, machine, machine_deployment, machine_set};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Resource;
use serde_json::{Value, json};

type Name = String;

#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) clusters: BTreeMap<Name, Cluster>,
    pub(crate) deployments: BTreeMap<Name, MachineDeployment>,
    pub(crate) sets: BTreeMap<Name, MachineSet>,
    pub(crate) machines: BTreeMap<Name, Machine>,
    /// By kind and name.
    pub(crate) foreign: BTreeMap<(String, Name), Referred>,
    pub(crate) nodes: BTreeMap<Name, NodeFacts>,
    incarnations: BTreeMap<String, u32>,
    seconds: i64,
    /// The most Machines that ever existed.
    pub(crate) most: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum Act {
    Cluster(Name, cluster::Step),
    Deployment(Name, machine_deployment::Step),
    Set(Name, machine_set::Step),
    Machine(Name, machine::Step),
    Status(&'static str, Name, Box<Value>),
    KeepSet(Box<MachineSet>),
    KeepMachine(Box<Machine>),
}

impl Step for Act {
    fn id(&self) -> StepId {
        let of = |name: &Name, id: StepId| StepId::new(id.verb, id.kind, format!("{name}/{}", id.name));
        match self {
            Self::Cluster(name, step) => of(name, step.id()),
            Self::Deployment(name, step) => of(name, step.id()),
            Self::Set(name, step) => of(name, step.id()),
            Self::Machine(name, step) => of(name, step.id()),
            Self::Status(kind, name, _) => StepId::new("status", kind, name),
            Self::KeepSet(set) => StepId::new("keep", "set", set.metadata.name.clone().unwrap()),
            Self::KeepMachine(one) => StepId::new("keep", "machine", one.metadata.name.clone().unwrap()),
        }
    }
}

impl Memory {
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + self.seconds).unwrap()
    }

    /// What the API server adds to a new object.
    pub(crate) fn born(&mut self, kind: &str, metadata: &mut ObjectMeta) {
        let name = metadata.name.clone().unwrap();
        let count = self.incarnations.entry(format!("{kind}/{name}")).or_default();
        *count += 1;
        metadata.uid = Some(format!("{kind}/{name}/{count}"));
        metadata.generation = Some(1);
        metadata.namespace = Some("team".to_owned());
        metadata.creation_timestamp = Some(Time(self.now()));
    }

    pub(crate) fn add_foreign(&mut self, kind: &str, name: &str, contract: Contract, data: Value) {
        let mut metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        self.born(kind, &mut metadata);
        self.foreign.insert((kind.to_owned(), name.to_owned()), Referred { metadata, data, contract });
    }

    fn refer(&self, reference: &ContractVersionedObjectReference) -> Read<Referred> {
        let found = self.foreign.get(&(reference.kind.clone(), reference.name.clone()));
        found.cloned().map_or(Read::Absent, Read::One)
    }

    fn see_cluster(&self, cluster: &Cluster) -> cluster::Observed {
        cluster::Observed {
            infrastructure: cluster.spec.infrastructure_ref.as_ref().map(|one| self.refer(one)),
            control_plane: cluster.spec.control_plane_ref.as_ref().map(|one| self.refer(one)),
            deployments: Read::found(self.deployments.values().cloned()),
            sets: Read::found(self.sets.values().cloned()),
            machines: Read::found(self.machines.values().cloned()),
            connection: cluster::Connection::Answering,
            refusals: BTreeMap::new(),
            now: self.now(),
            cluster: cluster.clone(),
        }
    }

    fn cluster_of(&self, name: &str) -> Read<Cluster> {
        self.clusters.get(name).cloned().map_or(Read::Absent, Read::One)
    }

    fn see_deployment(&self, deployment: &MachineDeployment) -> machine_deployment::Observed {
        machine_deployment::Observed {
            cluster: self.cluster_of(&deployment.spec.cluster_name),
            sets: Read::found(self.sets.values().cloned()),
            machines: Read::found(self.machines.values().cloned()),
            refusals: BTreeMap::new(),
            now: self.now(),
            deployment: deployment.clone(),
        }
    }

    fn owner<'a, K: Resource>(all: &'a BTreeMap<Name, K>, metadata: &ObjectMeta) -> Option<&'a K> {
        let owner = hangar_plan::referred::controller(metadata)?;
        all.get(&owner.name).filter(|found| found.meta().uid.as_ref() == Some(&owner.uid))
    }

    fn see_set(&self, set: &MachineSet) -> machine_set::Observed {
        let spec = &set.spec.template.spec;
        let template = |one: &ContractVersionedObjectReference| {
            self.refer(one).map(|found| machine_set::Template {
                api_version: format!("{}/v1", one.api_group),
                metadata: found.metadata,
                data: found.data,
            })
        };
        let mut observed = machine_set::Observed {
            cluster: self.cluster_of(&set.spec.cluster_name),
            deployment: Self::owner(&self.deployments, &set.metadata).cloned(),
            machines: Read::found(self.machines.values().cloned()),
            bootstrap_template: spec.bootstrap.config_ref.as_ref().map(template),
            infrastructure_template: template(&spec.infrastructure_ref),
            clones: BTreeMap::new(),
            refusals: BTreeMap::new(),
            now: self.now(),
            set: set.clone(),
        };
        let exists = |one| self.refer(one).map(|_| ());
        let clones: BTreeMap<Name, machine_set::Clones> = observed
            .members()
            .into_iter()
            .map(|one| {
                let bootstrap = one.spec.bootstrap.config_ref.as_ref().map(exists);
                let infrastructure = exists(&one.spec.infrastructure_ref);
                (one.metadata.name.clone().unwrap(), machine_set::Clones { bootstrap, infrastructure })
            })
            .collect();
        observed.clones = clones;
        observed
    }

    fn see_machine(&self, one: &Machine) -> machine::Observed {
        let cluster = self.cluster_of(&one.spec.cluster_name);
        let control_plane = cluster
            .iter()
            .next()
            .and_then(|one| one.spec.control_plane_ref.as_ref())
            .map(|one| self.refer(one));
        let set = Self::owner(&self.sets, &one.metadata).cloned();
        let mut observed = machine::Observed {
            bootstrap: one.spec.bootstrap.config_ref.as_ref().map(|one| self.refer(one)),
            infrastructure: self.refer(&one.spec.infrastructure_ref),
            control_plane,
            has_control_plane_machines: false,
            deployment: set.as_ref().and_then(|set| Self::owner(&self.deployments, &set.metadata)).cloned(),
            set,
            cluster,
            node: NodeView::NotLooked,
            pods: Read::unknown("not asked"),
            refusals: BTreeMap::new(),
            now: self.now(),
            machine: one.clone(),
        };
        let get = |name: &str| {
            self.nodes.get(name).map_or(NodeView::Absent, |node| NodeView::Found(Box::new(node.clone())))
        };
        match machine::look(&observed) {
            machine::Look::Nothing => {}
            machine::Look::FindNode { provider_id } => {
                let found = self
                    .nodes
                    .values()
                    .find(|node| machine::node::is_same_server(&node.provider_id, &provider_id));
                observed.node =
                    found.map_or(NodeView::Absent, |node| NodeView::Found(Box::new(node.clone())));
            }
            machine::Look::Node { name } => observed.node = get(&name),
            machine::Look::NodeAndPods { name } => {
                observed.node = get(&name);
                observed.pods = Read::Absent;
            }
        }
        observed
    }

    fn planned(&self) -> Frontier<Act> {
        let mut acts = Vec::new();
        let differs = |before: &Value, after: &Value| before != after;
        let status = |kind, name: &Name, before: Value, after: Value| {
            differs(&before, &after).then(|| Act::Status(kind, name.clone(), Box::new(after)))
        };
        let json = |value: &dyn erased::Any| value.json();
        for (name, one) in &self.clusters {
            let plan = cluster::plan(&self.see_cluster(one));
            acts.extend(plan.steps.iter().cloned().map(|step| Act::Cluster(name.clone(), step)));
            acts.extend(status("cluster", name, json(&one.status), json(&Some(plan.status))));
        }
        for (name, one) in &self.deployments {
            let plan = machine_deployment::plan(&self.see_deployment(one));
            acts.extend(plan.steps.iter().cloned().map(|step| Act::Deployment(name.clone(), step)));
            for set in plan.objects {
                let live = &self.sets[set.metadata.name.as_ref().unwrap()];
                let is_same = live.spec == set.spec && has_all(&live.metadata, &set.metadata);
                acts.extend((!is_same).then(|| Act::KeepSet(Box::new(set))));
            }
            acts.extend(status("deployment", name, json(&one.status), json(&Some(plan.status))));
        }
        for (name, one) in &self.sets {
            let plan = machine_set::plan(&self.see_set(one));
            acts.extend(plan.steps.iter().cloned().map(|step| Act::Set(name.clone(), step)));
            for machine in plan.objects {
                let live = &self.machines[machine.metadata.name.as_ref().unwrap()];
                let is_same = has_all(&live.metadata, &machine.metadata);
                acts.extend((!is_same).then(|| Act::KeepMachine(Box::new(machine))));
            }
            acts.extend(status("set", name, json(&one.status), json(&Some(plan.status))));
        }
        for (name, one) in &self.machines {
            let plan = machine::plan(&self.see_machine(one));
            acts.extend(plan.steps.iter().cloned().map(|step| Act::Machine(name.clone(), step)));
            acts.extend(status("machine", name, json(&one.status), json(&Some(plan.status))));
        }
        acts.into_iter().collect()
    }

    fn act(&mut self, act: &Act) -> Outcome {
        match act.clone() {
            Act::Cluster(name, step) => self.act_cluster(&name, step),
            Act::Deployment(name, step) => self.act_deployment(&name, step),
            Act::Set(name, step) => self.act_set(&name, step),
            Act::Machine(name, step) => self.act_machine(&name, step),
            Act::Status(kind, name, status) => {
                let status = *status;
                match kind {
                    "cluster" => write(&mut self.clusters, &name, |one| one.status = read(status)),
                    "deployment" => write(&mut self.deployments, &name, |one| one.status = read(status)),
                    "set" => write(&mut self.sets, &name, |one| one.status = read(status)),
                    _ => write(&mut self.machines, &name, |one| one.status = read(status)),
                }
            }
            Act::KeepSet(set) => {
                let name = set.metadata.name.clone().unwrap();
                write(&mut self.sets, &name, |one| {
                    one.spec.clone_from(&set.spec);
                    one.metadata.generation = one.metadata.generation.map(|number| number + 1);
                    add_all(&mut one.metadata, &set.metadata);
                })
            }
            Act::KeepMachine(kept) => {
                let name = kept.metadata.name.clone().unwrap();
                write(&mut self.machines, &name, |one| add_all(&mut one.metadata, &kept.metadata))
            }
        }
    }

    fn act_cluster(&mut self, name: &Name, step: cluster::Step) -> Outcome {
        use cluster::{Part, Step, Worker};
        let Some(one) = self.clusters.get(name).cloned() else { return Outcome::Lost };
        let reference = |part| match part {
            Part::Infrastructure => one.spec.infrastructure_ref.clone().unwrap(),
            Part::ControlPlane => one.spec.control_plane_ref.clone().unwrap(),
        };
        match step {
            Step::AddFinalizer => finalize(&mut self.clusters, name, "cluster.cluster.x-k8s.io"),
            Step::RemoveFinalizer => release(&mut self.clusters, name),
            Step::Claim { part, claim } => self.claim_foreign(&reference(part), claim),
            Step::DeletePart { part, uid } => self.delete_foreign(&reference(part), &uid),
            Step::SetEndpoint(endpoint) => write(&mut self.clusters, name, |one| {
                one.spec.control_plane_endpoint = read(json!({"host": endpoint.host, "port": endpoint.port}));
            }),
            Step::DeleteWorker { kind, name, uid } => {
                let at = Time(self.now());
                match kind {
                    Worker::MachineDeployment => delete(&mut self.deployments, &name, &uid, at),
                    Worker::MachineSet => delete(&mut self.sets, &name, &uid, at),
                    Worker::Machine => delete(&mut self.machines, &name, &uid, at),
                }
            }
        }
    }

    fn act_deployment(&mut self, name: &Name, step: machine_deployment::Step) -> Outcome {
        use machine_deployment::Step;
        match step {
            Step::AddFinalizer => finalize(&mut self.deployments, name, "cluster.x-k8s.io/machinedeployment"),
            Step::RemoveFinalizer => release(&mut self.deployments, name),
            Step::ClaimItself(claim) => {
                write(&mut self.deployments, name, |one| claimed(&mut one.metadata, claim))
            }
            Step::Adopt { name, claim, .. } => {
                write(&mut self.sets, &name, |one| claimed(&mut one.metadata, claim))
            }
            Step::CreateSet(set) => {
                let mut set = *set;
                let name = set.metadata.name.clone().unwrap();
                if self.sets.contains_key(&name) {
                    return Outcome::Lost;
                }
                self.born("MachineSet", &mut set.metadata);
                let mark = machine_deployment::APPLIED_MARK.to_owned();
                set.metadata.annotations.get_or_insert_default().insert(mark, String::new());
                self.sets.insert(name.clone(), set);
                Outcome::Created(name)
            }
            Step::Scale { name, replicas, .. } => write(&mut self.sets, &name, |one| {
                one.spec.replicas = Some(replicas);
                one.metadata.generation = one.metadata.generation.map(|number| number + 1);
            }),
            Step::SetRevision(revision) => write(&mut self.deployments, name, |one| {
                let name = hangar_api::names::REVISION_ANNOTATION.to_owned();
                one.metadata.annotations.get_or_insert_default().insert(name, revision);
            }),
            Step::DeleteSet { name, uid } => {
                let at = Time(self.now());
                delete(&mut self.sets, &name, &uid, at)
            }
        }
    }

    fn act_set(&mut self, name: &Name, step: machine_set::Step) -> Outcome {
        use machine_set::Step;
        match step {
            Step::AddFinalizer => finalize(&mut self.sets, name, "cluster.x-k8s.io/machineset"),
            Step::RemoveFinalizer => release(&mut self.sets, name),
            Step::ClaimItself(claim) => write(&mut self.sets, name, |one| claimed(&mut one.metadata, claim)),
            Step::OwnTemplate { reference, claim, .. } => self.claim_foreign(&reference, claim),
            Step::Adopt { name, claim, .. } => {
                write(&mut self.machines, &name, |one| claimed(&mut one.metadata, claim))
            }
            Step::CreateMachine(machine) => {
                let mut machine = *machine;
                let name = machine.metadata.name.clone().unwrap();
                // A name that exists is refused: that is what names from slots are for.
                if self.machines.contains_key(&name) {
                    return Outcome::Done;
                }
                self.born("Machine", &mut machine.metadata);
                self.machines.insert(name.clone(), machine);
                self.most = self.most.max(self.machines.len());
                Outcome::Created(name)
            }
            Step::CreateClone(object) => {
                let kind = object.types.clone().unwrap().kind;
                let name = object.metadata.name.clone().unwrap();
                if self.foreign.contains_key(&(kind.clone(), name.clone())) {
                    return Outcome::Done;
                }
                let mut metadata = object.metadata.clone();
                self.born(&kind, &mut metadata);
                let referred = Referred { metadata, data: object.data.clone(), contract: Contract::V1Beta2 };
                self.foreign.insert((kind, name.clone()), referred);
                Outcome::Created(name)
            }
            Step::DeleteMachine { name, uid } => {
                let at = Time(self.now());
                delete(&mut self.machines, &name, &uid, at)
            }
        }
    }

    fn act_machine(&mut self, name: &Name, step: machine::Step) -> Outcome {
        use machine::{Part, Step};
        let Some(one) = self.machines.get(name).cloned() else { return Outcome::Lost };
        let reference = |part| match part {
            Part::Bootstrap => one.spec.bootstrap.config_ref.clone().unwrap(),
            Part::Infrastructure => one.spec.infrastructure_ref.clone(),
        };
        match step {
            Step::AddFinalizer => finalize(&mut self.machines, name, "machine.cluster.x-k8s.io"),
            Step::RemoveFinalizer => release(&mut self.machines, name),
            Step::ClaimItself(claim) => {
                write(&mut self.machines, name, |one| claimed(&mut one.metadata, claim))
            }
            Step::Claim { part, claim } => self.claim_foreign(&reference(part), claim),
            Step::DeletePart { part, uid } => self.delete_foreign(&reference(part), &uid),
            Step::Note { data_secret_name, provider_id, failure_domain } => {
                write(&mut self.machines, name, |one| {
                    let spec = &mut one.spec;
                    spec.bootstrap.data_secret_name =
                        data_secret_name.or(spec.bootstrap.data_secret_name.take());
                    spec.provider_id = provider_id.or(spec.provider_id.take());
                    spec.failure_domain = failure_domain.or(spec.failure_domain.take());
                })
            }
            Step::PatchNode { name, patch } => {
                let Some(node) = self.nodes.get_mut(&name) else { return Outcome::Lost };
                node.labels.extend(patch.labels.into_iter().filter_map(|(key, value)| Some((key, value?))));
                let annotations = patch.annotations.into_iter();
                node.annotations.extend(annotations.filter_map(|(key, value)| Some((key, value?))));
                node.taints = patch.taints.unwrap_or(std::mem::take(&mut node.taints));
                Outcome::Done
            }
            Step::Cordon { name } => {
                let Some(node) = self.nodes.get_mut(&name) else { return Outcome::Lost };
                node.is_cordoned = true;
                Outcome::Done
            }
            Step::Evict { .. } => Outcome::Done,
            Step::DeleteNode { name } => {
                self.nodes.remove(&name);
                Outcome::Done
            }
        }
    }

    fn claim_foreign(&mut self, reference: &ContractVersionedObjectReference, claim: Claim) -> Outcome {
        let key = (reference.kind.clone(), reference.name.clone());
        let Some(object) = self.foreign.get_mut(&key) else { return Outcome::Lost };
        claimed(&mut object.metadata, claim);
        Outcome::Done
    }

    fn delete_foreign(&mut self, reference: &ContractVersionedObjectReference, uid: &str) -> Outcome {
        let key = (reference.kind.clone(), reference.name.clone());
        let at = Time(self.now());
        match self.foreign.get_mut(&key) {
            Some(object) if object.uid() == uid => {
                object.metadata.deletion_timestamp.get_or_insert(at);
                Outcome::Done
            }
            _ => Outcome::Lost,
        }
    }

    /// What providers and kubelets do.
    fn provide(&mut self) {
        let going: Vec<(String, Name)> = self
            .foreign
            .iter()
            .filter(|(_, object)| object.is_terminating())
            .map(|(key, _)| key.clone())
            .collect();
        for key in going {
            self.foreign.remove(&key);
        }
        let has_owner = |object: &Referred| object.metadata.owner_references.is_some();
        let mut servers = Vec::new();
        for ((kind, name), object) in self.foreign.iter_mut().filter(|(_, object)| has_owner(object)) {
            match kind.as_str() {
                "StubCluster" => object.data["status"] = json!({"ready": true}),
                "StubPlane" => {
                    object.data["spec"]["controlPlaneEndpoint"] = json!({"host": "api", "port": 6443});
                    object.data["status"] = json!({"externalManagedControlPlane": true,
                        "initialization": {"controlPlaneInitialized": true},
                        "conditions": [{"type": "Available", "status": "True", "reason": "Serving"}]});
                }
                "StubConfig" => {
                    object.data["status"] = json!({"dataSecretName": name,
                        "initialization": {"dataSecretCreated": true}});
                }
                "StubMachine" => {
                    let id = format!("stub:///{}", object.uid().replace('/', "-"));
                    object.data["spec"]["providerID"] = json!(id);
                    object.data["status"] = json!({"initialization": {"provisioned": true}});
                    servers.push((name.clone(), id));
                }
                _ => {}
            }
        }
        for (name, provider_id) in servers {
            let taint = Taint {
                key: hangar_api::names::UNINITIALIZED_TAINT.to_owned(),
                effect: "NoSchedule".to_owned(),
                ..Taint::default()
            };
            let conditions =
                BTreeMap::from([("Ready".to_owned(), ("True".to_owned(), String::new(), String::new()))]);
            self.nodes.entry(name.clone()).or_insert(NodeFacts {
                name,
                provider_id,
                taints: vec![taint],
                conditions,
                ..NodeFacts::default()
            });
        }
    }
}

impl World for Memory {
    type Observation = Self;
    type Step = Act;
    type EndState = Vec<String>;

    fn observe(&self) -> Self {
        self.clone()
    }

    fn plan(&self, observation: &Self) -> Frontier<Act> {
        observation.planned().iter().filter(|act| !matches!(act, Act::Status(..))).cloned().collect()
    }

    fn run(&mut self, act: &Act) -> Outcome {
        self.act(act)
    }

    fn fold(&self, observation: &mut Self, act: &Act, outcome: &Outcome) {
        if outcome.is_success() {
            observation.act(act);
        }
    }

    fn settle(&mut self) {
        self.seconds += 1;
        loop {
            self.provide();
            let news: Vec<Act> =
                self.planned().iter().filter(|act| matches!(act, Act::Status(..))).cloned().collect();
            if news.is_empty() {
                return;
            }
            for act in &news {
                self.act(act);
            }
        }
    }

    fn end_state(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (name, one) in &self.clusters {
            let status = one.status.clone().unwrap_or_default();
            lines.push(format!("Cluster {name} {:?} {:?}", status.phase, one.spec.control_plane_endpoint));
        }
        for (name, one) in &self.deployments {
            let status = one.status.clone().unwrap_or_default();
            lines.push(format!(
                "MachineDeployment {name} {:?} {:?}",
                status.replicas, status.available_replicas
            ));
        }
        for (name, one) in &self.sets {
            lines.push(format!("MachineSet {name} {:?}", one.spec.replicas));
        }
        for (name, one) in &self.machines {
            let status = one.status.clone().unwrap_or_default();
            let node = status.node_ref.map(|node| node.name);
            lines.push(format!("Machine {name} {:?} {node:?} {:?}", status.phase, one.spec.version));
        }
        lines.extend(self.foreign.keys().map(|(kind, name)| format!("{kind} {name}")));
        lines.extend(
            self.nodes
                .values()
                .map(|node| format!("Node {} {:?} {}", node.name, node.labels, node.taints.len())),
        );
        lines
    }
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn write<K>(all: &mut BTreeMap<Name, K>, name: &Name, change: impl FnOnce(&mut K)) -> Outcome {
    match all.get_mut(name) {
        Some(one) => {
            change(one);
            Outcome::Done
        }
        None => Outcome::Lost,
    }
}

fn finalize<K: Resource>(all: &mut BTreeMap<Name, K>, name: &Name, finalizer: &str) -> Outcome {
    write(all, name, |one| {
        let finalizers = one.meta_mut().finalizers.get_or_insert_default();
        if !finalizers.iter().any(|present| present == finalizer) {
            finalizers.push(finalizer.to_owned());
        }
    })
}

fn release<K: Resource>(all: &mut BTreeMap<Name, K>, name: &Name) -> Outcome {
    assert!(all[name].meta().deletion_timestamp.is_some(), "{name} is not being deleted");
    all.remove(name);
    Outcome::Done
}

fn delete<K: Resource>(all: &mut BTreeMap<Name, K>, name: &Name, uid: &str, at: Time) -> Outcome {
    match all.get_mut(name) {
        Some(one) if one.meta().uid.as_deref() == Some(uid) => {
            one.meta_mut().deletion_timestamp.get_or_insert(at);
            if one.meta().finalizers.as_ref().is_none_or(Vec::is_empty) {
                all.remove(name);
            }
            Outcome::Done
        }
        _ => Outcome::Lost,
    }
}

fn claimed(metadata: &mut ObjectMeta, claim: Claim) {
    metadata.owner_references = Some(claim.owner_references);
    metadata.labels.get_or_insert_default().extend(claim.labels);
}

fn has_all(live: &ObjectMeta, wanted: &ObjectMeta) -> bool {
    let contains = |live: &Option<BTreeMap<String, String>>, wanted: &Option<BTreeMap<String, String>>| {
        wanted
            .iter()
            .flatten()
            .all(|(name, value)| live.as_ref().and_then(|live| live.get(name)) == Some(value))
    };
    contains(&live.labels, &wanted.labels) && contains(&live.annotations, &wanted.annotations)
}

fn add_all(live: &mut ObjectMeta, wanted: &ObjectMeta) {
    live.labels.get_or_insert_default().extend(wanted.labels.clone().unwrap_or_default());
    live.annotations.get_or_insert_default().extend(wanted.annotations.clone().unwrap_or_default());
}

/// Statuses of four types, as JSON.
mod erased {
    pub(super) trait Any {
        fn json(&self) -> serde_json::Value;
    }

    impl<T: serde::Serialize> Any for T {
        fn json(&self) -> serde_json::Value {
            serde_json::to_value(self).unwrap()
        }
    }
}
