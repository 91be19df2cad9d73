//! One whole Cluster with every controller: from its manifests to a worker that is Ready, and through its deletion,
//! while managers are killed.
//!
//! The API server of the management cluster with its controller manager, the tenant's etcd and API server, and the
//! cloud over HTTP are real. Kubelets, load balancers and the machines behind servers are simulated.

mod choice;
mod crash;
mod described;
pub(crate) mod manager;
mod stage;
pub(crate) mod strikes;
