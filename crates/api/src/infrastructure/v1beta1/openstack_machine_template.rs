//! `OpenStackMachineTemplate`: the template from which the OpenStackMachines of a set are cloned.

use std::collections::BTreeMap;

use hangar_wire::wire;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::CustomResource;

use super::OpenStackMachineSpec;

/// A template of OpenStack machines.
#[wire(without_default)]
#[derive(CustomResource)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta1",
    kind = "OpenStackMachineTemplate",
    plural = "openstackmachinetemplates",
    namespaced,
    status = "OpenStackMachineTemplateStatus",
    derive = "PartialEq",
    doc = "A template from which OpenStack machines are made.",
    shortname = "osmt",
    category = "cluster-api"
)]
pub struct OpenStackMachineTemplateSpec {
    /// The machines made from this template. Cannot be changed, except `ports[].allowedAddressPairs`: make a new
    /// template instead.
    pub template: OpenStackMachineTemplateResource,
}

/// Spec of a machine from this template.
#[wire(without_default)]
pub struct OpenStackMachineTemplateResource {
    /// Spec of the machine.
    pub spec: OpenStackMachineSpec,
}

/// Capacity of a machine from this template, for scaling from zero.
#[wire]
#[serde(default)]
pub struct OpenStackMachineTemplateStatus {
    /// Resources of a machine, from its flavor.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub capacity: BTreeMap<String, Quantity>,
    /// Facts about the node, from its image.
    pub node_info: Option<NodeInformation>,
}

/// Facts about a node.
#[wire]
#[serde(default)]
#[schemars(extend("minProperties" = 1))]
pub struct NodeInformation {
    /// Operating system, such as `linux`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub operating_system: String,
}
