//! Routers and their gateways.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::{Creation, Filter, Query};
use crate::{NetworkId, RouterId, SubnetId, lenient::null_as_default};

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
    /// It carries the owner.
    #[serde(default, deserialize_with = "null_as_default")]
    pub description: String,
    /// Its way out, if it has one.
    #[serde(default, rename = "external_gateway_info")]
    pub external_gateway: Option<ExternalGateway>,
    #[serde(default)]
    pub tags: Vec<String>,
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

impl Query for RouterQuery {
    type Id = RouterId;

    fn pairs(&self) -> Vec<(&'static str, String)> {
        self.filter.pairs().0
    }
}
