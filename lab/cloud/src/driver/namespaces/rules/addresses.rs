//! Writes addresses as `nft` lists them: without overlaps, which it refuses.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use uuid::Uuid;

use crate::topology::{Port, Topology};

/// IPv4 and IPv6 apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Addresses {
    pub(super) v4: Vec<Ipv4Net>,
    pub(super) v6: Vec<Ipv6Net>,
}

impl Addresses {
    pub(super) fn of(nets: impl IntoIterator<Item = IpNet>) -> Self {
        let mut all = Self::default();
        for net in nets {
            match net {
                IpNet::V4(net) => all.v4.push(net.trunc()),
                IpNet::V6(net) => all.v6.push(net.trunc()),
            }
        }
        Self { v4: Ipv4Net::aggregate(&all.v4), v6: Ipv6Net::aggregate(&all.v6) }
    }

    /// What may be sent from a port.
    pub(super) fn of_port(port: &Port) -> Self {
        let fixed = port.fixed.iter().map(|(_, address)| IpNet::from(*address));
        Self::of(fixed.chain(port.allowed_pairs.iter().copied()))
    }

    /// What the members of a group may send from.
    pub(super) fn of_group(topology: &Topology, group: Uuid) -> Self {
        Self::of(members(topology, group))
    }

    /// Those of one family as text.
    pub(super) fn family(&self, ipv6: bool) -> Vec<String> {
        if ipv6 {
            self.v6.iter().map(|net| short(IpNet::V6(*net))).collect()
        } else {
            self.v4.iter().map(|net| short(IpNet::V4(*net))).collect()
        }
    }
}

/// What the members of a group may send from, one by one.
pub(super) fn members(topology: &Topology, group: Uuid) -> BTreeSet<IpNet> {
    let ports = topology.ports.values().filter(|port| port.security_groups.contains(&group));
    ports
        .flat_map(|port| {
            let fixed = port.fixed.iter().map(|(_, address)| IpNet::from(*address));
            fixed.chain(port.allowed_pairs.iter().copied())
        })
        .collect()
}

/// A single address without its prefix.
pub(super) fn short(net: IpNet) -> String {
    if net.prefix_len() == net.max_prefix_len() { net.addr().to_string() } else { net.to_string() }
}

/// A port's own addresses.
pub(super) fn fixed(port: &Port) -> BTreeSet<IpAddr> {
    port.fixed.iter().map(|(_, address)| *address).collect()
}
