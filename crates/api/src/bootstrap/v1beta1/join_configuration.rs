//! Settings of `kubeadm join` for every further machine.

use super::discovery::Discovery;
use super::init_configuration::LocalApiEndpoint;
use super::node_registration::NodeRegistration;
use crate::bootstrap::image::Patches;
use hangar_wire::wire;

/// Settings of `kubeadm join`, for workers and for further control plane machines.
#[wire]
pub struct JoinConfiguration {
    /// Accepted for compatibility and ignored.
    pub api_version: Option<String>,
    /// Path on the machine of the cluster's certificate authority; `/etc/kubernetes/pki/ca.crt` when empty.
    #[schemars(length(min = 1, max = 512))]
    pub ca_cert_path: Option<String>,
    /// Present when the machine joins as a control plane machine.
    pub control_plane: Option<JoinControlPlane>,
    /// How the machine finds and trusts the API server; filled in when empty.
    pub discovery: Option<Discovery>,
    /// Accepted for compatibility and ignored.
    pub kind: Option<String>,
    /// How the node registers.
    pub node_registration: Option<NodeRegistration>,
    /// Patches for the manifests that kubeadm writes.
    pub patches: Option<Patches>,
    /// Phases of `kubeadm join` to skip.
    #[schemars(length(max = 50), inner(length(min = 1, max = 256)))]
    pub skip_phases: Option<Vec<String>>,
}

/// Settings of a machine that joins as a control plane machine.
#[wire]
pub struct JoinControlPlane {
    /// Where the API server on this machine listens.
    #[serde(rename = "localAPIEndpoint")]
    pub local_api_endpoint: Option<LocalApiEndpoint>,
}
