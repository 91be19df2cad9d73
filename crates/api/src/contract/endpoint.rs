//! The endpoint: host and port of an API server.

use hangar_wire::wire;

/// Host and port of an API server. It counts only when both are set.
#[wire]
#[derive(Eq)]
#[serde(default)]
pub struct Endpoint {
    /// Name or address.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 512))]
    pub host: String,
    /// Port.
    #[serde(skip_serializing_if = "is_zero")]
    pub port: i32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(port: &i32) -> bool {
    *port == 0
}

impl Endpoint {
    /// Whether host and port are both known.
    pub fn is_valid(&self) -> bool {
        !self.host.is_empty() && self.port != 0
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(formatter, "[{}]:{}", self.host, self.port)
        } else {
            write!(formatter, "{}:{}", self.host, self.port)
        }
    }
}
