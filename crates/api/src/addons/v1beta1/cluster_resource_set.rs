//! `ClusterResourceSet`: manifests that are applied to every matching cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::addons::resource::{ResourceRef, Strategy};
use crate::bootstrap::absent_spec::default_when_absent;
use crate::cluster::legacy_condition::LegacyCondition;

/// Which manifests are applied to which clusters.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[serde(rename_all = "camelCase", remote = "Self")]
#[schemars(rename = "ClusterResourceSetSpec")]
pub struct ClusterResourceSetSpec {
    /// Selects the Clusters by their labels. An empty selector matches none. Cannot be changed.
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub cluster_selector: LabelSelector,
    /// The `ConfigMaps` and Secrets that hold the manifests.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100))]
    pub resources: Option<Vec<ResourceRef>>,
    /// Whether manifests are applied once or whenever they change; once when empty. Cannot be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
}

default_when_absent!(ClusterResourceSetSpec);

/// What is known about the set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterResourceSetStatus {
    /// Conditions of the set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<LegacyCondition>>,
    /// Generation of the spec that this status is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions in the shape of the next version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub v1beta2: Option<ClusterResourceSetV1Beta2Status>,
}

/// Status fields in the shape of the next version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterResourceSetV1Beta2Status {
    /// Conditions of the set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map"), extend("x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Option<Vec<Condition>>,
}
