//! The end: the server, and when it is gone its ports.

use hangar_api::conditions::Actor;

use super::{BUSY, CloudFacts, Draft, Step};
use crate::flow::Read;

/// Only what carries our owner id is in the facts.
pub(super) fn draft(draft: &mut Draft<'_>, facts: &CloudFacts) {
    let visible = facts.servers.clone().filter(|server| !server.is_gone());
    match &visible {
        Read::Unknown(unknown) => return draft.unknown(&unknown.why),
        Read::Absent => {}
        servers => {
            let name = draft.observed.server_name();
            for (index, server) in servers.iter().enumerate().filter(|(_, server)| !server.is_going) {
                let name = if index == 0 { name.clone() } else { format!("{name} (extra {index})") };
                draft.steps.push(Step::DeleteServer { name, id: server.id.clone() });
            }
            draft.status.instance_state = servers.iter().next().map(|server| server.status.clone());
            if draft.observed.trouble.is_some() {
                draft.working("InstanceDeleteFailed", "the server to be gone");
            } else {
                draft.wait("Deleting", Actor::Cloud, "the server to be gone");
            }
            return draft.again(BUSY);
        }
    }
    draft.status.instance_state = Some("DELETED".to_owned());
    let mut has_ports = false;
    for (name, read) in &facts.ports {
        if let Read::Unknown(unknown) = read {
            return draft.unknown(&unknown.why);
        }
        for (index, port) in read.iter().enumerate() {
            has_ports = true;
            let name = if index == 0 { name.clone() } else { format!("{name} (extra {index})") };
            draft.steps.push(Step::DeletePort { name, id: port.id.clone() });
        }
    }
    if has_ports {
        return draft.working("Deleting", "the ports to be gone");
    }
    draft.steps.push(Step::Release);
    draft.wait("Deleting", Actor::Hangar, "the object to be let go");
}
