//! How a joining machine finds and trusts the API server.

use crate::bootstrap::discovery::{BootstrapTokenDiscovery, FileDiscovery};
use hangar_wire::wire;

/// How a joining machine finds and trusts the API server.
#[wire]
pub struct Discovery {
    /// Discovery by a bootstrap token.
    pub bootstrap_token: Option<BootstrapTokenDiscovery>,
    /// Discovery by a kubeconfig file.
    pub file: Option<FileDiscovery>,
    /// How long discovery may take, as a duration such as `5m0s`.
    pub timeout: Option<String>,
    /// Token for the kubelet's first certificate; the discovery token when empty.
    #[schemars(length(min = 1, max = 512))]
    pub tls_bootstrap_token: Option<String>,
}
