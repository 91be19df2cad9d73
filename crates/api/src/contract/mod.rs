//! Reads objects of kinds whose Rust type is not known, by the contract that they declare.
//!
//! Clusters and Machines refer to infrastructure, bootstrap and control plane objects of any provider. Two contract
//! versions are in use; they give the same facts different names. The labels of a kind's CRD say which contract it
//! implements, and in which API version ([`chosen`]); the views here then read the right fields of the raw JSON:
//!
//! - [`InfrastructureCluster`], [`InfrastructureMachine`], [`BootstrapConfiguration`], [`ControlPlane`].
//!
//! Views never fail: a field that is absent or malformed reads as "not there yet", as if the provider had not written
//! it.

pub mod bootstrap_configuration;
pub mod choice;
pub mod control_plane;
pub mod endpoint;
pub mod infrastructure_cluster;
pub mod infrastructure_machine;
mod path;

#[cfg(test)]
mod tests;

pub use bootstrap_configuration::BootstrapConfiguration;
pub use choice::{Choice, Contract, chosen};
pub use control_plane::{ControlPlane, ReplicaCounts, VersionCount};
pub use endpoint::Endpoint;
pub use infrastructure_cluster::{FailureDomain, InfrastructureCluster};
pub use infrastructure_machine::{Address, InfrastructureMachine};
