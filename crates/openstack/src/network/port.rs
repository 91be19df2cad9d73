//! Ports, and the floating IPs that point to them.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::{Creation, Filter, Query, Update};
use crate::{FloatingIpId, NetworkId, PortId, SecurityGroupId, SubnetId, lenient::null_as_default};

/// An address a port has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct FixedIp {
    pub subnet_id: SubnetId,
    pub ip_address: IpAddr,
}

/// An address a port shall have. One of both is enough.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FixedIpRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<SubnetId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_address: Option<IpAddr>,
}

/// What a port may send besides its own addresses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AddressPair {
    /// An address or a range.
    pub ip_address: String,
    /// From this hardware address; the port's own if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Port {
    pub id: PortId,
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub description: String,
    /// The network it is on.
    pub network_id: NetworkId,
    /// `ACTIVE`, `BUILD`, `DOWN`, `ERROR`, `N/A`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub mac_address: String,
    #[serde(default)]
    pub fixed_ips: Vec<FixedIp>,
    /// Who uses it: the id of a server or a router; empty for nobody.
    #[serde(default, deserialize_with = "null_as_default")]
    pub device_id: String,
    /// What uses it: `compute:nova`, `network:router_interface`; empty for nobody.
    #[serde(default, deserialize_with = "null_as_default")]
    pub device_owner: String,
    /// The groups that filter it.
    #[serde(default, rename = "security_groups")]
    pub security_group_ids: Vec<SecurityGroupId>,
    /// What it may send besides.
    #[serde(default)]
    pub allowed_address_pairs: Vec<AddressPair>,
    /// Whether it is filtered.
    #[serde(default, rename = "port_security_enabled")]
    pub is_port_security_enabled: Option<bool>,
    #[serde(default)]
    pub tags: Vec<String>,
    /// The project it belongs to.
    #[serde(default, deserialize_with = "null_as_default")]
    pub project_id: String,
}

/// Makes a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PortCreate {
    pub name: String,
    /// Its description, which carries the owner.
    pub description: String,
    /// The network it is on.
    pub network_id: NetworkId,
    /// Its addresses; the cloud chooses if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fixed_ips: Vec<FixedIpRequest>,
    /// The groups that filter it; the project's default group if none, no group (nothing gets in) if empty.
    #[serde(rename = "security_groups", skip_serializing_if = "Option::is_none")]
    pub security_group_ids: Option<Vec<SecurityGroupId>>,
    /// What it may send besides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_address_pairs: Vec<AddressPair>,
    /// Its hardware address; the cloud chooses if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<String>,
    /// Whether it is up; it is if none.
    #[serde(rename = "admin_state_up", skip_serializing_if = "Option::is_none")]
    pub is_up: Option<bool>,
    /// Whether it is filtered; as the network says if none.
    #[serde(rename = "port_security_enabled", skip_serializing_if = "Option::is_none")]
    pub is_port_security_enabled: Option<bool>,
    /// `normal`, `direct`, ...; the cloud's choice if none.
    #[serde(rename = "binding:vnic_type", skip_serializing_if = "Option::is_none")]
    pub vnic_type: Option<String>,
}

impl PortCreate {
    /// With these, and the cloud's choice for the rest.
    pub fn new(name: impl Into<String>, network_id: NetworkId) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            network_id,
            fixed_ips: Vec::new(),
            security_group_ids: None,
            allowed_address_pairs: Vec::new(),
            mac_address: None,
            is_up: None,
            is_port_security_enabled: None,
            vnic_type: None,
        }
    }
}

/// Changes a port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PortUpdate {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// All groups that filter it.
    #[serde(rename = "security_groups", skip_serializing_if = "Option::is_none")]
    pub security_group_ids: Option<Vec<SecurityGroupId>>,
    /// All it may send besides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_address_pairs: Option<Vec<AddressPair>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortQuery {
    /// By what all kinds have.
    pub filter: Filter,
    pub network_id: Option<NetworkId>,
    /// Used by this server or router.
    pub device_id: Option<String>,
    /// Used by this kind of thing.
    pub device_owner: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct FloatingIp {
    pub id: FloatingIpId,
    /// The address people reach.
    #[serde(rename = "floating_ip_address")]
    pub address: IpAddr,
    /// The address it leads to, if any.
    #[serde(default, rename = "fixed_ip_address")]
    pub fixed_address: Option<IpAddr>,
    /// The port it leads to, if any.
    #[serde(default)]
    pub port_id: Option<PortId>,
    /// The external network it is on.
    #[serde(rename = "floating_network_id")]
    pub network_id: NetworkId,
    #[serde(default, deserialize_with = "null_as_default")]
    pub status: String,
    #[serde(default, deserialize_with = "null_as_default")]
    pub description: String,
    #[serde(default)]
    pub tags: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FloatingIpQuery {
    /// By what all kinds have; floating IPs have no name.
    pub filter: Filter,
    pub address: Option<IpAddr>,
    /// That lead to this port.
    pub port_id: Option<PortId>,
    /// On this external network.
    pub network_id: Option<NetworkId>,
}

impl Creation for PortCreate {
    type Id = PortId;

    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }
}

impl Update for PortUpdate {
    type Id = PortId;
}

impl Query for PortQuery {
    type Id = PortId;

    fn pairs(&self) -> Vec<(&'static str, String)> {
        self.filter
            .pairs()
            .with("network_id", self.network_id.as_ref())
            .with("device_id", self.device_id.as_ref())
            .with("device_owner", self.device_owner.as_ref())
            .0
    }
}

impl Query for FloatingIpQuery {
    type Id = FloatingIpId;

    fn pairs(&self) -> Vec<(&'static str, String)> {
        self.filter
            .pairs()
            .with("floating_ip_address", self.address.as_ref())
            .with("port_id", self.port_id.as_ref())
            .with("floating_network_id", self.network_id.as_ref())
            .0
    }
}
