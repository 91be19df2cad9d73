//! Which requests to the API server are recorded, and where the records are sent.

use hangar_wire::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AuditPolicy, Container};

/// Auditing of the API server. Records go to a file, to receivers, or to both; to the container's output when neither is
/// given.
#[wire]
pub struct Audit {
    /// Policy: which requests are recorded, and in which detail.
    pub policy: AuditPolicy,
    /// Whether requests wait for their record to be written and sent.
    #[serde(default)]
    pub mode: AuditMode,
    /// Writes records to files in the pod: `/var/log/kubernetes/audit/audit.log` of the container `kube-apiserver`, on a
    /// volume that ends with the pod.
    pub log: Option<AuditLog>,
    /// Receivers that records are sent to.
    pub webhook: Option<AuditWebhook>,
}

/// Files of audit records. The oldest file is deleted when there are too many.
#[wire]
#[serde(default)]
pub struct AuditLog {
    /// Size at which another file is begun, in MiB; 100 when empty.
    #[schemars(range(min = 1, max = 512))]
    pub max_size: Option<i32>,
    /// How many older files are kept; 2 when empty.
    #[schemars(range(min = 1, max = 10))]
    pub max_backups: Option<i32>,
    /// How many days an older file is kept at most; as long as `maxBackups` allows when empty.
    #[schemars(range(min = 1, max = 3650))]
    pub max_age: Option<i32>,
    /// Format of a record; `json` when empty.
    pub format: Option<AuditLogFormat>,
}

/// Format of a record in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AuditLogFormat {
    /// The whole record, as `audit.k8s.io/v1`.
    #[default]
    Json,
    /// One line of text, without bodies.
    Legacy,
}

/// Whether requests wait for their record to be written and sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AuditMode {
    /// Records are collected and sent in the background. Those for a receiver that is away for long are lost.
    #[default]
    Batch,
    /// Each request waits until every receiver has its record, or several tries have failed.
    Blocking,
    /// As `Blocking`, and a request fails if its first record cannot be sent.
    BlockingStrict,
}

/// Where records are sent. A proxy beside the API server sends each record to all targets, from the management cluster.
#[wire]
pub struct AuditWebhook {
    /// The proxy. Its image is the manager's by default; `registry` and `repository` are given together or not at all.
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
    /// Certificate authorities in PEM for the receiver; the system's when empty.
    #[schemars(length(max = 65536))]
    pub certificate_authority: Option<String>,
    /// Token that is sent along, as `Authorization: Bearer`. It needs an `https` URL.
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
    #[schemars(length(min = 1, max = 253))]
    pub token_key: Option<String>,
}
