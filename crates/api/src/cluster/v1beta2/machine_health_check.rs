//! `MachineHealthCheck`: finds unhealthy Machines and has them remediated.

use crate::cluster::legacy_condition::LegacyCondition;
use crate::cluster::v1beta2::health_check::{HealthChecks, Remediation};
use hangar_wire::wire;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::CustomResource;

/// Machines that are checked, the checks, and the remediation of unhealthy Machines.
#[wire(lenient)]
#[derive(CustomResource)]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta2",
    kind = "MachineHealthCheck",
    plural = "machinehealthchecks",
    namespaced,
    shortname = "mhc",
    shortname = "mhcs",
    category = "cluster-api",
    status = "MachineHealthCheckStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(
        name = "Cluster",
        type_ = "string",
        json_path = ".spec.clusterName",
        description = "Cluster"
    ),
    printcolumn(
        name = "Replicas",
        type_ = "integer",
        json_path = ".status.expectedMachines",
        description = "Machines that are checked"
    ),
    printcolumn(
        name = "Healthy",
        type_ = "integer",
        json_path = ".status.currentHealthy",
        description = "Machines that are healthy"
    ),
    printcolumn(
        name = "Paused",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Paused")].status"#,
        description = "Whether reconciliation is paused",
        priority = 10
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Time since creation"
    )
)]
pub struct MachineHealthCheckSpec {
    /// Checks that make a Machine unhealthy.
    pub checks: Option<HealthChecks>,
    /// Name of the Cluster it belongs to.
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: String,
    /// Remediation of unhealthy Machines.
    pub remediation: Option<Remediation>,
    /// Which Machines are checked.
    pub selector: LabelSelector,
}

/// Observed state of the Machines.
#[wire(lenient)]
#[schemars(extend("minProperties" = 1))]
pub struct MachineHealthCheckStatus {
    /// Conditions.
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// Number of checked Machines that are healthy.
    #[schemars(range(min = 0))]
    pub current_healthy: Option<i32>,
    /// Status fields of earlier versions.
    pub deprecated: Option<MachineHealthCheckDeprecatedStatus>,
    /// Number of Machines that are checked.
    #[schemars(range(min = 0))]
    pub expected_machines: Option<i32>,
    /// Generation of the spec that this status is about.
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,
    /// Number of Machines that may still be remediated now.
    #[schemars(range(min = 0))]
    pub remediations_allowed: Option<i32>,
    /// Names of the Machines that are checked.
    #[schemars(length(max = 10000), extend("x-kubernetes-list-type" = "atomic"), inner(length(min = 1, max = 253)))]
    pub targets: Option<Vec<String>>,
}

/// Status fields of earlier versions.
#[wire(lenient)]
pub struct MachineHealthCheckDeprecatedStatus {
    /// Status fields of v1beta1.
    pub v1beta1: Option<MachineHealthCheckStatusV1Beta1>,
}

/// Status fields of v1beta1 that this version replaced.
#[wire(lenient)]
pub struct MachineHealthCheckStatusV1Beta1 {
    /// Conditions of v1beta1.
    pub conditions: Option<Vec<LegacyCondition>>,
}
