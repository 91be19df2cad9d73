//! `ClusterResourceSetBinding`: what was applied to one cluster. Named like the Cluster.

use hangar_wire::wire;
use kube::CustomResource;

use crate::addons::resource::ResourceSetBinding;
use crate::crd::absent_spec::default_when_absent;

/// Manifests that `ClusterResourceSets` have applied to a cluster.
#[wire]
#[derive(CustomResource)]
#[kube(
    group = "addons.cluster.x-k8s.io",
    version = "v1beta1",
    kind = "ClusterResourceSetBinding",
    plural = "clusterresourcesetbindings",
    namespaced,
    category = "cluster-api",
    doc = "What was applied to one cluster by ClusterResourceSets.",
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
#[schemars(rename = "ClusterResourceSetBindingSpec")]
pub struct ClusterResourceSetBindingSpec {
    /// The sets that match the cluster.
    #[schemars(length(max = 100))]
    pub bindings: Option<Vec<ResourceSetBinding>>,
    /// Name of the Cluster.
    #[schemars(length(min = 1, max = 63))]
    pub cluster_name: Option<String>,
}

default_when_absent!(ClusterResourceSetBindingSpec);
