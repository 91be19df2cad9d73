//! `OpenStackClusterTemplate`: the template from which a cluster class makes its infrastructure.

use hangar_wire::wire;
use kube::CustomResource;

use super::OpenStackClusterSpec;

/// A template of OpenStack clusters.
#[wire(without_default)]
#[derive(CustomResource)]
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
pub struct OpenStackClusterTemplateSpec {
    /// The clusters made from this template. Cannot be changed: make a new template instead.
    pub template: OpenStackClusterTemplateResource,
}

/// Spec of a cluster from this template.
#[wire(without_default)]
pub struct OpenStackClusterTemplateResource {
    /// Spec of the cluster.
    pub spec: OpenStackClusterSpec,
}
