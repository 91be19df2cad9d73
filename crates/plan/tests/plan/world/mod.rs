//! A cluster in memory: objects, providers that do their work between passes, Nodes.
//!
//! All four planners run over it as one. Objects get uids from their name and how often it was used, so that a planner
//! that missed an answer still speaks of the same objects. Statuses follow between passes, together with what providers
//! do, until nothing moves any more: they are functions of what is seen, so a crash before one loses nothing.

mod act;
mod provide;
mod see;

use std::collections::BTreeMap;

use hangar_api::cluster::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet};
use hangar_api::contract::Contract;
use hangar_plan::flow::crash::World;
use hangar_plan::flow::{Frontier, Outcome, Step, StepId};
use hangar_plan::machine::NodeFacts;
use hangar_plan::referred::Referred;
use hangar_plan::{cluster, machine, machine_deployment, machine_set};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde_json::Value;

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

fn has_all(live: &ObjectMeta, wanted: &ObjectMeta) -> bool {
    let contains = |live: &Option<BTreeMap<String, String>>, wanted: &Option<BTreeMap<String, String>>| {
        wanted
            .iter()
            .flatten()
            .all(|(name, value)| live.as_ref().and_then(|live| live.get(name)) == Some(value))
    };
    contains(&live.labels, &wanted.labels) && contains(&live.annotations, &wanted.annotations)
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
