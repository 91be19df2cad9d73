//! What the API servers do when a step is run.

use std::collections::BTreeMap;

use hangar_api::contract::Contract;
use hangar_api::reference::ContractVersionedObjectReference;
use hangar_plan::flow::Outcome;
use hangar_plan::referred::{Claim, Referred};
use hangar_plan::{cluster, machine, machine_deployment, machine_set};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Resource;
use serde_json::{Value, json};

use super::{Act, Memory, Name};

impl Memory {
    pub(super) fn act(&mut self, act: &Act) -> Outcome {
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

fn add_all(live: &mut ObjectMeta, wanted: &ObjectMeta) {
    live.labels.get_or_insert_default().extend(wanted.labels.clone().unwrap_or_default());
    live.annotations.get_or_insert_default().extend(wanted.annotations.clone().unwrap_or_default());
}
