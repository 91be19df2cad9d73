//! Cluster-wide settings that kubeadm uses when it initializes a control plane.

use std::collections::BTreeMap;

use hangar_wire::wire;

use super::etcd::Etcd;
use crate::bootstrap::env_var::EnvVar;
use crate::bootstrap::host_path_mount::HostPathMount;
use crate::bootstrap::image::Dns;

/// Cluster-wide settings for kubeadm. Only machines that run a kubeadm control plane need them.
#[wire]
pub struct ClusterConfiguration {
    /// Settings of the API server.
    pub api_server: Option<ApiServer>,
    /// Accepted for compatibility and ignored.
    pub api_version: Option<String>,
    /// Directory for certificates on the machine; `/etc/kubernetes/pki` when empty.
    #[schemars(length(min = 1, max = 512))]
    pub certificates_dir: Option<String>,
    /// Name of the cluster; taken from the Cluster object when empty.
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: Option<String>,
    /// Stable address of the control plane; taken from the Cluster object when empty.
    #[schemars(length(min = 1, max = 512))]
    pub control_plane_endpoint: Option<String>,
    /// Settings of the controller manager.
    pub controller_manager: Option<ControlPlaneComponent>,
    /// Image of the DNS add-on.
    pub dns: Option<Dns>,
    /// Settings of etcd.
    pub etcd: Option<Etcd>,
    /// Feature gates of kubeadm itself.
    pub feature_gates: Option<BTreeMap<String, bool>>,
    /// Registry and path that the images are pulled from.
    #[schemars(length(min = 1, max = 512))]
    pub image_repository: Option<String>,
    /// Accepted for compatibility and ignored.
    pub kind: Option<String>,
    /// Version of the control plane; taken from the Machine when empty.
    #[schemars(length(min = 1, max = 256))]
    pub kubernetes_version: Option<String>,
    /// Networks of the cluster; taken from the Cluster object when empty.
    pub networking: Option<Networking>,
    /// Settings of the scheduler.
    pub scheduler: Option<ControlPlaneComponent>,
}

/// Settings of the API server.
#[wire]
pub struct ApiServer {
    /// More names and addresses for the serving certificate.
    #[serde(rename = "certSANs")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 253)))]
    pub cert_sans: Option<Vec<String>>,
    /// More flags, without leading dashes.
    pub extra_args: Option<BTreeMap<String, String>>,
    /// More environment variables.
    #[schemars(length(max = 100))]
    pub extra_envs: Option<Vec<EnvVar>>,
    /// Paths of the machine that are mounted into the pod.
    #[schemars(length(max = 100))]
    pub extra_volumes: Option<Vec<HostPathMount>>,
    /// How long kubeadm waits for the API server, as a duration such as `4m0s`.
    pub timeout_for_control_plane: Option<String>,
}

/// Settings of the controller manager or the scheduler.
#[wire]
pub struct ControlPlaneComponent {
    /// More flags, without leading dashes.
    pub extra_args: Option<BTreeMap<String, String>>,
    /// More environment variables.
    #[schemars(length(max = 100))]
    pub extra_envs: Option<Vec<EnvVar>>,
    /// Paths of the machine that are mounted into the pod.
    #[schemars(length(max = 100))]
    pub extra_volumes: Option<Vec<HostPathMount>>,
}

/// Networks of the cluster.
#[wire]
pub struct Networking {
    /// DNS domain of Services; `cluster.local` when empty.
    #[schemars(length(min = 1, max = 253))]
    pub dns_domain: Option<String>,
    /// Address ranges of pods, separated by commas.
    #[schemars(length(min = 1, max = 1024))]
    pub pod_subnet: Option<String>,
    /// Address ranges of Services, separated by commas.
    #[schemars(length(min = 1, max = 1024))]
    pub service_subnet: Option<String>,
}
