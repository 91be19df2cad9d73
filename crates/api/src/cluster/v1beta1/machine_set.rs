//! `MachineSet` in v1beta1.

use crate::cluster::legacy_condition::LegacyCondition;
use crate::cluster::rollout::{DeletionOrder, MachineNaming};
use crate::cluster::v1beta1::machine::MachineTemplateSpec;
use hangar_wire::wire;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::CustomResource;

/// Number and template of the Machines.
#[wire(lenient)]
#[derive(CustomResource)]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta1",
    kind = "MachineSet",
    plural = "machinesets",
    namespaced,
    shortname = "ms",
    category = "cluster-api",
    status = "MachineSetStatus",
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
        name = "Available",
        type_ = "integer",
        json_path = ".status.availableReplicas",
        description = "Machines that are available"
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
    /// Which Machines are deleted first when there are too many.
    pub delete_policy: Option<DeletionOrder>,
    /// How Machines are named.
    pub machine_naming_strategy: Option<MachineNaming>,
    /// Seconds that a Machine must be ready before it is available.
    pub min_ready_seconds: Option<i32>,
    /// Number of Machines; 1 if not given.
    pub replicas: Option<i32>,
    /// Which Machines belong to it; must match the labels of the template. Filled in if empty.
    pub selector: LabelSelector,
    /// Template of the Machines.
    pub template: Option<MachineTemplateSpec>,
}

/// Observed state of the Machines.
#[wire(lenient)]
pub struct MachineSetStatus {
    /// Machines that are available.
    pub available_replicas: Option<i32>,
    /// Conditions of v1beta1.
    pub conditions: Option<Vec<LegacyCondition>>,
    /// Message of a terminal failure; no longer written.
    #[schemars(length(min = 1, max = 10240))]
    pub failure_message: Option<String>,
    /// Reason of a terminal failure, in one word; no longer written.
    pub failure_reason: Option<String>,
    /// Machines that have all labels of the template.
    pub fully_labeled_replicas: Option<i32>,
    /// Generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Machines that are ready.
    pub ready_replicas: Option<i32>,
    /// Machines that exist.
    pub replicas: Option<i32>,
    /// The selector as text, for the scale subresource.
    #[schemars(length(min = 1, max = 4096))]
    pub selector: Option<String>,
    /// Status fields of v1beta2.
    pub v1beta2: Option<MachineSetStatusV1Beta2>,
}

/// Status fields of v1beta2.
#[wire(lenient)]
pub struct MachineSetStatusV1Beta2 {
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
