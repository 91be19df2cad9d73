//! Routers and their gateways.

use std::net::IpAddr;

use serde::{Deserialize, Serialize, Serializer};

use super::{Creation, Filter, Query, Update};
use crate::{NetworkId, PortId, RouterId, SubnetId, lenient::null_as_default};

/// An address of a router on its external network. One of both is enough in a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewayAddress {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<SubnetId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_address: Option<IpAddr>,
}

/// The way out of a router.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalGateway {
    /// Through which external network.
    pub network_id: NetworkId,
    /// Its addresses there; the cloud chooses one if empty.
    #[serde(default, rename = "external_fixed_ips", skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<GatewayAddress>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Router {
    pub id: RouterId,
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub description: String,
    /// `ACTIVE`, `DOWN`, `ERROR`, `ALLOCATING`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: String,
    /// Its way out, if it has one.
    #[serde(default, rename = "external_gateway_info")]
    pub external_gateway: Option<ExternalGateway>,
    #[serde(default)]
    pub tags: Vec<String>,
    /// The project it belongs to.
    #[serde(default, deserialize_with = "null_as_default")]
    pub project_id: String,
}

/// Makes a router.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RouterCreate {
    pub name: String,
    /// Its description, which carries the owner.
    pub description: String,
    /// Its way out; none at all if none.
    #[serde(rename = "external_gateway_info", skip_serializing_if = "Option::is_none")]
    pub external_gateway: Option<ExternalGateway>,
}

/// What happens to a router's way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatewayUpdate {
    /// It has this one.
    Set(ExternalGateway),
    Remove,
}

impl Serialize for GatewayUpdate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Set(gateway) => gateway.serialize(serializer),
            // An empty object, as the command line sends it.
            Self::Remove => serde_json::Map::new().serialize(serializer),
        }
    }
}

/// Changes a router.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RouterUpdate {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(rename = "external_gateway_info", skip_serializing_if = "Option::is_none")]
    pub external_gateway: Option<GatewayUpdate>,
}

/// A router's connection to a subnet.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RouterInterface {
    /// The router's port there.
    pub port_id: PortId,
    pub subnet_id: SubnetId,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouterQuery {
    /// By what all kinds have.
    pub filter: Filter,
}

impl Creation for RouterCreate {
    type Id = RouterId;

    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }
}

impl Update for RouterUpdate {
    type Id = RouterId;
}

impl Query for RouterQuery {
    type Id = RouterId;

    fn pairs(&self) -> Vec<(&'static str, String)> {
        self.filter.pairs().0
    }
}
