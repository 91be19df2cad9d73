//! The actors, by the names that the declarations of reasons use.

use hangar_api::conditions::Actor;

pub(crate) const HANGAR: Actor = Actor::Hangar;
pub(crate) const OWNER: Actor = Actor::ClusterOwner;
pub(crate) const OPERATOR: Actor = Actor::Operator;
pub(crate) const CLOUD: Actor = Actor::Cloud;
/// Its scheduler, its kubelets, its controllers.
pub(crate) const MANAGEMENT_CLUSTER: Actor = Actor::controller("the management cluster");
pub(crate) const CONTROL_PLANE: Actor = Actor::controller("the control plane");
pub(crate) const INFRASTRUCTURE: Actor = Actor::controller("the infrastructure provider");
pub(crate) const CLUSTER_API: Actor = Actor::controller("Cluster API");
pub(crate) const CLUSTERS: Actor = Actor::controller("the controller of Cluster");
pub(crate) const MACHINES: Actor = Actor::controller("the controller of Machine");
pub(crate) const KUBELET: Actor = Actor::controller("the Node's kubelet");
pub(crate) const SERVER: Actor = Actor::controller("the server's kubelet");
/// Messages name the kind; see [`Actor::controller_of`].
pub(crate) const ITS_CONTROLLER: Actor = Actor::controller("the controller of that object");
pub(crate) const ANNOTATOR: Actor = Actor::controller("whoever set the annotations");
