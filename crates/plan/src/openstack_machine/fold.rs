//! What a step made of the observation.

use super::{CloudFacts, Observed, ServerStep, Step, request};
use crate::flow::{Identified as _, Outcome, Read, Seen as _};
use crate::openstack::{CloudTrouble, Port, Server, server_requested};

/// Makes the observation what it is after that outcome.
pub fn fold(observed: &mut Observed, step: &Step, outcome: &Outcome) {
    match outcome {
        Outcome::Created(id) => {
            observed.trouble = None;
            done(observed, step, id);
        }
        Outcome::Done => {
            observed.trouble = None;
            done(observed, step, "");
        }
        _ => observed.trouble = Some(CloudTrouble::of_step(refused(step), &step.id(), outcome)),
    }
    if let (true, Some(facts)) = (outcome.ends_the_pass(), observed.cloud.facts_mut()) {
        let why = format!("the answer to {} was lost", step.id());
        facts.servers = Read::unknown(&why);
        for read in facts.ports.values_mut() {
            *read = Read::unknown(&why);
        }
    }
}

/// The reasons that dashboards know.
fn refused(step: &Step) -> &'static str {
    match step {
        Step::Cloud(ServerStep::CreatePort(_) | ServerStep::TagPort { .. }) => "PortCreateFailed",
        Step::Cloud(ServerStep::CreateServer(_)) => "InstanceCreateFailed",
        Step::Cloud(ServerStep::DeleteServer { .. } | ServerStep::DeletePort { .. }) => {
            "InstanceDeleteFailed"
        }
        Step::Write(_) => "ObjectNotWritten",
        Step::Own(never) | Step::Tenant(never) => match *never {},
    }
}

fn done(observed: &mut Observed, step: &Step, id: &str) {
    match step {
        Step::Write(write) => write.on_itself(&mut observed.object),
        Step::Cloud(step) => {
            if step.is_noted() {
                observed.object.merge(&server_requested(Some(observed.now)));
            }
            let is_open = request::unsettled(observed).is_some();
            let Some(facts) = observed.cloud.facts_mut() else { return };
            done_in_cloud(facts, step, id);
            if is_open && matches!(step, ServerStep::DeletePort { .. }) {
                facts.servers = Read::unknown("whether a server came before its port went is only seen now");
            }
        }
        Step::Own(never) | Step::Tenant(never) => match *never {},
    }
}

fn done_in_cloud(facts: &mut CloudFacts, step: &ServerStep, new_id: &str) {
    match step {
        ServerStep::CreatePort(port) => {
            let made = Port {
                id: new_id.to_owned(),
                name: port.name.clone(),
                network_id: port.network_id.clone(),
                ..Port::default()
            };
            facts.ports.insert(port.name.clone(), Read::One(made));
        }
        ServerStep::TagPort { id, tags, .. } => {
            for port in facts.ports.values_mut().flat_map(Read::iter_mut).filter(|port| port.id == *id) {
                port.tags.clone_from(tags);
            }
        }
        ServerStep::CreateServer(new) => {
            let ports = facts.ports.values_mut().flat_map(Read::iter_mut);
            for port in ports.filter(|port| new.port_ids.contains(&port.id)) {
                new_id.clone_into(&mut port.device_id);
            }
            let status = "BUILD".to_owned();
            let server =
                Server { id: new_id.to_owned(), name: new.name.clone(), status, ..Server::default() };
            facts.servers = Read::One(server);
        }
        ServerStep::DeleteServer { id, .. } => {
            // Asked for, not gone: only a new look tells.
            for server in facts.servers.iter_mut().filter(|server| server.id == *id) {
                server.is_going = true;
            }
        }
        ServerStep::DeletePort { id, .. } => {
            for read in facts.ports.values_mut() {
                read.retain(|port| port.id != *id);
            }
        }
    }
}
