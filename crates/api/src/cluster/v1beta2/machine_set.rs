//! `MachineSet`: a number of Machines of one template.

use crate::cluster::legacy_condition::LegacyCondition;
use crate::cluster::rollout::{DeletionOrder, MachineNaming};
use crate::cluster::v1beta2::machine::MachineTemplateSpec;
use hangar_wire::wire;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::CustomResource;

/// Number and template of the Machines.
#[wire(lenient)]
#[derive(CustomResource)]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta2",
    kind = "MachineSet",
    plural = "machinesets",
    namespaced,
    shortname = "ms",
    category = "cluster-api",
    status = "MachineSetStatus",
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
pub struct MachineSetSpec {
    /// Name of the Cluster it belongs to.
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: String,
    /// How Machines are deleted.
    pub deletion: Option<MachineSetDeletion>,
    /// How Machines are named.
    #[schemars(extend("minProperties" = 1))]
    pub machine_naming: Option<MachineNaming>,
    /// Number of Machines; 1 if not given.
    pub replicas: Option<i32>,
    /// Which Machines belong to it; must match the labels of the template. Filled in if empty.
    pub selector: LabelSelector,
    /// Template of the Machines.
    pub template: MachineTemplateSpec,
}

/// How Machines are deleted.
#[wire(lenient)]
#[schemars(extend("minProperties" = 1))]
pub struct MachineSetDeletion {
    /// Which Machines are deleted first when there are too many; `Random` when empty.
    pub order: Option<DeletionOrder>,
}

/// Observed state of the Machines.
#[wire(lenient)]
#[schemars(extend("minProperties" = 1))]
pub struct MachineSetStatus {
    /// Machines that are available.
    pub available_replicas: Option<i32>,
    /// Conditions.
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// Status fields of earlier versions.
    pub deprecated: Option<MachineSetDeprecatedStatus>,
    /// Generation of the spec that this status is about.
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,
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

/// Status fields of earlier versions.
#[wire(lenient)]
pub struct MachineSetDeprecatedStatus {
    /// Status fields of v1beta1.
    pub v1beta1: Option<MachineSetStatusV1Beta1>,
}

/// Status fields of v1beta1 that this version replaced.
#[wire(lenient)]
pub struct MachineSetStatusV1Beta1 {
    /// Machines whose Node has been ready for long enough.
    pub available_replicas: Option<i32>,
    /// Conditions of v1beta1.
    pub conditions: Option<Vec<LegacyCondition>>,
    /// Message of a terminal failure.
    #[schemars(length(min = 1, max = 10240))]
    pub failure_message: Option<String>,
    /// Reason of a terminal failure, in one word.
    pub failure_reason: Option<String>,
    /// Machines that have all labels of the template.
    pub fully_labeled_replicas: Option<i32>,
    /// Machines whose Node is ready.
    pub ready_replicas: Option<i32>,
}
