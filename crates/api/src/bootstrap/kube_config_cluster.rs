//! The cluster entry of a discovery kubeconfig; both versions have the same type.

use hangar_wire::wire;

/// How the API server is reached and verified during discovery.
#[wire]
pub struct KubeConfigCluster {
    /// Certificate authorities in PEM, base64 encoded; the Cluster's own when empty.
    #[schemars(length(min = 1, max = 51200), extend("format" = "byte"))]
    pub certificate_authority_data: Option<String>,
    /// Do not verify the server's certificate. For tests only.
    #[serde(rename = "insecureSkipTLSVerify")]
    pub insecure_skip_tls_verify: Option<bool>,
    /// Proxy for all requests to the server.
    #[serde(rename = "proxyURL")]
    #[schemars(length(min = 1, max = 512))]
    pub proxy_url: Option<String>,
    /// URL of the API server; the Cluster's endpoint when empty.
    #[schemars(length(min = 1, max = 512))]
    pub server: Option<String>,
    /// Name to verify the server's certificate against instead of the host in `server`.
    #[schemars(length(min = 1, max = 512))]
    pub tls_server_name: Option<String>,
}
