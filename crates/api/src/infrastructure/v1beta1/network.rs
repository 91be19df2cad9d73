//! How networks and routers are named, and what was found.
//!
//! A resource is named by its id or by a filter that must match exactly one; the enums make "both" and "neither"
//! impossible to write, as the schema does with its property counts.

use hangar_wire::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SubnetStatus;
use crate::crd::one_of::exactly_one_property;

/// The UUID of an OpenStack resource. To find a resource by name, use a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("format" = "uuid"))]
pub struct OpenStackId(pub String);

/// A tag of a Neutron resource. It contains no comma, because commas separate tags in a query.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("minLength" = 1, "pattern" = "^[^,]+$"))]
pub struct NeutronTag(pub String);

/// Properties by which one Neutron resource is found; all that are given must match.
#[wire]
#[serde(default)]
#[schemars(extend("minProperties" = 1))]
pub struct ResourceFilter {
    /// Exact name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Exact description.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Project that owns the resource.
    #[serde(rename = "projectID", skip_serializing_if = "String::is_empty")]
    pub project_id: String,
    /// The resource has all of these tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub tags: Vec<NeutronTag>,
    /// The resource has at least one of these tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub tags_any: Vec<NeutronTag>,
    /// The resource does not have all of these tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub not_tags: Vec<NeutronTag>,
    /// The resource has none of these tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub not_tags_any: Vec<NeutronTag>,
}

/// An existing network, by id or by filter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = exactly_one_property)]
pub enum NetworkParam {
    /// UUID of the network.
    Id(OpenStackId),
    /// Properties that match exactly one network.
    Filter(ResourceFilter),
}

/// An existing router, by id or by filter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = exactly_one_property)]
pub enum RouterParam {
    /// UUID of the router.
    Id(OpenStackId),
    /// Properties that match exactly one router.
    Filter(ResourceFilter),
}

/// A network that was found or created.
#[wire]
pub struct NetworkStatus {
    /// UUID of the network.
    pub id: String,
    /// Name of the network.
    pub name: String,
    /// Tags of the network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// A network that was found or created, with the subnets in use.
#[wire]
pub struct NetworkStatusWithSubnets {
    /// UUID of the network.
    pub id: String,
    /// Name of the network.
    pub name: String,
    /// Tags of the network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Subnets from which machines get their addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<SubnetStatus>,
}

/// A router that was found or created.
#[wire]
pub struct RouterStatus {
    /// UUID of the router.
    pub id: String,
    /// Name of the router.
    pub name: String,
    /// Tags of the router.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Its addresses in the external network. Traffic that leaves the cluster's network has one of them as its source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ips: Vec<String>,
}
