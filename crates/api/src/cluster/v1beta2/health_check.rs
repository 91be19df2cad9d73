//! What makes a Machine unhealthy, and what happens then; shared by `MachineHealthCheck` and topologies.

use crate::cluster::pattern;
use hangar_wire::wire;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Checks that make a Machine unhealthy.
#[wire(lenient)]
#[schemars(extend("minProperties" = 1))]
pub struct HealthChecks {
    /// Seconds that a Machine may take to get its Node; 600 when empty. 0 switches this check off.
    #[schemars(range(min = 0))]
    pub node_startup_timeout_seconds: Option<i32>,
    /// Conditions of the Machine that make it unhealthy.
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub unhealthy_machine_conditions: Option<Vec<UnhealthyMachineCondition>>,
    /// Conditions of the Node that make its Machine unhealthy.
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub unhealthy_node_conditions: Option<Vec<UnhealthyNodeCondition>>,
}

/// A condition of a Node that makes its Machine unhealthy when it lasts.
#[wire(lenient)]
pub struct UnhealthyNodeCondition {
    /// Status of the condition.
    #[schemars(length(min = 1))]
    pub status: String,
    /// Seconds that the condition must last.
    #[schemars(range(min = 0))]
    pub timeout_seconds: i32,
    /// Type of the condition.
    #[schemars(length(min = 1))]
    pub r#type: String,
}

/// A condition of a Machine that makes it unhealthy when it lasts.
#[wire(lenient)]
pub struct UnhealthyMachineCondition {
    /// Status of the condition.
    pub status: ConditionStatus,
    /// Seconds that the condition must last.
    #[schemars(range(min = 0))]
    pub timeout_seconds: i32,
    /// Type of the condition. Conditions that health checks write, and `Ready` and `Available`, which summarise them,
    /// are not allowed.
    #[schemars(length(min = 1, max = 316), regex(pattern = pattern::CONDITION_TYPE))]
    #[schemars(extend("x-kubernetes-validations" = [{ "rule": "!(self in ['Ready','Available','HealthCheckSucceeded','OwnerRemediated','ExternallyRemediated'])", "message": "type must not be one of: Ready, Available, HealthCheckSucceeded, OwnerRemediated, ExternallyRemediated" }]))]
    pub r#type: String,
}

/// Status of a condition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    /// It holds.
    #[default]
    True,
    /// It does not hold.
    False,
    /// It is not known whether it holds.
    Unknown,
}

/// Remediation of unhealthy Machines.
#[wire(lenient)]
#[schemars(extend("minProperties" = 1))]
pub struct Remediation {
    /// Template of the object that remediates a Machine; its owner remediates it when empty.
    pub template_ref: Option<RemediationTemplateReference>,
    /// When unhealthy Machines are remediated; always when empty.
    pub trigger_if: Option<RemediationTrigger>,
}

/// When unhealthy Machines are remediated. If many are unhealthy at once, they usually have a common cause, and
/// replacing them does not help.
#[wire(lenient)]
#[schemars(extend("minProperties" = 1))]
pub struct RemediationTrigger {
    /// The number of unhealthy Machines is in this range, such as [3-5].
    #[schemars(length(min = 1, max = 32), regex(pattern = pattern::COUNT_RANGE))]
    pub unhealthy_in_range: Option<String>,
    /// At most this many Machines are unhealthy, as a number or a percentage of all.
    pub unhealthy_less_than_or_equal_to: Option<IntOrString>,
}

/// Template of an object that remediates.
#[wire(lenient)]
pub struct RemediationTemplateReference {
    /// API version of the template, with its group.
    #[schemars(length(min = 1, max = 317), regex(pattern = pattern::API_VERSION))]
    pub api_version: String,
    /// Kind of the template.
    #[schemars(length(min = 1, max = 63), regex(pattern = pattern::KIND))]
    pub kind: String,
    /// Name of the template.
    #[schemars(length(min = 1, max = 253), regex(pattern = pattern::DNS_SUBDOMAIN))]
    pub name: String,
}
