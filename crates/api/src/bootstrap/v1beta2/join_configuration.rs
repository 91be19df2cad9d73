//! Settings of `kubeadm join` for every further machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::discovery::Discovery;
use super::init_configuration::LocalApiEndpoint;
use super::node_registration::NodeRegistration;
use super::timeouts::Timeouts;
use crate::bootstrap::image::Patches;

/// Settings of `kubeadm join`, for workers and for further control plane machines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JoinConfiguration {
    /// Path on the machine of the cluster's certificate authority; `/etc/kubernetes/pki/ca.crt` when empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub ca_cert_path: Option<String>,
    /// Present when the machine joins as a control plane machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<JoinControlPlane>,
    /// How the machine finds and trusts the API server; filled in when empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub discovery: Option<Discovery>,
    /// How the node registers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub node_registration: Option<NodeRegistration>,
    /// Patches for the manifests that kubeadm writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub patches: Option<Patches>,
    /// Phases of `kubeadm join` to skip.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 50), inner(length(min = 1, max = 256)), extend("x-kubernetes-list-type" = "atomic"))]
    pub skip_phases: Option<Vec<String>>,
    /// How long kubeadm waits for each of its steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub timeouts: Option<Timeouts>,
}

/// Settings of a machine that joins as a control plane machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JoinControlPlane {
    /// Where the API server on this machine listens.
    #[serde(rename = "localAPIEndpoint", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub local_api_endpoint: Option<LocalApiEndpoint>,
}
