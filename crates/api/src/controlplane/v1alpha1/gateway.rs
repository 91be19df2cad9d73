//! The Gateway through which users reach the API server.

use hangar_wire::wire;

/// A Gateway with a listener of protocol TLS, mode Passthrough and a wildcard as hostname, whose `allowedRoutes` admit
/// this namespace. The API server's host is then `<cluster>.<namespace>.<wildcard's domain>`.
#[wire]
pub struct GatewayReference {
    /// Namespace of the Gateway.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Name of the Gateway.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Name of the listener to use; the first that fits when empty.
    #[schemars(length(min = 1, max = 253))]
    pub section_name: Option<String>,
    /// Port that users connect to; the listener's when empty.
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
}
