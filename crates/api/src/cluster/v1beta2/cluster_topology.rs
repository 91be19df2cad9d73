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
use hangar_wire::wire;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::Value;

/// The cluster as an instance of a `ClusterClass`.
#[wire(lenient)]
pub struct Topology {
    /// The `ClusterClass`.
    pub class_ref: ClassReference,
    /// The control plane.
    pub control_plane: Option<ControlPlaneTopology>,
    /// Values of the class's variables.
    #[schemars(length(min = 1, max = 1000), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["name"]))]
    pub variables: Option<Vec<ClusterVariable>>,
    /// Kubernetes version.
    #[schemars(length(min = 1, max = 256))]
    pub version: String,
    /// The workers.
    pub workers: Option<WorkersTopology>,
}

/// A `ClusterClass`.
#[wire(lenient)]
pub struct ClassReference {
    /// Its name.
    #[schemars(length(min = 1, max = 253), regex(pattern = pattern::DNS_SUBDOMAIN))]
    pub name: String,
    /// Its namespace; the Cluster's own if not given.
    #[schemars(length(min = 1, max = 63), regex(pattern = pattern::DNS_LABEL))]
    pub namespace: Option<String>,
}

/// The control plane of a cluster of a class.
#[wire(lenient)]
#[schemars(extend("minProperties" = 1))]
pub struct ControlPlaneTopology {
    /// How its Machines are deleted.
    pub deletion: Option<MachineDeletion>,
    /// Health checks of its Machines.
    pub health_check: Option<ControlPlaneHealthCheck>,
    /// Metadata of the control plane and its Machines.
    #[schemars(extend("minProperties" = 1))]
    pub metadata: Option<ObjectMeta>,
    /// More conditions that must hold before a Machine is ready.
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub readiness_gates: Option<Vec<ConditionGate>>,
    /// Number of control plane Machines.
    pub replicas: Option<i32>,
    /// Values that differ from those of the cluster.
    pub variables: Option<VariableOverrides>,
}

/// Health checks of control plane Machines.
#[wire(lenient)]
#[schemars(extend("minProperties" = 1))]
pub struct ControlPlaneHealthCheck {
    /// Checks that make a Machine unhealthy.
    pub checks: Option<HealthChecks>,
    /// Switches the checks on or off; overrides the class.
    pub enabled: Option<bool>,
    /// Remediation of unhealthy Machines.
    pub remediation: Option<Remediation>,
}

/// The workers of a cluster of a class.
#[wire(lenient)]
#[schemars(extend("minProperties" = 1))]
pub struct WorkersTopology {
    /// Workers that are `MachineDeployments`.
    #[schemars(length(min = 1, max = 2000), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["name"]))]
    pub machine_deployments: Option<Vec<MachineDeploymentTopology>>,
    /// Workers that are `MachinePools`.
    #[schemars(length(min = 1, max = 2000), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["name"]))]
    pub machine_pools: Option<Vec<MachinePoolTopology>>,
}

/// One `MachineDeployment` of a cluster of a class.
#[wire(lenient)]
pub struct MachineDeploymentTopology {
    /// Name of the worker class in the `ClusterClass`.
    #[schemars(length(min = 1, max = 256))]
    pub class: String,
    /// How its Machines are deleted.
    pub deletion: Option<MachineDeploymentTopologyDeletion>,
    /// Failure domain of its Machines.
    #[schemars(length(min = 1, max = 256))]
    pub failure_domain: Option<String>,
    /// Health checks of its Machines.
    pub health_check: Option<MachineDeploymentHealthCheck>,
    /// Metadata of the `MachineDeployment` and its Machines.
    #[schemars(extend("minProperties" = 1))]
    pub metadata: Option<ObjectMeta>,
    /// Seconds that a Machine must be ready before it is available.
    #[schemars(range(min = 0))]
    pub min_ready_seconds: Option<i32>,
    /// Name of this part of the topology, unique in it.
    #[schemars(length(min = 1, max = 63), regex(pattern = pattern::DNS_SUBDOMAIN))]
    pub name: String,
    /// More conditions that must hold before a Machine is ready.
    #[schemars(length(min = 1, max = 32), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["conditionType"]))]
    pub readiness_gates: Option<Vec<ConditionGate>>,
    /// Number of Machines; not managed when empty.
    pub replicas: Option<i32>,
    /// How Machines are replaced.
    pub rollout: Option<MachineDeploymentTopologyRollout>,
    /// Values that differ from those of the cluster.
    pub variables: Option<VariableOverrides>,
}

/// How Machines are deleted.
#[wire(lenient)]
#[schemars(extend("minProperties" = 1))]
pub struct MachineDeploymentTopologyDeletion {
    /// Seconds to try to delete the Node of a deleted Machine; 10 when empty, no limit when 0.
    #[schemars(range(min = 0))]
    pub node_deletion_timeout_seconds: Option<i32>,
    /// Seconds to drain a Node before its Machine is deleted anyway; no limit when 0 or empty.
    #[schemars(range(min = 0))]
    pub node_drain_timeout_seconds: Option<i32>,
    /// Seconds to wait for volumes to be detached from a Node; no limit when 0 or empty.
    #[schemars(range(min = 0))]
    pub node_volume_detach_timeout_seconds: Option<i32>,
    /// Which Machines are deleted first when there are too many.
    pub order: Option<DeletionOrder>,
}

/// Health checks of the Machines of a `MachineDeployment`.
#[wire(lenient)]
#[schemars(extend("minProperties" = 1))]
pub struct MachineDeploymentHealthCheck {
    /// Checks that make a Machine unhealthy.
    pub checks: Option<HealthChecks>,
    /// Switches the checks on or off; overrides the class.
    pub enabled: Option<bool>,
    /// Remediation of unhealthy Machines.
    pub remediation: Option<MachineDeploymentRemediation>,
}

/// Remediation of unhealthy Machines.
#[wire(lenient)]
#[schemars(extend("minProperties" = 1))]
pub struct MachineDeploymentRemediation {
    /// Maximum number of Machines that are replaced at once, as a number or a percentage of all.
    pub max_in_flight: Option<IntOrString>,
    /// Template of the object that remediates a Machine; its owner remediates it when empty.
    pub template_ref: Option<RemediationTemplateReference>,
    /// When unhealthy Machines are remediated; always when empty.
    pub trigger_if: Option<RemediationTrigger>,
}

/// How Machines are replaced.
#[wire(lenient)]
#[schemars(extend("minProperties" = 1))]
pub struct MachineDeploymentTopologyRollout {
    /// The strategy; a rolling update if not given.
    pub strategy: Option<RolloutStrategy>,
}

/// One `MachinePool` of a cluster of a class.
#[wire(lenient)]
pub struct MachinePoolTopology {
    /// Name of the worker class in the `ClusterClass`.
    #[schemars(length(min = 1, max = 256))]
    pub class: String,
    /// How its machines are deleted.
    pub deletion: Option<MachineDeletion>,
    /// Failure domains of its machines.
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"), inner(length(min = 1, max = 256)))]
    pub failure_domains: Option<Vec<String>>,
    /// Metadata of the `MachinePool`.
    #[schemars(extend("minProperties" = 1))]
    pub metadata: Option<ObjectMeta>,
    /// Seconds that a machine must be ready before it is available.
    #[schemars(range(min = 0))]
    pub min_ready_seconds: Option<i32>,
    /// Name of this part of the topology, unique in it.
    #[schemars(length(min = 1, max = 63), regex(pattern = pattern::DNS_SUBDOMAIN))]
    pub name: String,
    /// Number of machines; not managed when empty.
    pub replicas: Option<i32>,
    /// Values that differ from those of the cluster.
    pub variables: Option<VariableOverrides>,
}

/// Values for one part of the topology.
#[wire(lenient)]
#[schemars(extend("minProperties" = 1))]
pub struct VariableOverrides {
    /// The values that differ.
    #[schemars(length(min = 1, max = 1000), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["name"]))]
    pub overrides: Option<Vec<ClusterVariable>>,
}

/// The value of one variable.
#[wire(lenient)]
pub struct ClusterVariable {
    /// Name of the variable.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// The value, of the type which the class gives the variable.
    #[schemars(schema_with = "variable_value::schema")]
    pub value: Value,
}
