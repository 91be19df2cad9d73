//! `MachineHealthCheck` in v1beta1.

use crate::cluster::legacy_condition::LegacyCondition;
use crate::cluster::pattern;
use crate::reference::ObjectReference;
use hangar_wire::wire;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;

/// Machines that are checked, the checks, and the remediation of unhealthy Machines.
#[wire(lenient)]
#[derive(CustomResource)]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta1",
    kind = "MachineHealthCheck",
    plural = "machinehealthchecks",
    namespaced,
    shortname = "mhc",
    shortname = "mhcs",
    category = "cluster-api",
    status = "MachineHealthCheckStatus",
    derive = "Default",
    derive = "PartialEq",
    storage = false,
    deprecated,
    printcolumn(
        name = "Cluster",
        type_ = "string",
        json_path = ".spec.clusterName",
        description = "Cluster"
    ),
    printcolumn(
        name = "ExpectedMachines",
        type_ = "integer",
        json_path = ".status.expectedMachines",
        description = "Machines that are checked"
    ),
    printcolumn(
        name = "MaxUnhealthy",
        type_ = "string",
        json_path = ".spec.maxUnhealthy",
        description = "Most unhealthy Machines that are still remediated"
    ),
    printcolumn(
        name = "CurrentHealthy",
        type_ = "integer",
        json_path = ".status.currentHealthy",
        description = "Machines that are healthy"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Time since creation"
    )
)]
pub struct MachineHealthCheckSpec {
    /// Name of the Cluster it belongs to.
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: String,
    /// Remediates only while at most this many Machines are unhealthy, as a number or a percentage.
    pub max_unhealthy: Option<IntOrString>,
    /// How long a Machine may take to get its Node, as a duration; 0 switches this check off.
    pub node_startup_timeout: Option<String>,
    /// Template of the object that remediates a Machine; its owner remediates it when empty.
    pub remediation_template: Option<ObjectReference>,
    /// Which Machines are checked.
    pub selector: LabelSelector,
    /// Node conditions that make a Machine unhealthy.
    #[schemars(length(max = 100))]
    pub unhealthy_conditions: Option<Vec<UnhealthyCondition>>,
    /// Remediates only while the number of unhealthy Machines is in this range, such as [3-5].
    #[schemars(length(min = 1, max = 32), regex(pattern = pattern::COUNT_RANGE))]
    pub unhealthy_range: Option<String>,
}

/// A condition of a Node that makes its Machine unhealthy when it lasts.
#[wire(lenient)]
pub struct UnhealthyCondition {
    /// Status of the condition.
    #[schemars(length(min = 1))]
    pub status: String,
    /// Time that the condition must last, as a duration such as 5m.
    pub timeout: String,
    /// Type of the condition.
    #[schemars(length(min = 1))]
    pub r#type: String,
}

/// Observed state of the Machines.
#[wire(lenient)]
pub struct MachineHealthCheckStatus {
    /// Conditions of v1beta1.
    pub conditions: Option<Vec<LegacyCondition>>,
    /// Number of checked Machines that are healthy.
    #[schemars(range(min = 0))]
    pub current_healthy: Option<i32>,
    /// Number of Machines that are checked.
    #[schemars(range(min = 0))]
    pub expected_machines: Option<i32>,
    /// Generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Number of Machines that may still be remediated now.
    #[schemars(range(min = 0))]
    pub remediations_allowed: Option<i32>,
    /// Names of the Machines that are checked.
    #[schemars(length(max = 10000), inner(length(min = 1, max = 253)))]
    pub targets: Option<Vec<String>>,
    /// Status fields of v1beta2.
    pub v1beta2: Option<MachineHealthCheckStatusV1Beta2>,
}

/// Status fields of v1beta2.
#[wire(lenient)]
pub struct MachineHealthCheckStatusV1Beta2 {
    /// Conditions of v1beta2.
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
}
