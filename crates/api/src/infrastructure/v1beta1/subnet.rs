//! Subnets: existing ones, the one that is created, and what was found.

use hangar_wire::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{NeutronTag, OpenStackId};
use crate::crd::one_of::exactly_one_property;

/// Properties by which one subnet is found; all that are given must match.
#[wire]
#[serde(default)]
#[schemars(extend("minProperties" = 1))]
pub struct SubnetFilter {
    /// Exact name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Exact description.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Project that owns the subnet.
    #[serde(rename = "projectID", skip_serializing_if = "String::is_empty")]
    pub project_id: String,
    /// IP version of the subnet: 4 or 6.
    #[serde(rename = "ipVersion")]
    pub ip_version: Option<i64>,
    /// Address of the subnet's gateway.
    #[serde(rename = "gatewayIP", skip_serializing_if = "String::is_empty")]
    pub gateway_ip: String,
    /// Address range of the subnet.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cidr: String,
    /// IPv6 address mode of the subnet.
    #[serde(rename = "ipv6AddressMode", skip_serializing_if = "String::is_empty")]
    pub ipv6_address_mode: String,
    /// IPv6 router advertisement mode of the subnet.
    #[serde(rename = "ipv6RAMode", skip_serializing_if = "String::is_empty")]
    pub ipv6_router_advertisement_mode: String,
    /// The subnet has all of these tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub tags: Vec<NeutronTag>,
    /// The subnet has at least one of these tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub tags_any: Vec<NeutronTag>,
    /// The subnet does not have all of these tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub not_tags: Vec<NeutronTag>,
    /// The subnet has none of these tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub not_tags_any: Vec<NeutronTag>,
}

/// An existing subnet, by id or by filter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = exactly_one_property)]
pub enum SubnetParam {
    /// UUID of the subnet.
    Id(OpenStackId),
    /// Properties that match exactly one subnet.
    Filter(Box<SubnetFilter>),
}

/// A subnet that is created for the cluster, together with its network and router.
#[wire]
pub struct ManagedSubnet {
    /// Address range of the subnet.
    pub cidr: String,
    /// Name servers of machines in the subnet; may be changed later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dns_nameservers: Vec<String>,
    /// Ranges from which addresses are assigned; the whole subnet when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allocation_pools: Vec<AllocationPool>,
}

/// A part of a subnet's range, both ends included.
#[wire]
pub struct AllocationPool {
    /// First address.
    pub start: String,
    /// Last address.
    pub end: String,
}

/// An address of the created router in the external network.
#[wire(without_default)]
pub struct ExternalRouterIp {
    /// The address; assigned by the cloud when empty.
    #[serde(rename = "fixedIP", default, skip_serializing_if = "String::is_empty")]
    pub fixed_ip: String,
    /// The external network's subnet that the address comes from.
    pub subnet: SubnetParam,
}

/// A subnet that was found or created.
#[wire]
pub struct SubnetStatus {
    /// UUID of the subnet.
    pub id: String,
    /// Name of the subnet.
    pub name: String,
    /// Address range of the subnet.
    pub cidr: String,
    /// Tags of the subnet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}
