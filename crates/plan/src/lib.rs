//! All decisions of Hangar: synchronous, deterministic, without I/O.
//!
//! Clock and randomness are passed in: the same input gives the same bytes, which the golden tests rely on. All reading
//! and writing is in other crates.

pub mod admission;
pub mod cluster;
pub mod conditions;
pub mod controllers;
pub mod describe;
pub mod flow;
mod hash;
pub mod hosted_control_plane;
pub mod install;
pub mod inventory;
pub mod kubeadm_bootstrap;
mod label;
pub mod limits;
pub mod machine;
pub mod machine_deployment;
pub mod machine_set;
pub mod namespaces;
pub mod neighbours;
pub mod openstack;
pub mod openstack_cluster;
pub mod openstack_machine;
pub mod pieces;
pub mod preview;
pub mod quantity;
pub mod referred;
pub mod unreadable;

#[cfg(test)]
mod checks;
