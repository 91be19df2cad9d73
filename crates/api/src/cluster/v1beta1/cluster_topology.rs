//! A Cluster as an instance of a `ClusterClass`, in v1beta1.

use crate::cluster::condition_gate::ConditionGate;
use crate::cluster::object_meta::ObjectMeta;
use crate::cluster::pattern;
use crate::cluster::v1beta1::machine_deployment::MachineDeploymentStrategy;
use crate::cluster::v1beta1::machine_health_check::UnhealthyCondition;
use crate::cluster::variable_value;
use crate::reference::ObjectReference;
use hangar_wire::wire;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::Value;

/// The cluster as an instance of a `ClusterClass`.
#[wire(lenient)]
pub struct Topology {
    /// Name of the `ClusterClass`.
    #[schemars(length(min = 1, max = 253))]
    pub class: String,
    /// Namespace of the `ClusterClass`; the Cluster's own if empty.
    #[schemars(length(min = 1, max = 63), regex(pattern = pattern::DNS_LABEL))]
    pub class_namespace: Option<String>,
    /// The control plane.
    pub control_plane: Option<ControlPlaneTopology>,
    /// Has no effect.
    pub rollout_after: Option<Time>,
    /// Values of the class's variables.
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["name"]))]
    pub variables: Option<Vec<ClusterVariable>>,
    /// Kubernetes version.
    #[schemars(length(min = 1, max = 256))]
    pub version: String,
    /// The workers.
    pub workers: Option<WorkersTopology>,
}

/// The control plane of a cluster of a class.
#[wire(lenient)]
pub struct ControlPlaneTopology {
    /// Health checks of control plane Machines.
    pub machine_health_check: Option<HealthCheckTopology>,
    /// Metadata of the control plane and its Machines.
    pub metadata: Option<ObjectMeta>,
    /// Time to try to delete the Node of a deleted Machine, as a duration such as 10s; no limit when 0.
    pub node_deletion_timeout: Option<String>,
    /// Time to drain a Node before its Machine is deleted anyway, as a duration; no limit when 0.
    pub node_drain_timeout: Option<String>,
    /// Time to wait for volumes to be detached from a Node, as a duration; no limit when 0.
    pub node_volume_detach_timeout: Option<String>,
    /// More conditions that must hold before a Machine is ready.
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub readiness_gates: Option<Vec<ConditionGate>>,
    /// Number of control plane Machines.
    pub replicas: Option<i32>,
    /// Values that differ from those of the cluster.
    pub variables: Option<VariableOverrides>,
}

/// The workers of a cluster of a class.
#[wire(lenient)]
pub struct WorkersTopology {
    /// Workers that are `MachineDeployments`.
    #[schemars(length(max = 2000), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["name"]))]
    pub machine_deployments: Option<Vec<MachineDeploymentTopology>>,
    /// Workers that are `MachinePools`.
    #[schemars(length(max = 2000), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["name"]))]
    pub machine_pools: Option<Vec<MachinePoolTopology>>,
}

/// One `MachineDeployment` of a cluster of a class.
#[wire(lenient)]
pub struct MachineDeploymentTopology {
    /// Name of the worker class in the `ClusterClass`.
    #[schemars(length(min = 1, max = 256))]
    pub class: String,
    /// Failure domain of its Machines.
    #[schemars(length(min = 1, max = 256))]
    pub failure_domain: Option<String>,
    /// Health checks of its Machines.
    pub machine_health_check: Option<HealthCheckTopology>,
    /// Metadata of the `MachineDeployment` and its Machines.
    pub metadata: Option<ObjectMeta>,
    /// Seconds that a Machine must be ready before it is available.
    pub min_ready_seconds: Option<i32>,
    /// Name of this part of the topology, unique in it.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Time to try to delete the Node of a deleted Machine, as a duration such as 10s; no limit when 0.
    pub node_deletion_timeout: Option<String>,
    /// Time to drain a Node before its Machine is deleted anyway, as a duration; no limit when 0.
    pub node_drain_timeout: Option<String>,
    /// Time to wait for volumes to be detached from a Node, as a duration; no limit when 0.
    pub node_volume_detach_timeout: Option<String>,
    /// More conditions that must hold before a Machine is ready.
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub readiness_gates: Option<Vec<ConditionGate>>,
    /// Number of Machines; not managed when empty.
    pub replicas: Option<i32>,
    /// How Machines are replaced.
    pub strategy: Option<MachineDeploymentStrategy>,
    /// Values that differ from those of the cluster.
    pub variables: Option<VariableOverrides>,
}

/// One `MachinePool` of a cluster of a class.
#[wire(lenient)]
pub struct MachinePoolTopology {
    /// Name of the worker class in the `ClusterClass`.
    #[schemars(length(min = 1, max = 256))]
    pub class: String,
    /// Failure domains of its machines.
    #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
    pub failure_domains: Option<Vec<String>>,
    /// Metadata of the `MachinePool`.
    pub metadata: Option<ObjectMeta>,
    /// Seconds that a machine must be ready before it is available.
    pub min_ready_seconds: Option<i32>,
    /// Name of this part of the topology, unique in it.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Time to try to delete the Node of a deleted Machine, as a duration such as 10s; no limit when 0.
    pub node_deletion_timeout: Option<String>,
    /// Time to drain a Node before its Machine is deleted anyway, as a duration; no limit when 0.
    pub node_drain_timeout: Option<String>,
    /// Time to wait for volumes to be detached from a Node, as a duration; no limit when 0.
    pub node_volume_detach_timeout: Option<String>,
    /// Number of machines; not managed when empty.
    pub replicas: Option<i32>,
    /// Values that differ from those of the cluster.
    pub variables: Option<VariableOverrides>,
}

/// Values for one part of the topology.
#[wire(lenient)]
pub struct VariableOverrides {
    /// The values that differ.
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["name"]))]
    pub overrides: Option<Vec<ClusterVariable>>,
}

/// The value of one variable.
#[wire(lenient)]
pub struct ClusterVariable {
    /// Definition of the variable if several have this name; no longer used.
    #[schemars(length(max = 256))]
    pub definition_from: Option<String>,
    /// Name of the variable.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// The value, of the type which the class gives the variable.
    #[schemars(schema_with = "variable_value::schema")]
    pub value: Value,
}

/// Health checks of Machines of a topology.
#[wire(lenient)]
pub struct HealthCheckTopology {
    /// Switches the checks on or off; overrides the class.
    pub enable: Option<bool>,
    /// Remediates only while at most this many Machines are unhealthy.
    pub max_unhealthy: Option<IntOrString>,
    /// How long a Machine may take to get its Node, as a duration; 0 switches this check off.
    pub node_startup_timeout: Option<String>,
    /// Template of the object that remediates a Machine; its owner remediates it when empty.
    pub remediation_template: Option<ObjectReference>,
    /// Node conditions that make a Machine unhealthy.
    #[schemars(length(max = 100))]
    pub unhealthy_conditions: Option<Vec<UnhealthyCondition>>,
    /// Remediates only while the number of unhealthy Machines is in this range, such as [3-5].
    #[schemars(length(min = 1, max = 32), regex(pattern = pattern::COUNT_RANGE))]
    pub unhealthy_range: Option<String>,
}
