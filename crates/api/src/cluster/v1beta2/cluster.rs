//! `Cluster`: the root of everything that belongs to one Kubernetes cluster.

use crate::cluster::condition_gate::ConditionGate;
use crate::cluster::legacy_condition::LegacyCondition;
use crate::cluster::replica_counts::ReplicaCounts;
use crate::cluster::v1beta2::cluster_topology::Topology;
use crate::reference::ContractVersionedObjectReference;
use hangar_wire::wire;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Spec of a cluster.
#[wire(lenient)]
#[derive(CustomResource)]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta2",
    kind = "Cluster",
    plural = "clusters",
    namespaced,
    shortname = "cl",
    category = "cluster-api",
    status = "ClusterStatus",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(
        name = "ClusterClass",
        type_ = "string",
        json_path = ".spec.topology.classRef.name",
        description = "Class of the Cluster, if any"
    ),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Available")].status"#,
        description = "Whether the Cluster is available"
    ),
    printcolumn(
        name = "CP Desired",
        type_ = "integer",
        json_path = ".status.controlPlane.desiredReplicas",
        description = "Control plane Machines that are wanted"
    ),
    printcolumn(
        name = "CP Current",
        type_ = "integer",
        json_path = ".status.controlPlane.replicas",
        description = "Control plane Machines that exist",
        priority = 10
    ),
    printcolumn(
        name = "CP Ready",
        type_ = "integer",
        json_path = ".status.controlPlane.readyReplicas",
        description = "Control plane Machines that are ready",
        priority = 10
    ),
    printcolumn(
        name = "CP Available",
        type_ = "integer",
        json_path = ".status.controlPlane.availableReplicas",
        description = "Control plane Machines that are available"
    ),
    printcolumn(
        name = "CP Up-to-date",
        type_ = "integer",
        json_path = ".status.controlPlane.upToDateReplicas",
        description = "Control plane Machines that are up to date"
    ),
    printcolumn(
        name = "W Desired",
        type_ = "integer",
        json_path = ".status.workers.desiredReplicas",
        description = "Worker Machines that are wanted"
    ),
    printcolumn(
        name = "W Current",
        type_ = "integer",
        json_path = ".status.workers.replicas",
        description = "Worker Machines that exist",
        priority = 10
    ),
    printcolumn(
        name = "W Ready",
        type_ = "integer",
        json_path = ".status.workers.readyReplicas",
        description = "Worker Machines that are ready",
        priority = 10
    ),
    printcolumn(
        name = "W Available",
        type_ = "integer",
        json_path = ".status.workers.availableReplicas",
        description = "Worker Machines that are available"
    ),
    printcolumn(
        name = "W Up-to-date",
        type_ = "integer",
        json_path = ".status.workers.upToDateReplicas",
        description = "Worker Machines that are up to date"
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
        description = "Phase of the Cluster"
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
        json_path = ".spec.topology.version",
        description = "Kubernetes version"
    )
)]
#[schemars(extend("minProperties" = 1))]
pub struct ClusterSpec {
    /// More conditions that must hold before the Cluster is available.
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub availability_gates: Option<Vec<ConditionGate>>,
    /// Networks of the cluster.
    pub cluster_network: Option<ClusterNetwork>,
    /// Where the API server is reached. Filled in from the control plane or the infrastructure.
    pub control_plane_endpoint: Option<ApiEndpoint>,
    /// Object that creates the control plane.
    pub control_plane_ref: Option<ContractVersionedObjectReference>,
    /// Object that creates the infrastructure.
    pub infrastructure_ref: Option<ContractVersionedObjectReference>,
    /// Stops all controllers for this Cluster.
    pub paused: Option<bool>,
    /// The cluster as an instance of a `ClusterClass`. Accepted, but no controller acts on it yet.
    pub topology: Option<Topology>,
}

/// Networks of a cluster.
#[wire(lenient)]
#[schemars(extend("minProperties" = 1))]
pub struct ClusterNetwork {
    /// Port that the API server listens on; 6443 if not given.
    #[schemars(range(min = 1, max = 65535))]
    pub api_server_port: Option<i32>,
    /// Addresses of pods.
    pub pods: Option<NetworkRanges>,
    /// DNS domain of services; cluster.local if not given.
    #[schemars(length(min = 1, max = 253))]
    pub service_domain: Option<String>,
    /// Addresses of services.
    pub services: Option<NetworkRanges>,
}

/// Address ranges.
#[wire(lenient)]
pub struct NetworkRanges {
    /// Ranges in CIDR notation.
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"), inner(length(min = 1, max = 43)))]
    pub cidr_blocks: Vec<String>,
}

/// Host and port of an API server.
#[wire(lenient)]
#[schemars(extend("minProperties" = 1))]
pub struct ApiEndpoint {
    /// Name or address.
    #[schemars(length(min = 1, max = 512))]
    pub host: Option<String>,
    /// Port.
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
}

/// Observed state of a cluster.
#[wire(lenient)]
#[schemars(extend("minProperties" = 1))]
pub struct ClusterStatus {
    /// Conditions.
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// Counts of control plane Machines.
    pub control_plane: Option<ReplicaCounts>,
    /// Status fields of earlier versions.
    pub deprecated: Option<ClusterDeprecatedStatus>,
    /// Failure domains of the infrastructure.
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["name"]))]
    pub failure_domains: Option<Vec<FailureDomain>>,
    /// Milestones of the initialization; each stays true once it is reached.
    pub initialization: Option<ClusterInitialization>,
    /// Generation of the spec that this status is about.
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,
    /// Phase of the Cluster, a summary for people.
    pub phase: Option<ClusterPhase>,
    /// Counts of worker Machines.
    pub workers: Option<ReplicaCounts>,
}

/// One failure domain.
#[wire(lenient)]
pub struct FailureDomain {
    /// Attributes that the provider reports.
    pub attributes: Option<BTreeMap<String, String>>,
    /// Whether control plane Machines may be in it.
    pub control_plane: Option<bool>,
    /// Its name.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
}

/// Milestones of the initialization; each stays true once it is reached.
#[wire(lenient)]
#[schemars(extend("minProperties" = 1))]
pub struct ClusterInitialization {
    /// Whether the control plane has answered; workers may then join.
    pub control_plane_initialized: Option<bool>,
    /// Whether the infrastructure exists, so that Machines can be created.
    pub infrastructure_provisioned: Option<bool>,
}

/// Phases of a Cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ClusterPhase {
    /// Nothing has begun.
    #[default]
    Pending,
    /// The infrastructure is being made.
    Provisioning,
    /// The infrastructure is there and the API server has an address.
    Provisioned,
    /// It is being deleted.
    Deleting,
    /// It failed and cannot be repaired.
    Failed,
    /// Nothing is known.
    Unknown,
}

/// Status fields of earlier versions.
#[wire(lenient)]
pub struct ClusterDeprecatedStatus {
    /// Status fields of v1beta1.
    pub v1beta1: Option<ClusterStatusV1Beta1>,
}

/// Status fields of v1beta1 that this version replaced.
#[wire(lenient)]
pub struct ClusterStatusV1Beta1 {
    /// Conditions of v1beta1.
    pub conditions: Option<Vec<LegacyCondition>>,
    /// Message of a terminal failure.
    #[schemars(length(min = 1, max = 10240))]
    pub failure_message: Option<String>,
    /// Reason of a terminal failure, in one word.
    pub failure_reason: Option<String>,
}
