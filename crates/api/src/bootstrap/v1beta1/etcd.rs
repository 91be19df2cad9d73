//! etcd of a kubeadm control plane: run beside it, or brought along.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bootstrap::env_var::EnvVar;
use crate::bootstrap::external_etcd::ExternalEtcd;

/// Settings of etcd. `local` and `external` exclude each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Etcd {
    /// An etcd that is run by somebody else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalEtcd>,
    /// An etcd member on each control plane machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<LocalEtcd>,
}

/// An etcd member that kubeadm runs on the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalEtcd {
    /// Directory for the data; `/var/lib/etcd` when empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub data_dir: Option<String>,
    /// More flags, without leading dashes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extra_args: Option<BTreeMap<String, String>>,
    /// More environment variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub extra_envs: Option<Vec<EnvVar>>,
    /// Registry and path that the image is pulled from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image_repository: Option<String>,
    /// Tag of the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub image_tag: Option<String>,
    /// More names and addresses for the peer certificate.
    #[serde(rename = "peerCertSANs", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 253)))]
    pub peer_cert_sans: Option<Vec<String>>,
    /// More names and addresses for the serving certificate.
    #[serde(rename = "serverCertSANs", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 253)))]
    pub server_cert_sans: Option<Vec<String>>,
}
