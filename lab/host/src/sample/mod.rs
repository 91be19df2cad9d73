//! The first tenant: a Cluster as its owner would write it, its network add-on, and the wait until its worker is Ready.
//!
//! The manifests are plain Cluster API; nothing in them is special to one host but the addresses of the cloud. The CNI
//! is the cluster owner's business, so `up` applies it, as an owner would, and no controller does.

mod flannel;
mod follow;
mod manifests;

pub(crate) use follow::{Follower, kubeconfig_path};
pub use manifests::{Sample, manifests};
