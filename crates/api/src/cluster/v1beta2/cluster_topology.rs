//! A Cluster as an instance of a `ClusterClass`.

use crate::cluster::condition_gate::ConditionGate;
use crate::cluster::object_meta::ObjectMeta;
use crate::cluster::pattern;
use crate::cluster::rollout::DeletionOrder;
use crate::cluster::v1beta2::health_check::{
    HealthChecks, Remediation, RemediationTemplateReference, RemediationTrigger,
};
use crate::cluster::v1beta2::machine::MachineDeletion;
use crate::cluster::v1beta2::machine_deployment::RolloutStrategy;
use crate::cluster::variable_value;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The cluster as an instance of a class.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct Topology {
    /// The `ClusterClass`.
    pub class_ref: ClassReference,
    /// The control plane.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<ControlPlaneTopology>,
    /// Values of the class's variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1000), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["name"]))]
    pub variables: Option<Vec<ClusterVariable>>,
    /// Kubernetes version.
    #[schemars(length(min = 1, max = 256))]
    pub version: String,
    /// The workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<WorkersTopology>,
}

/// A `ClusterClass`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ClassReference {
    /// Its name.
    #[schemars(length(min = 1, max = 253), regex(pattern = pattern::DNS_SUBDOMAIN))]
    pub name: String,
    /// Its namespace; the Cluster's own if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = pattern::DNS_LABEL))]
    pub namespace: Option<String>,
}

/// The control plane of a cluster of a class.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default, extend("minProperties" = 1))]
pub struct ControlPlaneTopology {
    /// How its Machines are deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeletion>,
    /// Health checks of its Machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_check: Option<ControlPlaneHealthCheck>,
    /// Metadata of the control plane and its Machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub metadata: Option<ObjectMeta>,
    /// More conditions that must hold before a Machine is ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub readiness_gates: Option<Vec<ConditionGate>>,
    /// Number of control plane Machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Values that differ from those of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variables: Option<VariableOverrides>,
}

/// Health checks of control plane Machines.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default, extend("minProperties" = 1))]
pub struct ControlPlaneHealthCheck {
    /// What makes a Machine unhealthy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<HealthChecks>,
    /// Switches the checks on or off, whatever the class says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// What happens to unhealthy Machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remediation: Option<Remediation>,
}

/// The workers of a cluster of a class.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default, extend("minProperties" = 1))]
pub struct WorkersTopology {
    /// Workers that are `MachineDeployments`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2000), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["name"]))]
    pub machine_deployments: Option<Vec<MachineDeploymentTopology>>,
    /// Workers that are `MachinePools`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2000), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["name"]))]
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
    /// How its Machines are deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeploymentTopologyDeletion>,
    /// Failure domain of its Machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub failure_domain: Option<String>,
    /// Health checks of its Machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_check: Option<MachineDeploymentHealthCheck>,
    /// Metadata of the `MachineDeployment` and its Machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub metadata: Option<ObjectMeta>,
    /// How long a Machine must be ready to be available.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_ready_seconds: Option<i32>,
    /// Name of this part of the topology, unique in it.
    #[schemars(length(min = 1, max = 63), regex(pattern = pattern::DNS_SUBDOMAIN))]
    pub name: String,
    /// More conditions that must hold before a Machine is ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub readiness_gates: Option<Vec<ConditionGate>>,
    /// Number of Machines; left alone if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// How Machines are replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout: Option<MachineDeploymentTopologyRollout>,
    /// Values that differ from those of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variables: Option<VariableOverrides>,
}

/// How Machines are deleted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default, extend("minProperties" = 1))]
pub struct MachineDeploymentTopologyDeletion {
    /// How long to try to delete the Node of a Machine that is deleted; 0 is without end, 10 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_deletion_timeout_seconds: Option<i32>,
    /// How long to drain a Node before its Machine is deleted anyway; 0 or nothing is without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_drain_timeout_seconds: Option<i32>,
    /// How long to wait for volumes to be detached from a Node; 0 or nothing is without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub node_volume_detach_timeout_seconds: Option<i32>,
    /// Which Machine goes first when there are too many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<DeletionOrder>,
}

/// Health checks of the Machines of a `MachineDeployment`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default, extend("minProperties" = 1))]
pub struct MachineDeploymentHealthCheck {
    /// What makes a Machine unhealthy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<HealthChecks>,
    /// Switches the checks on or off, whatever the class says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// What happens to unhealthy Machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remediation: Option<MachineDeploymentRemediation>,
}

/// What happens to unhealthy Machines.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default, extend("minProperties" = 1))]
pub struct MachineDeploymentRemediation {
    /// How many are replaced at once, as a number or a share of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_in_flight: Option<IntOrString>,
    /// Template of the object that remediates, if not the owner does it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template_ref: Option<RemediationTemplateReference>,
    /// When unhealthy Machines are left alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger_if: Option<RemediationTrigger>,
}

/// How Machines are replaced.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default, extend("minProperties" = 1))]
pub struct MachineDeploymentTopologyRollout {
    /// The strategy; a rolling update if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<RolloutStrategy>,
}

/// One `MachinePool` of a cluster of a class.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct MachinePoolTopology {
    /// Name of the worker class in the `ClusterClass`.
    #[schemars(length(min = 1, max = 256))]
    pub class: String,
    /// How its machines are deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion: Option<MachineDeletion>,
    /// Failure domains of its machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"), inner(length(min = 1, max = 256)))]
    pub failure_domains: Option<Vec<String>>,
    /// Metadata of the `MachinePool`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub metadata: Option<ObjectMeta>,
    /// How long a machine must be ready to be available.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_ready_seconds: Option<i32>,
    /// Name of this part of the topology, unique in it.
    #[schemars(length(min = 1, max = 63), regex(pattern = pattern::DNS_SUBDOMAIN))]
    pub name: String,
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
#[schemars(!default, extend("minProperties" = 1))]
pub struct VariableOverrides {
    /// The values that differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1000), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["name"]))]
    pub overrides: Option<Vec<ClusterVariable>>,
}

/// The value of one variable.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(!default)]
pub struct ClusterVariable {
    /// Name of the variable.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// The value, of the type which the class gives the variable.
    #[schemars(schema_with = "variable_value::schema")]
    pub value: Value,
}
