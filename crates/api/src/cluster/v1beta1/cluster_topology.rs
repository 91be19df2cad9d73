//! A Cluster as an instance of a `ClusterClass`, in v1beta1.

use crate::cluster::condition_gate::ConditionGate;
use crate::cluster::object_meta::ObjectMeta;
use crate::cluster::pattern;
use crate::cluster::v1beta1::machine_deployment::MachineDeploymentStrategy;
use crate::cluster::v1beta1::machine_health_check::UnhealthyCondition;
use crate::cluster::variable_value;
use crate::reference::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The cluster as an instance of a class.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct Topology {
    /// Name of the `ClusterClass`.
    #[schemars(length(min = 1, max = 253))]
    pub class: String,
    /// Namespace of the `ClusterClass`; the Cluster's own if empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = pattern::DNS_LABEL))]
    pub class_namespace: Option<String>,
    /// The control plane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<ControlPlaneTopology>,
    /// Has no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout_after: Option<Time>,
    /// Values of the class's variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["name"]))]
    pub variables: Option<Vec<ClusterVariable>>,
    /// Kubernetes version.
    #[schemars(length(min = 1, max = 256))]
    pub version: String,
    /// The workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<WorkersTopology>,
}

/// The control plane of a cluster of a class.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ControlPlaneTopology {
    /// Health checks of control plane Machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_health_check: Option<HealthCheckTopology>,
    /// Metadata of the control plane and its Machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// How long to try to delete the Node of a Machine that is deleted, as a duration such as 10s; 0 is
    /// without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_deletion_timeout: Option<String>,
    /// How long to drain a Node before its Machine is deleted anyway, as a duration; 0 is without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_drain_timeout: Option<String>,
    /// How long to wait for volumes to be detached from a Node, as a duration; 0 is without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_volume_detach_timeout: Option<String>,
    /// More conditions that must hold before a Machine is ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub readiness_gates: Option<Vec<ConditionGate>>,
    /// Number of control plane Machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Values that differ from those of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variables: Option<VariableOverrides>,
}

/// The workers of a cluster of a class.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct WorkersTopology {
    /// Workers that are `MachineDeployments`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2000), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["name"]))]
    pub machine_deployments: Option<Vec<MachineDeploymentTopology>>,
    /// Workers that are `MachinePools`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2000), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["name"]))]
    pub machine_pools: Option<Vec<MachinePoolTopology>>,
}

/// One `MachineDeployment` of a cluster of a class.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct MachineDeploymentTopology {
    /// Name of the worker class in the `ClusterClass`.
    #[schemars(length(min = 1, max = 256))]
    pub class: String,
    /// Failure domain of its Machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub failure_domain: Option<String>,
    /// Health checks of its Machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_health_check: Option<HealthCheckTopology>,
    /// Metadata of the `MachineDeployment` and its Machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// How long a Machine must be ready to be available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_ready_seconds: Option<i32>,
    /// Name of this part of the topology, unique in it.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// How long to try to delete the Node of a Machine that is deleted, as a duration such as 10s; 0 is
    /// without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_deletion_timeout: Option<String>,
    /// How long to drain a Node before its Machine is deleted anyway, as a duration; 0 is without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_drain_timeout: Option<String>,
    /// How long to wait for volumes to be detached from a Node, as a duration; 0 is without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_volume_detach_timeout: Option<String>,
    /// More conditions that must hold before a Machine is ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub readiness_gates: Option<Vec<ConditionGate>>,
    /// Number of Machines; left alone if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// How Machines are replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<MachineDeploymentStrategy>,
    /// Values that differ from those of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variables: Option<VariableOverrides>,
}

/// One `MachinePool` of a cluster of a class.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct MachinePoolTopology {
    /// Name of the worker class in the `ClusterClass`.
    #[schemars(length(min = 1, max = 256))]
    pub class: String,
    /// Failure domains of its machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 256)))]
    pub failure_domains: Option<Vec<String>>,
    /// Metadata of the `MachinePool`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ObjectMeta>,
    /// How long a machine must be ready to be available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_ready_seconds: Option<i32>,
    /// Name of this part of the topology, unique in it.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// How long to try to delete the Node of a Machine that is deleted, as a duration such as 10s; 0 is
    /// without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_deletion_timeout: Option<String>,
    /// How long to drain a Node before its Machine is deleted anyway, as a duration; 0 is without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_drain_timeout: Option<String>,
    /// How long to wait for volumes to be detached from a Node, as a duration; 0 is without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_volume_detach_timeout: Option<String>,
    /// Number of machines; left alone if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Values that differ from those of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variables: Option<VariableOverrides>,
}

/// Values for one part of the topology.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct VariableOverrides {
    /// The values that differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["name"]))]
    pub overrides: Option<Vec<ClusterVariable>>,
}

/// The value of one variable.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ClusterVariable {
    /// Which definition is meant if several have this name; no longer used.
    #[serde(skip_serializing_if = "Option::is_none")]
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct HealthCheckTopology {
    /// Switches the checks on or off, whatever the class says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable: Option<bool>,
    /// Remediates only while at most so many Machines are unhealthy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unhealthy: Option<IntOrString>,
    /// How long a Machine may take to get its Node, as a duration; 0 switches this check off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_startup_timeout: Option<String>,
    /// Template of the object that remediates, if not the owner does it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remediation_template: Option<ObjectReference>,
    /// Node conditions that make a Machine unhealthy.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub unhealthy_conditions: Option<Vec<UnhealthyCondition>>,
    /// Remediates only while the number of unhealthy Machines is in this range, such as [3-5].
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), regex(pattern = pattern::COUNT_RANGE))]
    pub unhealthy_range: Option<String>,
}
