//! Finds what a change of rules no longer allows, so that the kernel can forget connections that depend on it.
//! Additions need nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
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
        match (old.secured, new.secured) {
            (_, false) => {}
            (false, true) => found.extend(fixed(old)),
            (true, true) => found.extend(lost((before, old), (after, new))),
        }
        if !fixed(old).is_subset(&fixed(new)) {
            found.extend(fixed(old));
        }
    }
    found
}

/// The port's own addresses if a rule is gone. If a group has lost a member, the member's alone: what its other members
/// have open goes on, as in Neutron.
fn lost((before, old): (&Topology, &Port), (after, new): (&Topology, &Port)) -> BTreeSet<IpAddr> {
    let present = permissions(after, new);
    let mut found = BTreeSet::new();
    for (rule, members) in permissions(before, old) {
        let Some(left) = present.get(&rule) else {
            found.extend(fixed(old));
            continue;
        };
        for gone in members.difference(left) {
            if gone.prefix_len() == gone.max_prefix_len() {
                found.insert(gone.addr());
            } else {
                found.extend(fixed(old));
            }
        }
    }
    found
}

/// What a port may do: rules, whether each is about a group, and the members of the groups.
fn permissions(topology: &Topology, port: &Port) -> BTreeMap<(String, bool), BTreeSet<IpNet>> {
    let mut found: BTreeMap<_, BTreeSet<IpNet>> = BTreeMap::new();
    for rule in rules_of(topology, port) {
        let text = format!("{} {}", rule.ingress, condition(rule));
        let members = rule.remote_group.map(|group| members(topology, group));
        found.entry((text, rule.remote_group.is_some())).or_default().extend(members.unwrap_or_default());
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
