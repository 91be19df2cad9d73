//! The first tenant: a Cluster as its owner would write it, its network add-on, and the wait until its worker is Ready.
//!
//! The manifests are plain Cluster API; only the addresses of the cloud in them are special to one host. The cluster
//! owner is responsible for the CNI, so `up` applies it, as an owner would, and no controller does.

pub mod flannel;
mod follow;
mod manifests;

pub(crate) use follow::{Follower, kubeconfig_path};
pub use manifests::{Sample, manifests};
