//! How a joining machine finds and trusts the API server.

use crate::bootstrap::discovery::{BootstrapTokenDiscovery, FileDiscovery, newer_file, newer_token};
use hangar_wire::wire;

/// How a joining machine finds and trusts the API server.
#[wire]
pub struct Discovery {
    /// Discovery by a bootstrap token.
    #[schemars(transform = newer_token)]
    pub bootstrap_token: Option<BootstrapTokenDiscovery>,
    /// Discovery by a kubeconfig file.
    #[schemars(transform = newer_file)]
    pub file: Option<FileDiscovery>,
    /// Token for the kubelet's first certificate; the discovery token when empty.
    #[schemars(length(min = 1, max = 512))]
    pub tls_bootstrap_token: Option<String>,
}
