//! `Cluster` in v1beta1.

use crate::cluster::condition_gate::ConditionGate;
use crate::cluster::legacy_condition::LegacyCondition;
use crate::cluster::replica_counts::ReplicaCounts;
use crate::cluster::v1beta1::cluster_topology::Topology;
use crate::cluster::v1beta2::ClusterPhase;
use crate::reference::ObjectReference;
use hangar_wire::wire;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use std::collections::BTreeMap;

/// Spec of a cluster.
#[wire(lenient)]
#[derive(CustomResource)]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta1",
    kind = "Cluster",
    plural = "clusters",
    namespaced,
    shortname = "cl",
    category = "cluster-api",
    status = "ClusterStatus",
    derive = "Default",
    derive = "PartialEq",
    storage = false,
    deprecated,
    printcolumn(
        name = "ClusterClass",
        type_ = "string",
        json_path = ".spec.topology.class",
        description = "Class of the Cluster, if any"
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
pub struct ClusterSpec {
    /// More conditions that must hold before the Cluster is available.
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub availability_gates: Option<Vec<ConditionGate>>,
    /// Networks of the cluster.
    pub cluster_network: Option<ClusterNetwork>,
    /// Where the API server is reached.
    pub control_plane_endpoint: Option<ApiEndpoint>,
    /// Object that creates the control plane.
    pub control_plane_ref: Option<ObjectReference>,
    /// Object that creates the infrastructure.
    pub infrastructure_ref: Option<ObjectReference>,
    /// Stops all controllers for this Cluster.
    pub paused: Option<bool>,
    /// The cluster as an instance of a `ClusterClass`. Accepted, but no controller acts on it yet.
    pub topology: Option<Topology>,
}

/// Networks of a cluster.
#[wire(lenient)]
pub struct ClusterNetwork {
    /// Port that the API server listens on.
    pub api_server_port: Option<i32>,
    /// Addresses of pods.
    pub pods: Option<NetworkRanges>,
    /// DNS domain of services.
    #[schemars(length(min = 1, max = 253))]
    pub service_domain: Option<String>,
    /// Addresses of services.
    pub services: Option<NetworkRanges>,
}

/// Address ranges.
#[wire(lenient)]
pub struct NetworkRanges {
    /// Ranges in CIDR notation.
    #[schemars(length(max = 100), inner(length(min = 1, max = 43)))]
    pub cidr_blocks: Vec<String>,
}

/// Host and port of an API server.
#[wire(lenient)]
pub struct ApiEndpoint {
    /// Name or address.
    #[schemars(length(max = 512))]
    pub host: Option<String>,
    /// Port.
    pub port: Option<i32>,
}

/// Observed state of a cluster.
#[wire(lenient)]
pub struct ClusterStatus {
    /// Conditions of v1beta1.
    pub conditions: Option<Vec<LegacyCondition>>,
    /// Whether the control plane can be used.
    pub control_plane_ready: Option<bool>,
    /// Failure domains by name.
    pub failure_domains: Option<BTreeMap<String, FailureDomain>>,
    /// Message of a terminal failure; no longer written.
    #[schemars(length(min = 1, max = 10240))]
    pub failure_message: Option<String>,
    /// Reason of a terminal failure, in one word; no longer written.
    pub failure_reason: Option<String>,
    /// Whether the infrastructure exists.
    pub infrastructure_ready: Option<bool>,
    /// Generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Phase of the Cluster, a summary for people.
    pub phase: Option<ClusterPhase>,
    /// Status fields of v1beta2.
    pub v1beta2: Option<ClusterStatusV1Beta2>,
}

/// One failure domain.
#[wire(lenient)]
pub struct FailureDomain {
    /// Attributes that the provider reports.
    pub attributes: Option<BTreeMap<String, String>>,
    /// Whether control plane Machines may be in it.
    pub control_plane: Option<bool>,
}

/// Status fields of v1beta2.
#[wire(lenient)]
pub struct ClusterStatusV1Beta2 {
    /// Conditions of v1beta2.
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// Counts of control plane Machines.
    pub control_plane: Option<ReplicaCounts>,
    /// Counts of worker Machines.
    pub workers: Option<ReplicaCounts>,
}
