//! `MachineDeployment`: Machines of a template that changes, replaced step by step.

use crate::cluster::legacy_condition::LegacyCondition;
use crate::cluster::rollout::{MachineNaming, RolloutStrategyType};
use crate::cluster::v1beta2::machine::MachineTemplateSpec;
use crate::cluster::v1beta2::machine_set::MachineSetDeletion;
use hangar_wire::wire;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number and template of the Machines, and how they are replaced.
#[wire(lenient)]
#[derive(CustomResource)]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta2",
    kind = "MachineDeployment",
    plural = "machinedeployments",
    namespaced,
    shortname = "md",
    category = "cluster-api",
    status = "MachineDeploymentStatus",
    derive = "Default",
    derive = "PartialEq",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(
        name = "Cluster",
        type_ = "string",
        json_path = ".spec.clusterName",
        description = "Cluster"
    ),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Available")].status"#,
        description = "Whether the MachineDeployment is available"
    ),
    printcolumn(
        name = "Desired",
        type_ = "integer",
        json_path = ".spec.replicas",
        description = "Machines that are wanted"
    ),
    printcolumn(
        name = "Current",
        type_ = "integer",
        json_path = ".status.replicas",
        description = "Machines that exist"
    ),
    printcolumn(
        name = "Ready",
        type_ = "integer",
        json_path = ".status.readyReplicas",
        description = "Machines that are ready"
    ),
    printcolumn(
        name = "Available",
        type_ = "integer",
        json_path = ".status.availableReplicas",
        description = "Machines that are available"
    ),
    printcolumn(
        name = "Up-to-date",
        type_ = "integer",
        json_path = ".status.upToDateReplicas",
        description = "Machines that match the template"
    ),
    printcolumn(
        name = "Paused",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Paused")].status"#,
        description = "Whether reconciliation is paused",
        priority = 10
    ),
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.phase",
        description = "Phase of the MachineDeployment"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Time since creation"
    ),
    printcolumn(
        name = "Version",
        type_ = "string",
        json_path = ".spec.template.spec.version",
        description = "Kubernetes version"
    )
)]
pub struct MachineDeploymentSpec {
    /// Name of the Cluster it belongs to.
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: String,
    /// How Machines are deleted.
    pub deletion: Option<MachineSetDeletion>,
    /// How Machines are named.
    #[schemars(extend("minProperties" = 1))]
    pub machine_naming: Option<MachineNaming>,
    /// Stops rollouts.
    pub paused: Option<bool>,
    /// How unhealthy Machines are replaced.
    pub remediation: Option<MachineDeploymentRemediation>,
    /// Number of Machines; 1 if not given.
    pub replicas: Option<i32>,
    /// How Machines are replaced.
    pub rollout: Option<MachineDeploymentRollout>,
    /// Which Machines belong to it; must match the labels of the template. Filled in if empty.
    pub selector: LabelSelector,
    /// Template of the Machines.
    pub template: MachineTemplateSpec,
}

/// How unhealthy Machines are replaced.
#[wire(lenient)]
#[schemars(extend("minProperties" = 1))]
pub struct MachineDeploymentRemediation {
    /// Maximum number of Machines that are replaced at once, as a number or a percentage of all.
    pub max_in_flight: Option<IntOrString>,
}

/// How Machines are replaced.
#[wire(lenient)]
#[schemars(extend("minProperties" = 1))]
pub struct MachineDeploymentRollout {
    /// Replaces all Machines that were created before this time, once this time has passed.
    pub after: Option<Time>,
    /// The strategy; a rolling update if not given.
    pub strategy: Option<RolloutStrategy>,
}

/// A strategy and its limits.
#[wire(lenient)]
#[schemars(extend("minProperties" = 1))]
pub struct RolloutStrategy {
    /// Limits of a rolling update.
    pub rolling_update: Option<RollingUpdate>,
    /// Type of the strategy.
    pub r#type: RolloutStrategyType,
}

/// Limits of a rolling update.
#[wire(lenient)]
#[schemars(extend("minProperties" = 1))]
pub struct RollingUpdate {
    /// Maximum number of Machines above the wanted number, as a number or a percentage; 1 when empty.
    pub max_surge: Option<IntOrString>,
    /// Maximum number of Machines that may be unavailable, as a number or a percentage; 0 when empty.
    pub max_unavailable: Option<IntOrString>,
}

/// Observed state of the Machines.
#[wire(lenient)]
#[schemars(extend("minProperties" = 1))]
pub struct MachineDeploymentStatus {
    /// Machines that are available.
    pub available_replicas: Option<i32>,
    /// Conditions.
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// Status fields of earlier versions.
    pub deprecated: Option<MachineDeploymentDeprecatedStatus>,
    /// Generation of the spec that this status is about.
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,
    /// Phase of the MachineDeployment, a summary for people.
    pub phase: Option<MachineDeploymentPhase>,
    /// Machines that are ready.
    pub ready_replicas: Option<i32>,
    /// Machines that exist.
    pub replicas: Option<i32>,
    /// The selector as text, for the scale subresource.
    #[schemars(length(min = 1, max = 4096))]
    pub selector: Option<String>,
    /// Machines that match the template.
    pub up_to_date_replicas: Option<i32>,
}

/// Phases of a `MachineDeployment`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MachineDeploymentPhase {
    /// Machines are being made.
    #[default]
    ScalingUp,
    /// Machines are being deleted.
    ScalingDown,
    /// The wanted Machines are there.
    Running,
    /// It failed and cannot be repaired.
    Failed,
    /// Nothing is known.
    Unknown,
}

/// Status fields of earlier versions.
#[wire(lenient)]
pub struct MachineDeploymentDeprecatedStatus {
    /// Status fields of v1beta1.
    pub v1beta1: Option<MachineDeploymentStatusV1Beta1>,
}

/// Status fields of v1beta1 that this version replaced.
#[wire(lenient)]
pub struct MachineDeploymentStatusV1Beta1 {
    /// Machines whose Node has been ready for long enough.
    pub available_replicas: Option<i32>,
    /// Conditions of v1beta1.
    pub conditions: Option<Vec<LegacyCondition>>,
    /// Machines whose Node is ready.
    pub ready_replicas: Option<i32>,
    /// Machines that are missing or not available.
    pub unavailable_replicas: Option<i32>,
    /// Machines that match the template.
    pub updated_replicas: Option<i32>,
}
