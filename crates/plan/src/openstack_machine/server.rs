//! Plans the server of an OpenStackMachine, and sets the conditions about it.

use hangar_api::conditions::{Actor, Bad};
use hangar_api::infrastructure::v1beta1::{MachineResources, PortResource};
use serde_json::json;

use super::conditions::instance_ready;
use super::{Draft, POLL, Step, status};
use crate::flow::{StepId, Write};
use crate::openstack::ServerId;
use crate::openstack::conditions::ownership;
use crate::openstack::server::{Decided, ServerFacts, ServerStep, State};

/// The server, if there is one; else the way to it.
pub(super) fn keep(draft: &mut Draft<'_>, facts: &ServerFacts) {
    let wanted = draft.observed.wanted_server();
    let Decided { state, steps, server, resolved, port_ids } =
        draft.observed.situation(&wanted, facts).keep();
    if steps.iter().any(|step| matches!(step, Step::Cloud(ServerStep::CreateServer(_)))) {
        draft.report.decide(format!("make the server {}", wanted.name), "everything it needs is there");
    }
    draft.steps.extend(steps);
    if resolved.is_some() {
        draft.status.resolved = resolved;
    }
    if !port_ids.is_empty() {
        let ports = port_ids.into_iter().map(|id| PortResource { id: id.to_string() }).collect();
        draft.status.resources = Some(MachineResources { ports });
    }
    if let Some(server) = &server {
        draft.status.instance_id = Some(server.id.to_string());
        draft.status.instance_state = Some(server.status.clone());
        if server.status == "ACTIVE" {
            draft.status.addresses = status::addresses(server);
        }
    }
    match (state, server) {
        (State::Gone, _) => {
            draft.status.instance_state = Some("DELETED".to_owned());
            let why = "the server was deleted and is not made again: its disk is gone";
            failed(draft, instance_ready::INSTANCE_DELETED, why);
        }
        (State::Failed(fault), _) => {
            failed(draft, instance_ready::INSTANCE_STATE_ERROR, &format!("the server is in ERROR: {fault}"));
            draft.again(POLL);
        }
        (State::Ready, Some(server)) => ready(draft, &server.id),
        (state, _) => under_way(draft, state, instance_ready::INSTANCE_NOT_READY),
    }
}

/// Takes away what carries our owner id, then lets the object go.
pub(super) fn delete(draft: &mut Draft<'_>, facts: &ServerFacts) {
    let wanted = draft.observed.wanted_server();
    let Decided { state, steps, server, .. } = draft.observed.situation(&wanted, facts).delete();
    draft.steps.extend(steps);
    if let Some(server) = server {
        draft.status.instance_state = Some(server.status);
    } else if facts.visible().is_absent() {
        draft.status.instance_state = Some("DELETED".to_owned());
    }
    let deleting = ownership::DELETING.about(instance_ready::TYPE);
    match state {
        State::Gone => draft.release_settled(),
        // What went wrong so far is said.
        State::Waiting { on, again } if draft.observed.trouble.is_some() => {
            draft.working(deleting, &on);
            draft.again(again);
        }
        state => under_way(draft, state, deleting),
    }
}

fn under_way(draft: &mut Draft<'_>, state: State, reason: Bad) {
    match state {
        State::Unknown(why) => draft.unknown(instance_ready::TYPE, &why),
        State::Invalid(why) => {
            let on = "everything the server needs to exist";
            draft.broken(instance_ready::INVALID_MACHINE_SPEC, on, why);
        }
        State::Working(on) => draft.working(reason, on),
        State::Waiting { on, again } => {
            draft.say(reason.by(Actor::Cloud, on));
            draft.again(again);
        }
        // It runs; without one of its ports it is no node.
        State::Unbound(port) => {
            let why = "the server is ACTIVE without it; if this lasts, delete the Machine";
            let on = format!("port {port} to be bound to the server");
            draft.say(reason.by(Actor::Cloud, on).because(why));
            draft.again(POLL);
        }
        // The node will say what that means for it.
        State::Inactive(status) => {
            let inactive = instance_ready::INSTANCE_NOT_ACTIVE.waits("the server to be ACTIVE");
            draft.say(inactive.because(format!("it is {status}")));
            draft.again(POLL);
        }
        State::Failed(_) | State::Gone | State::Ready => {}
    }
}

/// Left to the Machine's owner.
fn failed(draft: &mut Draft<'_>, reason: Bad, why: &str) {
    draft.say(reason.waits("the Machine to be replaced").because(why));
    draft.status.ready = Some(false);
}

fn ready(draft: &mut Draft<'_>, server_id: &ServerId) {
    let spec = &draft.observed.object.spec;
    if spec.provider_id.is_none() {
        // The contract: the id is there before the machine is called ready.
        let fields = json!({ "spec": { "providerID": status::provider_id(spec, server_id) } });
        draft.step(Write::itself(StepId::new("record", "object", "self"), fields));
        return draft.working(instance_ready::INSTANCE_NOT_READY, "the provider id to be written");
    }
    draft.status.ready = Some(true);
    draft.status.initialization.get_or_insert_default().provisioned = Some(true);
    draft.say(instance_ready::READY);
}
