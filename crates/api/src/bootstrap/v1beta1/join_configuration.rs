//! Settings of `kubeadm join` for every further machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::discovery::Discovery;
use super::init_configuration::LocalApiEndpoint;
use super::node_registration::NodeRegistration;
use crate::bootstrap::image::Patches;

/// Settings of `kubeadm join`, for workers and for further control plane machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JoinConfiguration {
    /// Accepted for compatibility and ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Path on the machine of the cluster's certificate authority; `/etc/kubernetes/pki/ca.crt` when empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub ca_cert_path: Option<String>,
    /// Present when the machine joins as a control plane machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<JoinControlPlane>,
    /// How the machine finds and trusts the API server; filled in when empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discovery: Option<Discovery>,
    /// Accepted for compatibility and ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// How the node registers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_registration: Option<NodeRegistration>,
    /// Patches for the manifests that kubeadm writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patches: Option<Patches>,
    /// Phases of `kubeadm join` to skip.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50), inner(length(min = 1, max = 256)))]
    pub skip_phases: Option<Vec<String>>,
}

/// Settings of a machine that joins as a control plane machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JoinControlPlane {
    /// Where the API server on this machine listens.
    #[serde(rename = "localAPIEndpoint", skip_serializing_if = "Option::is_none")]
    pub local_api_endpoint: Option<LocalApiEndpoint>,
}
