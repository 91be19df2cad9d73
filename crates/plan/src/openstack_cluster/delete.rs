//! Plans the deletion of an OpenStackCluster: from the router inwards, only what carries our owner id. Each wait is
//! reported.

use super::conditions::{network_ready, ready, router_ready, security_groups_ready};
use super::{CloudFacts, Draft, NetworkStep, ObjectId};
use crate::flow::Read;

/// One layer at a time; groups do not depend on the network, but ports of machines hold both.
pub(super) fn draft(draft: &mut Draft<'_>, facts: &CloudFacts) {
    match &draft.observed.machines {
        Read::Unknown(unknown) => return draft.unknown(ready::TYPE, &unknown.why),
        Read::Absent => {}
        machines => {
            let names: Vec<&str> = machines.iter().map(String::as_str).collect();
            let on = format!("machines to be gone: {}", names.join(", "));
            return draft.say(ready::WAITING_FOR_MACHINES.waits(on));
        }
    }
    if draft.observed.is_managed() && !network_is_gone(draft, facts) {
        return;
    }
    match &facts.groups {
        Read::Unknown(unknown) => return draft.unknown(ready::TYPE, &unknown.why),
        Read::Absent => {}
        groups => {
            for group in groups.iter() {
                let (id, name) = (ObjectId::Group(group.id.clone()), group.name.clone());
                draft.step(NetworkStep::Delete { id, name });
            }
            return draft.working(security_groups_ready::WORKING, "the security groups to be gone");
        }
    }
    draft.release_settled();
}

fn network_is_gone(draft: &mut Draft<'_>, facts: &CloudFacts) -> bool {
    let name = draft.observed.resource_name();
    match (&facts.routers, &facts.interfaces) {
        (Read::Unknown(unknown), _) | (_, Read::Unknown(unknown)) => {
            draft.unknown(ready::TYPE, &unknown.why);
            return false;
        }
        (Read::Absent, _) => {}
        (routers, interfaces) => {
            let mut connected = false;
            for router in routers.iter() {
                let own = interfaces.iter().filter(|port| port.device_id == router.id.as_str());
                for (index, subnet_id) in own.flat_map(|port| &port.subnet_ids).enumerate() {
                    connected = true;
                    let name = if index == 0 { name.clone() } else { format!("{name} ({})", index + 1) };
                    let (router_id, subnet_id) = (router.id.clone(), subnet_id.clone());
                    draft.step(NetworkStep::RemoveInterface { name, router_id, subnet_id });
                }
            }
            if !connected {
                delete_all(draft, routers.iter().map(|router| ObjectId::Router(router.id.clone())));
            }
            draft.working(router_ready::WORKING, "the router to be gone");
            return false;
        }
    }
    match &facts.subnets {
        Read::Unknown(unknown) => {
            draft.unknown(ready::TYPE, &unknown.why);
            return false;
        }
        Read::Absent => {}
        subnets => {
            delete_all(draft, subnets.iter().map(|subnet| ObjectId::Subnet(subnet.id.clone())));
            blocked(draft, facts, "the subnet to be gone");
            return false;
        }
    }
    match &facts.networks {
        Read::Unknown(unknown) => {
            draft.unknown(ready::TYPE, &unknown.why);
            false
        }
        Read::Absent => true,
        networks => {
            delete_all(draft, networks.iter().map(|network| ObjectId::Network(network.id.clone())));
            blocked(draft, facts, "the network to be gone");
            false
        }
    }
}

/// What others left on the network keeps it alive: said by name.
fn blocked(draft: &mut Draft<'_>, facts: &CloudFacts, on: &str) {
    let left = facts.other_ports.iter().filter(|port| !port.device_owner.starts_with("network:"));
    let left: Vec<String> =
        left.map(|port| format!("{} {} ({})", port.name, port.id, port.device_owner)).collect();
    if left.is_empty() {
        draft.working(network_ready::WORKING, on);
    } else {
        draft.working(network_ready::WORKING, &format!("{on}; still on it: {}", left.join(", ")));
    }
}

fn delete_all(draft: &mut Draft<'_>, ids: impl Iterator<Item = ObjectId>) {
    let name = draft.observed.resource_name();
    for (index, id) in ids.enumerate() {
        let name = if index == 0 { name.clone() } else { format!("{name} (extra {index})") };
        draft.step(NetworkStep::Delete { id, name });
    }
}
