//! The calls, and what each does to the observation.

use std::collections::BTreeMap;

use hangar_api::conditions::Actor;
use hangar_api::infrastructure::v1beta1::ResolvedPort;
use hangar_api::names::OPENSTACK_MACHINE_FINALIZER;
use serde_json::Value;

use super::{CloudFacts, Observed, UserData};
use crate::flow::{Outcome, Read, Step as FlowStep, StepId};
use crate::openstack::{CloudTrouble, OWNER_ID_ANNOTATION, Port, Server};

/// One call.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Puts the owner id and the finalizer on the object.
    Claim {
        /// The id.
        owner_id: String,
    },
    /// Makes a port.
    CreatePort(Box<ResolvedPort>),
    /// Sets the tags of a port.
    TagPort {
        /// Its name.
        name: String,
        /// Its id.
        id: String,
        /// All tags.
        tags: Vec<String>,
    },
    /// Makes the server on its ports.
    CreateServer {
        /// Its name.
        name: String,
        /// What it boots.
        image_id: String,
        /// Its size.
        flavor_id: String,
        /// The group it is kept with or apart from.
        server_group_id: Option<String>,
        /// Its ports, in order.
        port_ids: Vec<String>,
        /// What it reads at its first boot.
        user_data: UserData,
        /// What is written on it, besides the owner.
        metadata: BTreeMap<String, String>,
        /// Its tags.
        tags: Vec<String>,
        /// The key that may log in.
        key_name: Option<String>,
        /// Whether it gets its data on a disk.
        config_drive: Option<bool>,
        /// Where it is put.
        availability_zone: Option<String>,
        /// More for the scheduler.
        scheduler_hints: BTreeMap<String, Value>,
    },
    /// Writes the provider id into the object.
    Record {
        /// The id.
        provider_id: String,
    },
    /// Deletes a server.
    DeleteServer {
        /// Its name; one that is too many has a number besides.
        name: String,
        /// Its id.
        id: String,
    },
    /// Deletes a port.
    DeletePort {
        /// Its name; one that is too many has a number besides.
        name: String,
        /// Its id.
        id: String,
    },
    /// Lets the object go.
    Release,
}

impl FlowStep for Step {
    fn id(&self) -> StepId {
        match self {
            Self::Claim { .. } => StepId::new("claim", "object", "self"),
            Self::CreatePort(port) => StepId::new("create", "port", &port.name),
            Self::TagPort { name, .. } => StepId::new("tag", "port", name),
            Self::CreateServer { name, .. } => StepId::new("create", "server", name),
            Self::Record { .. } => StepId::new("record", "object", "self"),
            Self::DeleteServer { name, .. } => StepId::new("delete", "server", name),
            Self::DeletePort { name, .. } => StepId::new("delete", "port", name),
            Self::Release => StepId::new("release", "object", "self"),
        }
    }
}

/// Makes the observation what it would be after an outcome.
pub fn fold(observed: &mut Observed, step: &Step, outcome: &Outcome) {
    let (reason, words, actor) = match outcome {
        Outcome::Created(id) => {
            observed.trouble = None;
            return done(observed, step, id);
        }
        Outcome::Done => {
            observed.trouble = None;
            return done(observed, step, "");
        }
        Outcome::Refused(words) => (refused(step), words.clone(), Actor::ClusterOwner),
        Outcome::Failed(failure) => {
            let actor = if failure.is_retryable { Actor::Cloud } else { Actor::ClusterOwner };
            (failure.category, failure.message.clone(), actor)
        }
        Outcome::Lost => {
            if let Some(facts) = observed.cloud.facts_mut() {
                facts.servers = Read::unknown("an answer was lost");
                for read in facts.ports.values_mut() {
                    *read = Read::unknown("an answer was lost");
                }
            }
            ("AnswerLost", "the answer was lost".to_owned(), Actor::Hangar)
        }
    };
    let message = format!("{}: {words}", step.id());
    observed.trouble = Some(CloudTrouble { reason, message, actor });
}

/// The reasons that dashboards know.
fn refused(step: &Step) -> &'static str {
    match step {
        Step::CreatePort(_) | Step::TagPort { .. } => "PortCreateFailed",
        Step::CreateServer { .. } => "InstanceCreateFailed",
        Step::DeleteServer { .. } | Step::DeletePort { .. } => "InstanceDeleteFailed",
        Step::Claim { .. } | Step::Record { .. } | Step::Release => "ObjectNotWritten",
    }
}

fn done(observed: &mut Observed, step: &Step, id: &str) {
    match step {
        Step::Claim { owner_id } => {
            let meta = &mut observed.object.metadata;
            meta.annotations.get_or_insert_default().insert(OWNER_ID_ANNOTATION.to_owned(), owner_id.clone());
            let finalizers = meta.finalizers.get_or_insert_default();
            if !finalizers.iter().any(|present| present == OPENSTACK_MACHINE_FINALIZER) {
                finalizers.push(OPENSTACK_MACHINE_FINALIZER.to_owned());
            }
        }
        Step::Release => {
            let finalizers = observed.object.metadata.finalizers.get_or_insert_default();
            finalizers.retain(|present| present != OPENSTACK_MACHINE_FINALIZER);
        }
        Step::Record { provider_id } => observed.object.spec.provider_id = Some(provider_id.clone()),
        _ => {
            if let Some(facts) = observed.cloud.facts_mut() {
                done_in_cloud(facts, step, id);
            }
        }
    }
}

fn done_in_cloud(facts: &mut CloudFacts, step: &Step, new_id: &str) {
    match step {
        Step::CreatePort(port) => {
            let made = Port {
                id: new_id.to_owned(),
                name: port.name.clone(),
                network_id: port.network_id.clone(),
                ..Port::default()
            };
            facts.ports.insert(port.name.clone(), Read::One(made));
        }
        Step::TagPort { id, tags, .. } => {
            for read in facts.ports.values_mut() {
                *read = read.clone().map(|mut port| {
                    if port.id == *id {
                        port.tags.clone_from(tags);
                    }
                    port
                });
            }
        }
        Step::CreateServer { name, port_ids, .. } => {
            for read in facts.ports.values_mut() {
                *read = read.clone().map(|mut port| {
                    if port_ids.contains(&port.id) {
                        new_id.clone_into(&mut port.device_id);
                    }
                    port
                });
            }
            let status = "BUILD".to_owned();
            let server = Server { id: new_id.to_owned(), name: name.clone(), status, ..Server::default() };
            facts.servers = Read::One(server);
        }
        Step::DeleteServer { id, .. } => {
            // Asked for, not gone: only a new look tells.
            facts.servers = facts.servers.clone().map(|server| {
                let is_going = server.is_going || server.id == *id;
                Server { is_going, ..server }
            });
        }
        Step::DeletePort { id, .. } => {
            for read in facts.ports.values_mut() {
                *read = read.clone().filter(|port| port.id != *id);
            }
        }
        Step::Claim { .. } | Step::Record { .. } | Step::Release => {}
    }
}
