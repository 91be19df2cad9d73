//! `MachineDeployment` in v1beta1.

use crate::cluster::legacy_condition::LegacyCondition;
use crate::cluster::rollout::{DeletionOrder, MachineNaming, RolloutStrategyType};
use crate::cluster::v1beta1::machine::MachineTemplateSpec;
use crate::cluster::v1beta2::MachineDeploymentPhase;
use hangar_wire::wire;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;

/// Number and template of the Machines, and how they are replaced.
#[wire(lenient)]
#[derive(CustomResource)]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta1",
    kind = "MachineDeployment",
    plural = "machinedeployments",
    namespaced,
    shortname = "md",
    category = "cluster-api",
    status = "MachineDeploymentStatus",
    derive = "Default",
    derive = "PartialEq",
    storage = false,
    deprecated,
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
        name = "Desired",
        type_ = "integer",
        json_path = ".spec.replicas",
        description = "Machines that are wanted",
        priority = 10
    ),
    printcolumn(
        name = "Replicas",
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
        name = "Updated",
        type_ = "integer",
        json_path = ".status.updatedReplicas",
        description = "Machines of the current template"
    ),
    printcolumn(
        name = "Unavailable",
        type_ = "integer",
        json_path = ".status.unavailableReplicas",
        description = "Machines that are missing"
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
    /// How Machines are named.
    pub machine_naming_strategy: Option<MachineNaming>,
    /// Seconds that a Machine must be ready before it is available.
    pub min_ready_seconds: Option<i32>,
    /// Stops rollouts.
    pub paused: Option<bool>,
    /// Has no effect.
    pub progress_deadline_seconds: Option<i32>,
    /// Number of Machines; 1 if not given.
    pub replicas: Option<i32>,
    /// Has no effect.
    pub revision_history_limit: Option<i32>,
    /// Replaces all Machines that were created before this time, once this time has passed.
    pub rollout_after: Option<Time>,
    /// Which Machines belong to it; must match the labels of the template. Filled in if empty.
    pub selector: LabelSelector,
    /// How Machines are replaced.
    pub strategy: Option<MachineDeploymentStrategy>,
    /// Template of the Machines.
    pub template: MachineTemplateSpec,
}

/// How Machines are replaced.
#[wire(lenient)]
pub struct MachineDeploymentStrategy {
    /// How unhealthy Machines are replaced.
    pub remediation: Option<RemediationStrategy>,
    /// Limits of a rolling update.
    pub rolling_update: Option<RollingUpdate>,
    /// How Machines of an old template are replaced; `RollingUpdate` when empty.
    pub r#type: Option<RolloutStrategyType>,
}

/// How unhealthy Machines are replaced.
#[wire(lenient)]
pub struct RemediationStrategy {
    /// Maximum number of Machines that are replaced at once, as a number or a percentage of all.
    pub max_in_flight: Option<IntOrString>,
}

/// Limits of a rolling update.
#[wire(lenient)]
pub struct RollingUpdate {
    /// Which Machines are deleted first when there are too many; `Random` when empty.
    pub delete_policy: Option<DeletionOrder>,
    /// Maximum number of Machines above the wanted number, as a number or a percentage; 1 when empty.
    pub max_surge: Option<IntOrString>,
    /// Maximum number of Machines that may be unavailable, as a number or a percentage; 0 when empty.
    pub max_unavailable: Option<IntOrString>,
}

/// Observed state of the Machines.
#[wire(lenient)]
pub struct MachineDeploymentStatus {
    /// Machines that are available.
    pub available_replicas: Option<i32>,
    /// Conditions of v1beta1.
    pub conditions: Option<Vec<LegacyCondition>>,
    /// Generation of the spec that this status is about.
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
    /// Machines that are missing or not available.
    pub unavailable_replicas: Option<i32>,
    /// Machines that match the template.
    pub updated_replicas: Option<i32>,
    /// Status fields of v1beta2.
    pub v1beta2: Option<MachineDeploymentStatusV1Beta2>,
}

/// Status fields of v1beta2.
#[wire(lenient)]
pub struct MachineDeploymentStatusV1Beta2 {
    /// Conditions of v1beta2.
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// Machines that are available.
    pub available_replicas: Option<i32>,
    /// Machines that are ready.
    pub ready_replicas: Option<i32>,
    /// Machines that match the template.
    pub up_to_date_replicas: Option<i32>,
}
