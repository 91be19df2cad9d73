//! How a joining machine finds and trusts the API server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bootstrap::discovery::{BootstrapTokenDiscovery, FileDiscovery, newer_file, newer_token};

/// How a joining machine finds and trusts the API server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Discovery {
    /// Discovery by a bootstrap token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = newer_token)]
    pub bootstrap_token: Option<BootstrapTokenDiscovery>,
    /// Discovery by a kubeconfig file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(transform = newer_file)]
    pub file: Option<FileDiscovery>,
    /// Token for the kubelet's first certificate; the discovery token when empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub tls_bootstrap_token: Option<String>,
}
