//! Ways to find and trust the API server; both versions have the same types.

use std::collections::BTreeMap;

use hangar_wire::wire;
use schemars::Schema;

use super::kube_config_cluster::KubeConfigCluster;
use super::newer::refuse_empty;

/// Discovery by a bootstrap token.
#[wire]
pub struct BootstrapTokenDiscovery {
    /// Host and port of the API server.
    #[schemars(length(min = 1, max = 512))]
    pub api_server_endpoint: Option<String>,
    /// Hashes of the public keys that the certificate authority may have, as `sha256:hex`.
    #[schemars(length(max = 100), inner(length(min = 1, max = 512)))]
    pub ca_cert_hashes: Option<Vec<String>>,
    /// The token that validates the cluster information.
    #[schemars(length(min = 1, max = 512))]
    pub token: Option<String>,
    /// Trust any certificate authority. For tests only.
    #[serde(rename = "unsafeSkipCAVerification")]
    pub unsafe_skip_ca_verification: Option<bool>,
}

/// Discovery by a kubeconfig file.
#[wire]
pub struct FileDiscovery {
    /// A kubeconfig to write to `kubeConfigPath`.
    pub kube_config: Option<FileDiscoveryKubeConfig>,
    /// Path or URL of the kubeconfig.
    #[schemars(length(min = 1, max = 512))]
    pub kube_config_path: String,
}

/// The kubeconfig that is written for discovery.
#[wire]
pub struct FileDiscoveryKubeConfig {
    /// How the API server is reached; filled in from the Cluster when empty.
    pub cluster: Option<KubeConfigCluster>,
    /// How the machine authenticates.
    pub user: KubeConfigUser,
}

/// How the machine authenticates during discovery.
#[wire]
pub struct KubeConfigUser {
    /// An authentication plugin that is built into the client.
    pub auth_provider: Option<KubeConfigAuthProvider>,
    /// A command that prints credentials.
    pub exec: Option<KubeConfigAuthExec>,
}

/// An authentication plugin that is built into the client.
#[wire]
pub struct KubeConfigAuthProvider {
    /// Settings of the plugin.
    pub config: Option<BTreeMap<String, String>>,
    /// Name of the plugin.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
}

/// A command that prints credentials.
#[wire]
pub struct KubeConfigAuthExec {
    /// Version of the credential format; `client.authentication.k8s.io/v1` when empty.
    #[schemars(length(min = 1, max = 512))]
    pub api_version: Option<String>,
    /// Arguments of the command.
    #[schemars(length(max = 100), inner(length(min = 1, max = 512)))]
    pub args: Option<Vec<String>>,
    /// The command to run.
    #[schemars(length(min = 1, max = 1024))]
    pub command: String,
    /// More environment variables of the command.
    #[schemars(length(max = 100))]
    pub env: Option<Vec<KubeConfigAuthExecEnv>>,
    /// Pass the cluster entry to the command.
    pub provide_cluster_info: Option<bool>,
}

/// An environment variable of the credential command.
#[wire]
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
