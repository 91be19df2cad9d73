//! Subnets.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::{Creation, Filter, Query, Update};
use crate::{NetworkId, SubnetId, lenient::null_as_default};

/// A range that addresses are given out from, both ends included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocationPool {
    pub start: IpAddr,
    pub end: IpAddr,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Subnet {
    pub id: SubnetId,
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// It carries the owner.
    #[serde(default, deserialize_with = "null_as_default")]
    pub description: String,
    /// The network it is on.
    pub network_id: NetworkId,
    pub cidr: IpNet,
    #[serde(default)]
    pub dns_nameservers: Vec<IpAddr>,
    #[serde(default)]
    pub tags: Vec<String>,
}

/// Makes a subnet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SubnetCreate {
    pub name: String,
    /// Its description, which carries the owner.
    pub description: String,
    /// The network it is on.
    pub network_id: NetworkId,
    pub cidr: IpNet,
    pub ip_version: u8,
    /// The address of its gateway; the first of the range if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway_ip: Option<IpAddr>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dns_nameservers: Vec<IpAddr>,
    /// Where addresses are given out from; everything but the gateway if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allocation_pools: Vec<AllocationPool>,
    /// How IPv6 addresses are given out: `slaac`, `dhcpv6-stateful`, `dhcpv6-stateless`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv6_address_mode: Option<String>,
    /// Who announces the IPv6 router.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv6_ra_mode: Option<String>,
}

impl SubnetCreate {
    /// With these, and the cloud's choice for the rest.
    pub fn new(name: impl Into<String>, network_id: NetworkId, cidr: IpNet) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            network_id,
            ip_version: if cidr.addr().is_ipv4() { 4 } else { 6 },
            cidr,
            gateway_ip: None,
            dns_nameservers: Vec::new(),
            allocation_pools: Vec::new(),
            ipv6_address_mode: None,
            ipv6_ra_mode: None,
        }
    }
}

/// Changes a subnet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SubnetUpdate {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// All its name servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_nameservers: Option<Vec<IpAddr>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubnetQuery {
    /// By what all kinds have.
    pub filter: Filter,
    pub network_id: Option<NetworkId>,
    /// 4 or 6; with another one the cloud finds nothing.
    pub ip_version: Option<i64>,
    /// With this gateway; with what is no address the cloud finds nothing.
    pub gateway_ip: Option<String>,
    /// With exactly this range.
    pub cidr: Option<String>,
    /// With this way to give out IPv6 addresses.
    pub ipv6_address_mode: Option<String>,
    /// With this announcer of the IPv6 router.
    pub ipv6_ra_mode: Option<String>,
}

impl Creation for SubnetCreate {
    type Id = SubnetId;

    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }
}

impl Update for SubnetUpdate {
    type Id = SubnetId;
}

impl Query for SubnetQuery {
    type Id = SubnetId;

    fn pairs(&self) -> Vec<(&'static str, String)> {
        self.filter
            .pairs()
            .with("network_id", self.network_id.as_ref())
            .with("ip_version", self.ip_version.as_ref())
            .with("gateway_ip", self.gateway_ip.as_ref())
            .with("cidr", self.cidr.as_ref())
            .with("ipv6_address_mode", self.ipv6_address_mode.as_ref())
            .with("ipv6_ra_mode", self.ipv6_ra_mode.as_ref())
            .0
    }
}
