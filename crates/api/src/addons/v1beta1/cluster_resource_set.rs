//! `ClusterResourceSet`: manifests that are applied to every matching cluster.

use hangar_wire::wire;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::CustomResource;

use crate::addons::resource::{ResourceRef, Strategy};
use crate::cluster::legacy_condition::LegacyCondition;
use crate::crd::absent_spec::default_when_absent;

/// Manifests, and the clusters to which they are applied.
#[wire]
#[derive(CustomResource)]
#[kube(
    group = "addons.cluster.x-k8s.io",
    version = "v1beta1",
    kind = "ClusterResourceSet",
    plural = "clusterresourcesets",
    namespaced,
    category = "cluster-api",
    status = "ClusterResourceSetStatus",
    doc = "Manifests that are applied to every matching cluster.",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Time since creation"
    )
)]
#[serde(remote = "Self")]
#[schemars(rename = "ClusterResourceSetSpec")]
pub struct ClusterResourceSetSpec {
    /// Selects the Clusters by their labels. An empty selector matches none. Cannot be changed.
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub cluster_selector: LabelSelector,
    /// The `ConfigMaps` and Secrets that hold the manifests.
    #[schemars(length(max = 100))]
    pub resources: Option<Vec<ResourceRef>>,
    /// Whether manifests are applied once or whenever they change; once when empty. Cannot be changed.
    pub strategy: Option<Strategy>,
}

default_when_absent!(ClusterResourceSetSpec);

/// Observed state of the set.
#[wire]
pub struct ClusterResourceSetStatus {
    /// Conditions of the set.
    pub conditions: Option<Vec<LegacyCondition>>,
    /// Generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Conditions in the format of v1beta2.
    pub v1beta2: Option<ClusterResourceSetV1Beta2Status>,
}

/// Status fields in the format of v1beta2.
#[wire]
pub struct ClusterResourceSetV1Beta2Status {
    /// Conditions of the set.
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
}
