//! Which requests to the API server are recorded, and where the records are sent.

use hangar_wire::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AuditPolicy, Container};

/// Auditing of the API server.
#[wire]
pub struct Audit {
    /// Policy: which requests are recorded, and in which detail.
    pub policy: AuditPolicy,
    /// Whether requests wait for their record to be sent.
    #[serde(default)]
    pub mode: AuditMode,
    /// Where records are sent; to the container's output when empty.
    pub webhook: Option<AuditWebhook>,
}

/// Whether requests wait for their record to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AuditMode {
    /// Records are collected and sent in the background.
    #[default]
    Batch,
    /// Each request waits until its record is sent.
    Blocking,
    /// As `Blocking`, and a request fails if its first record cannot be sent.
    BlockingStrict,
}

/// Where records are sent. A proxy beside the API server sends each record to all targets.
#[wire]
pub struct AuditWebhook {
    /// The proxy.
    #[serde(flatten)]
    pub container: Container,
    /// Targets of the records; every target gets every record.
    #[schemars(length(min = 1, max = 16))]
    pub targets: Vec<AuditTarget>,
}

/// A receiver of audit records.
#[wire]
pub struct AuditTarget {
    /// URL of the receiver.
    #[schemars(length(min = 1, max = 2048), extend("pattern" = "^https?://"))]
    pub server: String,
    /// Token that is sent along.
    pub authentication: Option<AuditAuthentication>,
}

/// Where the token for an audit receiver is.
#[wire]
pub struct AuditAuthentication {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub secret_name: String,
    /// Namespace of the Secret: empty, or the control plane's own. Others are refused.
    pub secret_namespace: Option<String>,
    /// Key in the Secret; `token` when empty.
    pub token_key: Option<String>,
}
