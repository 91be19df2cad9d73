//! Networks: namespaces, links, addresses, routes, filter rules, and the private network ([`Fabric`]) of machines.
//!
//! [`Netns`] is a named network namespace, [`Network`] uses netlink inside one, [`nft`] applies rules in one. The
//! fabric and a machine's links are built from these alone, and so can be any other topology (a namespace per network,
//! router or load balancer): cleaning up means deleting namespaces.
//!
//! Everything here is synchronous. A thread enters the namespace, does its work and ends; the calling thread never
//! leaves the host's namespace.

mod announce;
pub mod conntrack;
mod custom;
mod fabric;
mod link;
mod names;
mod netlink;
mod netns;
pub mod nft;
mod nic;
pub(crate) mod outside;
mod overlap;
mod threads;

pub use fabric::{Fabric, FabricSpec};
pub use link::{LinkState, Network, VethEnd};
pub use netns::Netns;
pub use nic::{Attachment, Nic, Route};
