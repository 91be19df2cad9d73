//! etcd of a kubeadm control plane: run by kubeadm, or external.

use super::arg::{Arg, unique_names};
use crate::bootstrap::env_var::EnvVar;
use crate::bootstrap::external_etcd::{ExternalEtcd, newer};
use hangar_wire::wire;

/// Settings of etcd. At most one of `local` and `external` may be given.
#[wire]
pub struct Etcd {
    /// An external etcd, which kubeadm does not run.
    #[schemars(transform = newer)]
    pub external: Option<ExternalEtcd>,
    /// An etcd member on each control plane machine.
    #[schemars(extend("minProperties" = 1))]
    pub local: Option<LocalEtcd>,
}

/// An etcd member that kubeadm runs on the machine.
#[wire]
pub struct LocalEtcd {
    /// Directory for the data; `/var/lib/etcd` when empty.
    #[schemars(length(min = 1, max = 512))]
    pub data_dir: Option<String>,
    /// More flags, without leading dashes.
    #[schemars(length(min = 1, max = 100), transform = unique_names)]
    pub extra_args: Option<Vec<Arg>>,
    /// More environment variables.
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub extra_envs: Option<Vec<EnvVar>>,
    /// Registry and path that the image is pulled from.
    #[schemars(length(min = 1, max = 512))]
    pub image_repository: Option<String>,
    /// Tag of the image.
    #[schemars(length(min = 1, max = 256))]
    pub image_tag: Option<String>,
    /// More names and addresses for the peer certificate.
    #[serde(rename = "peerCertSANs")]
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 253)), extend("x-kubernetes-list-type" = "atomic"))]
    pub peer_cert_sans: Option<Vec<String>>,
    /// More names and addresses for the serving certificate.
    #[serde(rename = "serverCertSANs")]
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 253)), extend("x-kubernetes-list-type" = "atomic"))]
    pub server_cert_sans: Option<Vec<String>>,
}
