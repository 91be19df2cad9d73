//! Ways to find and trust the API server, in the shapes both versions share.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use super::kube_config_cluster::KubeConfigCluster;
use super::newer::refuse_empty;

/// Discovery by a bootstrap token.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BootstrapTokenDiscovery {
    /// Host and port of the API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub api_server_endpoint: Option<String>,
    /// Hashes of the public keys that the certificate authority may have, as `sha256:hex`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 512)))]
    pub ca_cert_hashes: Option<Vec<String>>,
    /// The token that validates the cluster information.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub token: Option<String>,
    /// Trust any certificate authority. For tests only.
    #[serde(rename = "unsafeSkipCAVerification", skip_serializing_if = "Option::is_none")]
    pub unsafe_skip_ca_verification: Option<bool>,
}

/// Discovery by a kubeconfig file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileDiscovery {
    /// A kubeconfig to write to `kubeConfigPath`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kube_config: Option<FileDiscoveryKubeConfig>,
    /// Path or URL of the kubeconfig.
    #[schemars(length(min = 1, max = 512))]
    pub kube_config_path: String,
}

/// The kubeconfig that is written for discovery.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileDiscoveryKubeConfig {
    /// How the API server is reached; filled in from the Cluster when empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<KubeConfigCluster>,
    /// How the machine authenticates.
    pub user: KubeConfigUser,
}

/// How the machine authenticates during discovery.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeConfigUser {
    /// An authentication plugin that is built into the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_provider: Option<KubeConfigAuthProvider>,
    /// A command that prints credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec: Option<KubeConfigAuthExec>,
}

/// An authentication plugin that is built into the client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeConfigAuthProvider {
    /// Settings of the plugin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<BTreeMap<String, String>>,
    /// Name of the plugin.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
}

/// A command that prints credentials.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeConfigAuthExec {
    /// Version of the credential format; `client.authentication.k8s.io/v1` when empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub api_version: Option<String>,
    /// Arguments of the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 512)))]
    pub args: Option<Vec<String>>,
    /// The command to run.
    #[schemars(length(min = 1, max = 1024))]
    pub command: String,
    /// More environment variables of the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub env: Option<Vec<KubeConfigAuthExecEnv>>,
    /// Pass the cluster entry to the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provide_cluster_info: Option<bool>,
}

/// An environment variable of the credential command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeConfigAuthExecEnv {
    /// Name of the variable.
    #[schemars(length(min = 1, max = 512))]
    pub name: String,
    /// Value of the variable.
    #[schemars(length(min = 1, max = 512))]
    pub value: String,
}

/// The bounds of the newer version.
pub(super) fn newer_token(schema: &mut Schema) {
    refuse_empty(schema, &["", "/properties/caCertHashes"]);
}

/// The bounds of the newer version.
pub(super) fn newer_file(schema: &mut Schema) {
    const CONFIG: &str = "/properties/kubeConfig/properties";
    let places =
        ["cluster", "user", "user/properties/exec/properties/args", "user/properties/exec/properties/env"];
    refuse_empty(schema, &places.map(|place| format!("{CONFIG}/{place}")));
}
