//! `OpenStackClusterTemplate`: what a cluster class makes its infrastructure from.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::OpenStackClusterSpec;

/// A template of OpenStack clusters.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta1",
    kind = "OpenStackClusterTemplate",
    plural = "openstackclustertemplates",
    namespaced,
    derive = "PartialEq",
    doc = "A template from which the OpenStack infrastructure of clusters is made.",
    shortname = "osct",
    category = "cluster-api"
)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackClusterTemplateSpec {
    /// The clusters made from this template. Cannot be changed: make a new template instead.
    pub template: OpenStackClusterTemplateResource,
}

/// What a cluster made from the template looks like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackClusterTemplateResource {
    /// Spec of the cluster.
    pub spec: OpenStackClusterSpec,
}
