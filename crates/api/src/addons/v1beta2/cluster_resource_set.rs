//! `ClusterResourceSet`: manifests that are applied to every matching cluster.

use hangar_wire::wire;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::CustomResource;

use crate::addons::resource::{ResourceRef, Strategy};
use crate::cluster::legacy_condition::LegacyCondition;

/// Manifests, and the clusters to which they are applied.
#[wire]
#[derive(CustomResource)]
#[kube(
    group = "addons.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "ClusterResourceSet",
    plural = "clusterresourcesets",
    namespaced,
    category = "cluster-api",
    status = "ClusterResourceSetStatus",
    doc = "Manifests that are applied to every matching cluster.",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(
        name = "Applied",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="ResourcesApplied")].status"#,
        description = "Whether all manifests are applied"
    ),
    printcolumn(
        name = "Paused",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Paused")].status"#,
        description = "Whether reconciliation is paused",
        priority = 10
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Time since creation"
    )
)]
pub struct ClusterResourceSetSpec {
    /// Selects the Clusters by their labels. An empty selector matches none. Cannot be changed.
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub cluster_selector: LabelSelector,
    /// The `ConfigMaps` and Secrets that hold the manifests.
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub resources: Vec<ResourceRef>,
    /// Whether manifests are applied once or whenever they change; once when empty. Cannot be changed.
    pub strategy: Option<Strategy>,
}

/// Observed state of the set.
#[wire]
#[schemars(extend("minProperties" = 1))]
pub struct ClusterResourceSetStatus {
    /// Conditions of the set.
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
    /// Generation of the spec that this status is about.
    #[schemars(range(min = 1))]
    pub observed_generation: Option<i64>,
    /// Fields of earlier versions.
    pub deprecated: Option<ClusterResourceSetDeprecatedStatus>,
}

/// Status fields of earlier versions.
#[wire]
pub struct ClusterResourceSetDeprecatedStatus {
    /// Status fields of v1beta1.
    pub v1beta1: Option<ClusterResourceSetV1Beta1DeprecatedStatus>,
}

/// Status fields that v1beta1 had and this version replaced.
#[wire]
pub struct ClusterResourceSetV1Beta1DeprecatedStatus {
    /// Conditions in the format of v1beta1.
    pub conditions: Option<Vec<LegacyCondition>>,
}
