//! How a joining machine finds and trusts the API server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bootstrap::discovery::{BootstrapTokenDiscovery, FileDiscovery};

/// How a joining machine finds and trusts the API server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Discovery {
    /// Discovery by a bootstrap token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bootstrap_token: Option<BootstrapTokenDiscovery>,
    /// Discovery by a kubeconfig file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<FileDiscovery>,
    /// How long discovery may take, as a duration such as `5m0s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// Token for the kubelet's first certificate; the discovery token when empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub tls_bootstrap_token: Option<String>,
}
