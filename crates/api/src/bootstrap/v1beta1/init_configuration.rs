//! Settings of `kubeadm init` for the first machine of a control plane.

use hangar_wire::wire;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::node_registration::NodeRegistration;
use crate::bootstrap::image::Patches;

/// Settings of `kubeadm init`, for the first machine of a kubeadm control plane.
#[wire]
pub struct InitConfiguration {
    /// Accepted for compatibility and ignored.
    pub api_version: Option<String>,
    /// Tokens that kubeadm creates for joining machines.
    #[schemars(length(max = 100))]
    pub bootstrap_tokens: Option<Vec<BootstrapToken>>,
    /// Accepted for compatibility and ignored.
    pub kind: Option<String>,
    /// Where the API server on this machine listens.
    #[serde(rename = "localAPIEndpoint")]
    pub local_api_endpoint: Option<LocalApiEndpoint>,
    /// How the node registers.
    pub node_registration: Option<NodeRegistration>,
    /// Patches for the manifests that kubeadm writes.
    pub patches: Option<Patches>,
    /// Phases of `kubeadm init` to skip.
    #[schemars(length(max = 50), inner(length(min = 1, max = 256)))]
    pub skip_phases: Option<Vec<String>>,
}

/// A token that lets machines join.
#[wire]
pub struct BootstrapToken {
    /// Description of the token.
    #[schemars(length(min = 1, max = 512))]
    pub description: Option<String>,
    /// When the token expires. Cannot be combined with `ttl`.
    pub expires: Option<Time>,
    /// Groups that the token authenticates as.
    #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
    pub groups: Option<Vec<String>>,
    /// The token, as `id.secret`.
    pub token: String,
    /// Time to live of the token, as a duration such as `24h0m0s`. Cannot be combined with `expires`.
    pub ttl: Option<String>,
    /// Allowed uses of the token: `signing`, `authentication`.
    #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
    pub usages: Option<Vec<String>>,
}

/// Address that the API server on this machine announces.
#[wire]
pub struct LocalApiEndpoint {
    /// Address that the API server announces; the default route's address when empty.
    #[schemars(length(min = 1, max = 39))]
    pub advertise_address: Option<String>,
    /// Port that the API server listens on; 6443 when empty.
    pub bind_port: Option<i32>,
}
