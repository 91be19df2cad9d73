//! Finds what a change of rules no longer allows, so that the kernel can forget connections that depend on it.
//! Additions need nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use uuid::Uuid;

use super::addresses::{fixed, members};
use super::network::{condition, rules_of};
use crate::topology::{Port, Topology};

/// Addresses of a network's ports that may do less than before.
pub(in super::super) fn revoked(before: &Topology, after: &Topology, network: Uuid) -> BTreeSet<IpAddr> {
    let mut found = BTreeSet::new();
    for (id, old) in before.ports.iter().filter(|(_, port)| port.network == network) {
        let Some(new) = after.ports.get(id) else {
            // Its addresses may soon be another's.
            found.extend(fixed(old));
            continue;
        };
        let lost = match (old.secured, new.secured) {
            (_, false) => false,
            (false, true) => true,
            (true, true) => !permissions(before, old).is_subset(&permissions(after, new)),
        };
        if lost || !fixed(old).is_subset(&fixed(new)) {
            found.extend(fixed(old));
        }
    }
    found
}

/// What a port may do, with the members of groups spelled out.
fn permissions(topology: &Topology, port: &Port) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for rule in rules_of(topology, port) {
        let text = format!("{} {}", rule.ingress, condition(rule));
        match rule.remote_group {
            Some(group) => {
                // One by one: neighbours that were joined into a range would look like a loss.
                let members = members(topology, group);
                found.extend(members.iter().map(|member| format!("{text} {member}")));
            }
            None => {
                found.insert(text);
            }
        }
    }
    found
}

/// Floating addresses that lead elsewhere than before, or nowhere, and what was behind them.
pub(in super::super) fn dropped_floating(
    before: &BTreeMap<IpAddr, IpAddr>,
    after: &BTreeMap<IpAddr, IpAddr>,
) -> BTreeSet<IpAddr> {
    let gone = before.iter().filter(|(outside, inside)| after.get(outside) != Some(inside));
    gone.flat_map(|(outside, inside)| [*outside, *inside]).collect()
}
