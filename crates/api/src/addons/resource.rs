//! References to the objects that hold manifests; both versions have the same types.

use hangar_wire::wire;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A `ConfigMap` or Secret in the namespace of the set, whose values are manifests.
#[wire(without_default)]
pub struct ResourceRef {
    /// Kind of the object. A Secret must have the type `addons.cluster.x-k8s.io/resource-set`.
    pub kind: ResourceKind,
    /// Name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// What is known about one object of a set on one cluster.
#[wire(without_default)]
pub struct ResourceBinding {
    /// Whether all manifests of the object were applied to the cluster.
    pub applied: bool,
    /// Hash of the manifests that were applied last. With the strategy `Reconcile`, manifests with another hash are
    /// applied again.
    #[schemars(length(min = 1, max = 256))]
    pub hash: Option<String>,
    /// Kind of the object.
    pub kind: ResourceKind,
    /// When the manifests were applied last.
    pub last_applied_time: Option<Time>,
    /// Name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// What one `ClusterResourceSet` has applied to the cluster.
#[wire]
pub struct ResourceSetBinding {
    /// Name of the `ClusterResourceSet`.
    #[schemars(length(min = 1, max = 253))]
    pub cluster_resource_set_name: String,
    /// The objects of the set, each with what was applied.
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub resources: Option<Vec<ResourceBinding>>,
}

/// Kind of an object that holds manifests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ResourceKind {
    /// A Secret of the type `addons.cluster.x-k8s.io/resource-set`.
    Secret,
    /// A `ConfigMap`.
    ConfigMap,
}

/// How often manifests are applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Strategy {
    /// Once; what exists on the cluster is left alone.
    #[default]
    ApplyOnce,
    /// Whenever the manifests change.
    Reconcile,
}
