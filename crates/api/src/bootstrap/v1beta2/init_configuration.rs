//! Settings of `kubeadm init` for the first machine of a control plane.

use hangar_wire::wire;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::node_registration::NodeRegistration;
use super::timeouts::Timeouts;
use crate::bootstrap::image::Patches;

/// Settings of `kubeadm init`, for the first machine of a kubeadm control plane.
#[wire]
pub struct InitConfiguration {
    /// Tokens that kubeadm creates for joining machines.
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub bootstrap_tokens: Option<Vec<BootstrapToken>>,
    /// Where the API server on this machine listens.
    #[serde(rename = "localAPIEndpoint")]
    #[schemars(extend("minProperties" = 1))]
    pub local_api_endpoint: Option<LocalApiEndpoint>,
    /// How the node registers.
    #[schemars(extend("minProperties" = 1))]
    pub node_registration: Option<NodeRegistration>,
    /// Patches for the manifests that kubeadm writes.
    #[schemars(extend("minProperties" = 1))]
    pub patches: Option<Patches>,
    /// Phases of `kubeadm init` to skip.
    #[schemars(length(min = 1, max = 50), inner(length(min = 1, max = 256)), extend("x-kubernetes-list-type" = "atomic"))]
    pub skip_phases: Option<Vec<String>>,
    /// How long kubeadm waits for each of its steps.
    #[schemars(extend("minProperties" = 1))]
    pub timeouts: Option<Timeouts>,
}

/// A token that lets machines join.
#[wire]
pub struct BootstrapToken {
    /// Description of the token.
    #[schemars(length(min = 1, max = 512))]
    pub description: Option<String>,
    /// When the token expires. Cannot be combined with `ttlSeconds`.
    pub expires: Option<Time>,
    /// Groups that the token authenticates as.
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 256)), extend("x-kubernetes-list-type" = "atomic"))]
    pub groups: Option<Vec<String>>,
    /// The token, as `id.secret`.
    #[schemars(length(min = 1, max = 23))]
    pub token: String,
    /// Time to live of the token in seconds. Cannot be combined with `expires`.
    #[schemars(range(min = 0))]
    pub ttl_seconds: Option<i32>,
    /// Allowed uses of the token: `signing`, `authentication`.
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 256)), extend("x-kubernetes-list-type" = "atomic"))]
    pub usages: Option<Vec<String>>,
}

/// Address that the API server on this machine announces.
#[wire]
pub struct LocalApiEndpoint {
    /// Address that the API server announces; the default route's address when empty.
    #[schemars(length(min = 1, max = 39))]
    pub advertise_address: Option<String>,
    /// Port that the API server listens on; 6443 when empty.
    #[schemars(range(min = 1))]
    pub bind_port: Option<i32>,
}
