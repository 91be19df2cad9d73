//! How long kubeadm waits.

use hangar_wire::wire;

/// How long kubeadm waits for each of its steps, in seconds.
#[wire]
pub struct Timeouts {
    /// Wait for a control plane component to become healthy.
    #[schemars(range(min = 0))]
    pub control_plane_component_health_check_seconds: Option<i32>,
    /// Wait for discovery of the cluster when joining.
    #[schemars(range(min = 0))]
    pub discovery_seconds: Option<i32>,
    /// Wait for calls to etcd.
    #[serde(rename = "etcdAPICallSeconds")]
    #[schemars(range(min = 0))]
    pub etcd_api_call_seconds: Option<i32>,
    /// Wait for the kubelet to become healthy.
    #[schemars(range(min = 0))]
    pub kubelet_health_check_seconds: Option<i32>,
    /// Wait for calls to the API server.
    #[serde(rename = "kubernetesAPICallSeconds")]
    #[schemars(range(min = 0))]
    pub kubernetes_api_call_seconds: Option<i32>,
    /// Wait for the kubelet's first certificate.
    #[schemars(range(min = 0))]
    pub tls_bootstrap_seconds: Option<i32>,
}
