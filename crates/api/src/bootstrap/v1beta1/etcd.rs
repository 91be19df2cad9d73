//! etcd of a kubeadm control plane: run by kubeadm, or external.

use std::collections::BTreeMap;

use hangar_wire::wire;

use crate::bootstrap::env_var::EnvVar;
use crate::bootstrap::external_etcd::ExternalEtcd;

/// Settings of etcd. At most one of `local` and `external` may be given.
#[wire]
pub struct Etcd {
    /// An external etcd, which kubeadm does not run.
    pub external: Option<ExternalEtcd>,
    /// An etcd member on each control plane machine.
    pub local: Option<LocalEtcd>,
}

/// An etcd member that kubeadm runs on the machine.
#[wire]
pub struct LocalEtcd {
    /// Directory for the data; `/var/lib/etcd` when empty.
    #[schemars(length(min = 1, max = 512))]
    pub data_dir: Option<String>,
    /// More flags, without leading dashes.
    pub extra_args: Option<BTreeMap<String, String>>,
    /// More environment variables.
    #[schemars(length(max = 100))]
    pub extra_envs: Option<Vec<EnvVar>>,
    /// Registry and path that the image is pulled from.
    #[schemars(length(min = 1, max = 512))]
    pub image_repository: Option<String>,
    /// Tag of the image.
    #[schemars(length(min = 1, max = 256))]
    pub image_tag: Option<String>,
    /// More names and addresses for the peer certificate.
    #[serde(rename = "peerCertSANs")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 253)))]
    pub peer_cert_sans: Option<Vec<String>>,
    /// More names and addresses for the serving certificate.
    #[serde(rename = "serverCertSANs")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 253)))]
    pub server_cert_sans: Option<Vec<String>>,
}
