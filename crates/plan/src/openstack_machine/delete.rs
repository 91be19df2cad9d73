//! The end: the server, and when it is gone its ports.

use hangar_api::conditions::Actor;
use hangar_api::names::OPENSTACK_MACHINE_FINALIZER;

use super::{BUSY, CloudFacts, Draft, ServerStep, TYPE, request};
use crate::flow::Read;
use crate::openstack;

/// Only what carries our owner id is in the facts.
pub(super) fn draft(draft: &mut Draft<'_>, facts: &CloudFacts) {
    let visible = facts.servers.clone().filter(|server| !server.is_gone());
    match &visible {
        Read::Unknown(unknown) => return draft.unknown(TYPE, &unknown.why),
        Read::Absent => {}
        servers => {
            let name = draft.observed.server_name();
            for (index, server) in servers.iter().enumerate().filter(|(_, server)| !server.is_going) {
                let name = if index == 0 { name.clone() } else { format!("{name} (extra {index})") };
                draft.step(ServerStep::DeleteServer { name, id: server.id.clone() });
            }
            draft.status.instance_state = servers.iter().next().map(|server| server.status.clone());
            if draft.observed.trouble.is_some() {
                draft.working(TYPE, "InstanceDeleteFailed", "the server to be gone");
            } else {
                draft.wait(TYPE, "Deleting", Actor::Cloud, "the server to be gone");
            }
            return draft.again(BUSY);
        }
    }
    draft.status.instance_state = Some("DELETED".to_owned());
    if !ports(draft, facts, "Deleting") {
        return;
    }
    // One that still came would be nobody's.
    if request::unsettled(draft.observed).is_some_and(|left| request::waits(draft, "Deleting", left)) {
        return;
    }
    draft.step(openstack::release(&draft.observed.object.metadata, OPENSTACK_MACHINE_FINALIZER));
    draft.wait(TYPE, "Deleting", Actor::Hangar, "the object to be let go");
}

/// Takes the ports away; true when none is left.
pub(super) fn ports(draft: &mut Draft<'_>, facts: &CloudFacts, reason: &str) -> bool {
    let mut has_ports = false;
    for (name, read) in &facts.ports {
        if let Read::Unknown(unknown) = read {
            draft.unknown(TYPE, &unknown.why);
            return false;
        }
        for (index, port) in read.iter().enumerate() {
            has_ports = true;
            let name = if index == 0 { name.clone() } else { format!("{name} (extra {index})") };
            draft.step(ServerStep::DeletePort { name, id: port.id.clone() });
        }
    }
    if has_ports {
        draft.working(TYPE, reason, "the ports to be gone");
    }
    !has_ports
}
