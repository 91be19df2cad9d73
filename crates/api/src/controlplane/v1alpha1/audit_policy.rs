//! The audit policy, in the format of `audit.k8s.io/v1`.

use std::collections::BTreeMap;

use hangar_wire::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Policy: which requests are recorded, and in which detail. The first rule that matches a request counts.
#[wire]
pub struct AuditPolicy {
    /// `audit.k8s.io/v1`; accepted so that a whole policy can be pasted.
    pub api_version: Option<String>,
    /// `Policy`; accepted so that a whole policy can be pasted.
    pub kind: Option<String>,
    /// Accepted and ignored, so that a whole policy can be pasted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "any_object")]
    pub metadata: BTreeMap<String, serde_json::Value>,
    /// The rules, in order.
    pub rules: Vec<AuditRule>,
    /// Stages for which nothing is recorded, in all rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub omit_stages: Vec<AuditStage>,
    /// Omits managed fields from recorded bodies, unless a rule sets another value.
    pub omit_managed_fields: Option<bool>,
}

fn any_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// One rule. Empty lists match everything.
#[wire]
pub struct AuditRule {
    /// Level of detail of a record.
    pub level: AuditLevel,
    /// Users whose requests match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<String>,
    /// Groups whose members' requests match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub user_groups: Vec<String>,
    /// Verbs that match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verbs: Vec<String>,
    /// Resources that match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<AuditResources>,
    /// Namespaces that match; the empty string is for resources without one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Paths that match, for requests that are not about resources.
    #[serde(rename = "nonResourceURLs", default, skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<String>,
    /// Stages for which nothing is recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub omit_stages: Vec<AuditStage>,
    /// Omits managed fields from recorded bodies.
    pub omit_managed_fields: Option<bool>,
}

/// Resources of one API group.
#[wire]
#[serde(default)]
pub struct AuditResources {
    /// The group; the core group when empty.
    pub group: Option<String>,
    /// Resources, `resource/subresource` or `*`; all when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// Names of objects; all when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
}

/// How much of a request is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AuditLevel {
    /// Nothing.
    #[default]
    None,
    /// Who, what and when.
    Metadata,
    /// Also the body of the request.
    Request,
    /// Also the body of the answer.
    RequestResponse,
}

/// A moment in the life of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AuditStage {
    /// The request has arrived.
    RequestReceived,
    /// The headers of the answer are sent, its body is not yet.
    ResponseStarted,
    /// The answer is sent.
    ResponseComplete,
    /// The request ended in a panic.
    Panic,
}
