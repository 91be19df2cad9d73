//! The nodes of the management cluster. Which one a node is decides its name, its zone and its addresses, so nobody has
//! to hand them out, and no node has to learn of another.

use std::fmt;
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

use super::NAME;
use crate::addresses::{Addresses, POD_RANGE};

/// The label with a node's zone.
pub const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

/// Given to nodes in turn.
const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];

/// A node. The first also runs the control plane and the resolver; the others only run pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node(u8);

impl Node {
    pub const FIRST: Self = Self(0);
    /// How many there can be: each has a route to all others from the start, whether they exist or not.
    pub const MOST: u8 = 9;

    /// So many of them, the first first.
    pub fn some(count: u8) -> impl Iterator<Item = Self> {
        (0..count.min(Self::MOST)).map(Self)
    }

    /// The node with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::some(Self::MOST).find(|node| node.name() == name)
    }

    pub fn is_first(self) -> bool {
        self == Self::FIRST
    }

    /// The name of the node, of its machine and of its host: `management`, `management-2` and so on.
    pub fn name(self) -> String {
        if self.is_first() { NAME.to_owned() } else { format!("{NAME}-{}", self.0 + 1) }
    }

    pub fn zone(self) -> &'static str {
        ZONES[usize::from(self.0) % ZONES.len()]
    }

    /// On the private network.
    pub fn address(self, addresses: &Addresses) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(addresses.management) + u32::from(self.0))
    }

    /// What its pods take their addresses from.
    pub fn pod_range(self) -> Ipv4Net {
        let first = u32::from(POD_RANGE.network()) + (u32::from(self.0) << 8);
        Ipv4Net::new_assert(Ipv4Addr::from(first), 24)
    }

    /// All others that there could be.
    pub fn others(self) -> impl Iterator<Item = Self> {
        Self::some(Self::MOST).filter(move |other| *other != self)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn nodes_differ_in_everything_but_their_zones() {
        let addresses = Addresses::of("100.72.0.0/20".parse().unwrap()).unwrap();
        let seen: Vec<String> = Node::some(4)
            .map(|node| format!("{node} {} {} {}", node.zone(), node.address(&addresses), node.pod_range()))
            .collect();
        let expected = [
            "management zone-a 100.72.0.10 10.244.0.0/24",
            "management-2 zone-b 100.72.0.11 10.244.1.0/24",
            "management-3 zone-c 100.72.0.12 10.244.2.0/24",
            "management-4 zone-a 100.72.0.13 10.244.3.0/24",
        ];
        assert_eq!(seen, expected);
        let all: Vec<Node> = Node::some(Node::MOST).collect();
        let taken: BTreeSet<Ipv4Addr> = all.iter().map(|node| node.address(&addresses)).collect();
        assert_eq!(taken.len(), usize::from(Node::MOST));
        assert!(taken.iter().all(|address| *address < addresses.gateway));
        assert!(all.iter().all(|node| POD_RANGE.contains(&node.pod_range())));
        assert!(all.iter().all(|node| Node::named(&node.name()) == Some(*node)));
        assert_eq!((Node::named("server-1"), Node::named("management-1")), (None, None));
        assert_eq!(Node::FIRST.others().count(), usize::from(Node::MOST) - 1);
    }
}
