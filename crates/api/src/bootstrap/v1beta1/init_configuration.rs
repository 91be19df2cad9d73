//! Settings of `kubeadm init` for the first machine of a control plane.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::node_registration::NodeRegistration;
use crate::bootstrap::image::Patches;

/// Settings of `kubeadm init`, for the first machine of a kubeadm control plane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitConfiguration {
    /// Accepted for compatibility and ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Tokens that kubeadm creates for joining machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub bootstrap_tokens: Option<Vec<BootstrapToken>>,
    /// Accepted for compatibility and ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Where the API server on this machine listens.
    #[serde(rename = "localAPIEndpoint", skip_serializing_if = "Option::is_none")]
    pub local_api_endpoint: Option<LocalApiEndpoint>,
    /// How the node registers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_registration: Option<NodeRegistration>,
    /// Patches for the manifests that kubeadm writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patches: Option<Patches>,
    /// Phases of `kubeadm init` to skip.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50), inner(length(min = 1, max = 256)))]
    pub skip_phases: Option<Vec<String>>,
}

/// A token that lets machines join.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BootstrapToken {
    /// What the token is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub description: Option<String>,
    /// When the token expires. Excludes a time to live.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<Time>,
    /// Groups that the token authenticates as.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
    pub groups: Option<Vec<String>>,
    /// The token, as `id.secret`.
    pub token: String,
    /// Time to live of the token, as a duration such as `24h0m0s`. Excludes `expires`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<String>,
    /// What the token may be used for: `signing`, `authentication`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
    pub usages: Option<Vec<String>>,
}

/// Address that the API server on this machine announces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalApiEndpoint {
    /// Address that the API server announces; the default route's address when empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 39))]
    pub advertise_address: Option<String>,
    /// Port that the API server listens on; 6443 when empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bind_port: Option<i32>,
}
