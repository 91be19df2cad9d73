//! Cluster-wide settings that kubeadm uses when it initializes a control plane.

use std::collections::BTreeMap;

use hangar_wire::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::arg::{Arg, unique_names};
use super::etcd::Etcd;
use crate::bootstrap::env_var::EnvVar;
use crate::bootstrap::host_path_mount::HostPathMount;
use crate::bootstrap::image::Dns;

/// Cluster-wide settings for kubeadm. Only machines that run a kubeadm control plane need them.
#[wire]
pub struct ClusterConfiguration {
    /// Settings of the API server.
    #[schemars(extend("minProperties" = 1))]
    pub api_server: Option<ApiServer>,
    /// Validity in days of the certificate authorities that are generated.
    #[schemars(range(min = 1, max = 36500))]
    pub ca_certificate_validity_period_days: Option<i32>,
    /// Validity in days of the certificates that are generated.
    #[schemars(range(min = 1, max = 1095))]
    pub certificate_validity_period_days: Option<i32>,
    /// Directory for certificates on the machine; `/etc/kubernetes/pki` when empty.
    #[schemars(length(min = 1, max = 512))]
    pub certificates_dir: Option<String>,
    /// Stable address of the control plane; taken from the Cluster object when empty.
    #[schemars(length(min = 1, max = 512))]
    pub control_plane_endpoint: Option<String>,
    /// Settings of the controller manager.
    #[schemars(extend("minProperties" = 1))]
    pub controller_manager: Option<ControlPlaneComponent>,
    /// Image of the DNS add-on.
    #[schemars(extend("minProperties" = 1))]
    pub dns: Option<Dns>,
    /// Algorithm of the keys that are generated.
    pub encryption_algorithm: Option<EncryptionAlgorithm>,
    /// Settings of etcd.
    #[schemars(extend("minProperties" = 1))]
    pub etcd: Option<Etcd>,
    /// Feature gates of kubeadm itself.
    pub feature_gates: Option<BTreeMap<String, bool>>,
    /// Registry and path that the images are pulled from.
    #[schemars(length(min = 1, max = 512))]
    pub image_repository: Option<String>,
    /// Settings of the scheduler.
    #[schemars(extend("minProperties" = 1))]
    pub scheduler: Option<ControlPlaneComponent>,
}

/// Settings of the API server.
#[wire]
pub struct ApiServer {
    /// More names and addresses for the serving certificate.
    #[serde(rename = "certSANs")]
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 253)), extend("x-kubernetes-list-type" = "atomic"))]
    pub cert_sans: Option<Vec<String>>,
    /// More flags, without leading dashes.
    #[schemars(length(min = 1, max = 100), transform = unique_names)]
    pub extra_args: Option<Vec<Arg>>,
    /// More environment variables.
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub extra_envs: Option<Vec<EnvVar>>,
    /// Paths of the machine that are mounted into the pod.
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub extra_volumes: Option<Vec<HostPathMount>>,
}

/// Settings of the controller manager or the scheduler.
#[wire]
pub struct ControlPlaneComponent {
    /// More flags, without leading dashes.
    #[schemars(length(min = 1, max = 100), transform = unique_names)]
    pub extra_args: Option<Vec<Arg>>,
    /// More environment variables.
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub extra_envs: Option<Vec<EnvVar>>,
    /// Paths of the machine that are mounted into the pod.
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub extra_volumes: Option<Vec<HostPathMount>>,
}

/// Algorithm of generated keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum EncryptionAlgorithm {
    /// Elliptic curve P-256.
    #[serde(rename = "ECDSA-P256")]
    EcdsaP256,
    /// Elliptic curve P-384.
    #[serde(rename = "ECDSA-P384")]
    EcdsaP384,
    /// RSA with 2048 bits.
    #[serde(rename = "RSA-2048")]
    Rsa2048,
    /// RSA with 3072 bits.
    #[serde(rename = "RSA-3072")]
    Rsa3072,
    /// RSA with 4096 bits.
    #[serde(rename = "RSA-4096")]
    Rsa4096,
}
