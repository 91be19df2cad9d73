//! `Machine`: one machine that is, or becomes, a Node.

use crate::cluster::condition_gate::ConditionGate;
use crate::cluster::legacy_condition::LegacyCondition;
use crate::cluster::machine_status::{MachineAddress, MachineDeletionStatus};
use crate::cluster::object_meta::ObjectMeta;
use crate::cluster::pattern;
use crate::reference::ContractVersionedObjectReference;
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
    version = "v1beta2",
    kind = "Machine",
    plural = "machines",
    namespaced,
    shortname = "ma",
    category = "cluster-api",
    status = "MachineStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(
        name = "Cluster",
        type_ = "string",
        json_path = ".spec.clusterName",
        description = "Cluster"
    ),
    printcolumn(
        name = "Node Name",
        type_ = "string",
        json_path = ".status.nodeRef.name",
        description = "Node of the Machine"
    ),
    printcolumn(
        name = "Provider ID",
        type_ = "string",
        json_path = ".spec.providerID",
        description = "Identity at the provider",
        priority = 10
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#,
        description = "Whether the Machine is ready"
    ),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Available")].status"#,
        description = "Whether the Machine is available"
    ),
    printcolumn(
        name = "Up-to-date",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="UpToDate")].status"#,
        description = "Whether the Machine is up to date"
    ),
    printcolumn(
        name = "Internal-IP",
        type_ = "string",
        json_path = r#".status.addresses[?(@.type=="InternalIP")].address"#,
        description = "Address inside the cluster's network",
        priority = 10
    ),
    printcolumn(
        name = "External-IP",
        type_ = "string",
        json_path = r#".status.addresses[?(@.type=="ExternalIP")].address"#,
        description = "External address",
        priority = 10
    ),
    printcolumn(
        name = "OS-Image",
        type_ = "string",
        json_path = ".status.nodeInfo.osImage",
        description = "Operating system of the Node",
        priority = 10
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
    /// How it is deleted.
    pub deletion: Option<MachineDeletion>,
    /// Failure domain of the machine.
    #[schemars(length(min = 1, max = 256))]
    pub failure_domain: Option<String>,
    /// Object that creates the machine.
    pub infrastructure_ref: ContractVersionedObjectReference,
    /// Seconds that the Machine must be ready before it is available.
    #[schemars(range(min = 0))]
    pub min_ready_seconds: Option<i32>,
    /// Identity of the machine at its provider, equal to that of its Node.
    #[serde(rename = "providerID")]
    #[schemars(length(min = 1, max = 512))]
    pub provider_id: Option<String>,
    /// More conditions that must hold before a Machine is ready.
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub readiness_gates: Option<Vec<ConditionGate>>,
    /// Taints of the Node.
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub taints: Option<Vec<MachineTaint>>,
    /// Kubernetes version.
    #[schemars(length(min = 1, max = 256))]
    pub version: Option<String>,
}

/// Source of a machine's bootstrap data.
#[wire(lenient)]
pub struct Bootstrap {
    /// Object that creates the bootstrap data.
    pub config_ref: Option<ContractVersionedObjectReference>,
    /// Secret with the bootstrap data; filled in from the object that `configRef` names.
    #[schemars(length(min = 0, max = 253))]
    pub data_secret_name: Option<String>,
}

/// How a Machine is deleted.
#[wire(lenient)]
#[schemars(extend("minProperties" = 1))]
pub struct MachineDeletion {
    /// Seconds to try to delete the Node of a deleted Machine; 10 when empty, no limit when 0.
    #[schemars(range(min = 0))]
    pub node_deletion_timeout_seconds: Option<i32>,
    /// Seconds to drain a Node before its Machine is deleted anyway; no limit when 0 or empty.
    #[schemars(range(min = 0))]
    pub node_drain_timeout_seconds: Option<i32>,
    /// Seconds to wait for volumes to be detached from a Node; no limit when 0 or empty.
    #[schemars(range(min = 0))]
    pub node_volume_detach_timeout_seconds: Option<i32>,
}

/// A taint that the Machine sets on its Node.
#[wire(lenient)]
pub struct MachineTaint {
    /// Effect of the taint on pods.
    pub effect: TaintEffect,
    /// Its key.
    #[schemars(length(min = 1, max = 317), regex(pattern = pattern::TAINT_KEY))]
    #[schemars(extend("x-kubernetes-validations" = [{ "rule": "self.contains('/') ? ( self.split('/') [0].size() <= 253 && self.split('/') [1].size() <= 63 && self.split('/').size() == 2 ) : self.size() <= 63", "message": "key must be a valid qualified name of max size 63 characters with an optional subdomain prefix of max size 253 characters" }]))]
    pub key: String,
    /// `Always` keeps the taint on the Node, `OnInitialization` sets it once.
    pub propagation: TaintPropagation,
    /// Its value.
    #[schemars(length(min = 1, max = 63), regex(pattern = pattern::TAINT_VALUE))]
    pub value: Option<String>,
}

/// What a taint does to pods that do not tolerate it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    /// New ones are not scheduled.
    #[default]
    NoSchedule,
    /// New ones are scheduled elsewhere if possible.
    PreferNoSchedule,
    /// Running ones are evicted, too.
    NoExecute,
}

/// How long the Machine keeps a taint on its Node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TaintPropagation {
    /// As long as the Node exists.
    #[default]
    Always,
    /// Only when the Node joins.
    OnInitialization,
}

/// Observed state of a machine.
#[wire(lenient)]
#[schemars(extend("minProperties" = 1))]
pub struct MachineStatus {
    /// Addresses of the machine.
    #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "atomic"))]
    pub addresses: Option<Vec<MachineAddress>>,
    /// When the certificates of a control plane machine expire.
    pub certificates_expiry_date: Option<Time>,
    /// Conditions.
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// Progress of the deletion.
    pub deletion: Option<MachineDeletionStatus>,
    /// Status fields of earlier versions.
    pub deprecated: Option<MachineDeprecatedStatus>,
    /// Milestones of the initialization; each stays true once it is reached.
    pub initialization: Option<MachineInitialization>,
    /// When the phase changed last.
    pub last_updated: Option<Time>,
    /// Information that the Node reports about itself.
    pub node_info: Option<NodeSystemInfo>,
    /// The Node.
    pub node_ref: Option<NodeReference>,
    /// Generation of the spec that this status is about.
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,
    /// Phase of the Machine, a summary for people.
    pub phase: Option<MachinePhase>,
}

/// Milestones of the initialization; each stays true once it is reached.
#[wire(lenient)]
#[schemars(extend("minProperties" = 1))]
pub struct MachineInitialization {
    /// Whether the bootstrap data exists.
    pub bootstrap_data_secret_created: Option<bool>,
    /// Whether the infrastructure exists.
    pub infrastructure_provisioned: Option<bool>,
}

/// A Node.
#[wire(lenient)]
pub struct NodeReference {
    /// Its name.
    #[schemars(length(min = 1, max = 253), regex(pattern = pattern::DNS_SUBDOMAIN))]
    pub name: String,
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
    /// It is being changed in place.
    Updating,
    /// It is being deleted.
    Deleting,
    /// The infrastructure is gone.
    Deleted,
    /// It failed and cannot be repaired.
    Failed,
    /// Nothing is known.
    Unknown,
}

/// Status fields of earlier versions.
#[wire(lenient)]
pub struct MachineDeprecatedStatus {
    /// Status fields of v1beta1.
    pub v1beta1: Option<MachineStatusV1Beta1>,
}

/// Status fields of v1beta1 that this version replaced.
#[wire(lenient)]
pub struct MachineStatusV1Beta1 {
    /// Conditions of v1beta1.
    pub conditions: Option<Vec<LegacyCondition>>,
    /// Message of a terminal failure.
    #[schemars(length(min = 1, max = 10240))]
    pub failure_message: Option<String>,
    /// Reason of a terminal failure, in one word.
    pub failure_reason: Option<String>,
}

/// Template of Machines.
#[wire(lenient)]
pub struct MachineTemplateSpec {
    /// Metadata of the Machines.
    #[schemars(extend("minProperties" = 1))]
    pub metadata: Option<ObjectMeta>,
    /// Spec of the Machines.
    pub spec: MachineSpec,
}
