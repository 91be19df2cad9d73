//! One whole Cluster with every controller: from its manifests to a worker that is Ready, and to nothing again, while
//! managers die.
//!
//! Real are the API server of the management cluster with its controller-manager, the tenant's etcd and API server, and
//! the cloud over HTTP. Played are kubelets, load balancers and machines.

mod choice;
mod crash;
mod described;
mod manager;
mod stage;
mod strikes;
