//! `Machine` in v1beta1.

use crate::cluster::condition_gate::ConditionGate;
use crate::cluster::legacy_condition::LegacyCondition;
use crate::cluster::machine_status::{MachineAddress, MachineDeletionStatus};
use crate::cluster::object_meta::ObjectMeta;
use crate::reference::ObjectReference;
use hangar_wire::wire;
use k8s_openapi::api::core::v1::NodeSystemInfo;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Spec of a machine.
#[wire(lenient)]
#[derive(CustomResource)]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta1",
    kind = "Machine",
    plural = "machines",
    namespaced,
    shortname = "ma",
    category = "cluster-api",
    status = "MachineStatus",
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
        name = "NodeName",
        type_ = "string",
        json_path = ".status.nodeRef.name",
        description = "Node of the Machine"
    ),
    printcolumn(
        name = "ProviderID",
        type_ = "string",
        json_path = ".spec.providerID",
        description = "Identity at the provider"
    ),
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.phase",
        description = "Phase of the Machine"
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
        json_path = ".spec.version",
        description = "Kubernetes version"
    )
)]
pub struct MachineSpec {
    /// Source of the machine's bootstrap data.
    pub bootstrap: Bootstrap,
    /// Name of the Cluster it belongs to.
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: String,
    /// Failure domain of the machine.
    #[schemars(length(min = 1, max = 256))]
    pub failure_domain: Option<String>,
    /// Object that creates the machine.
    pub infrastructure_ref: ObjectReference,
    /// Time to try to delete the Node of a deleted Machine, as a duration such as 10s; no limit when 0.
    pub node_deletion_timeout: Option<String>,
    /// Time to drain a Node before its Machine is deleted anyway, as a duration; no limit when 0.
    pub node_drain_timeout: Option<String>,
    /// Time to wait for volumes to be detached from a Node, as a duration; no limit when 0.
    pub node_volume_detach_timeout: Option<String>,
    /// Identity of the machine at its provider, equal to that of its Node.
    #[serde(rename = "providerID")]
    #[schemars(length(min = 1, max = 512))]
    pub provider_id: Option<String>,
    /// More conditions that must hold before a Machine is ready.
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub readiness_gates: Option<Vec<ConditionGate>>,
    /// Kubernetes version.
    #[schemars(length(min = 1, max = 256))]
    pub version: Option<String>,
}

/// Source of a machine's bootstrap data.
#[wire(lenient)]
pub struct Bootstrap {
    /// Object that creates the bootstrap data.
    pub config_ref: Option<ObjectReference>,
    /// Secret with the bootstrap data.
    #[schemars(length(min = 0, max = 253))]
    pub data_secret_name: Option<String>,
}

/// Observed state of a machine.
#[wire(lenient)]
pub struct MachineStatus {
    /// Addresses of the machine.
    pub addresses: Option<Vec<MachineAddress>>,
    /// Whether the bootstrap data exists.
    pub bootstrap_ready: Option<bool>,
    /// When the certificates of a control plane machine expire.
    pub certificates_expiry_date: Option<Time>,
    /// Conditions of v1beta1.
    pub conditions: Option<Vec<LegacyCondition>>,
    /// Progress of the deletion.
    pub deletion: Option<MachineDeletionStatus>,
    /// Message of a terminal failure; no longer written.
    #[schemars(length(min = 1, max = 10240))]
    pub failure_message: Option<String>,
    /// Reason of a terminal failure, in one word; no longer written.
    pub failure_reason: Option<String>,
    /// Whether the infrastructure exists.
    pub infrastructure_ready: Option<bool>,
    /// When the phase changed last.
    pub last_updated: Option<Time>,
    /// Information that the Node reports about itself.
    pub node_info: Option<NodeSystemInfo>,
    /// The Node.
    pub node_ref: Option<ObjectReference>,
    /// Generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Phase of the Machine, a summary for people.
    pub phase: Option<MachinePhase>,
    /// Status fields of v1beta2.
    pub v1beta2: Option<MachineStatusV1Beta2>,
}

/// Status fields of v1beta2.
#[wire(lenient)]
pub struct MachineStatusV1Beta2 {
    /// Conditions of v1beta2.
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
}

/// Phases of a Machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MachinePhase {
    /// Nothing has begun.
    #[default]
    Pending,
    /// The infrastructure is being made.
    Provisioning,
    /// The infrastructure is there, the Node is not.
    Provisioned,
    /// The Node is there.
    Running,
    /// It is being deleted.
    Deleting,
    /// The infrastructure is gone.
    Deleted,
    /// It failed and cannot be repaired.
    Failed,
    /// Nothing is known.
    Unknown,
}

/// Template of Machines.
#[wire(lenient)]
pub struct MachineTemplateSpec {
    /// Metadata of the Machines.
    pub metadata: Option<ObjectMeta>,
    /// Spec of the Machines.
    pub spec: Option<MachineSpec>,
}
