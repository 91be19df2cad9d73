//! Ports, and the floating IPs that point to them.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::{Creation, Filter, Query};
use crate::{NetworkId, PortId, SecurityGroupId, SubnetId, lenient::null_as_default};

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
    /// It carries the owner.
    #[serde(default, deserialize_with = "null_as_default")]
    pub description: String,
    /// The network it is on.
    pub network_id: NetworkId,
    #[serde(default)]
    pub fixed_ips: Vec<FixedIp>,
    /// Id of the server or router that uses it; empty when unused.
    #[serde(default, deserialize_with = "null_as_default")]
    pub device_id: String,
    /// Kind of its user: `compute:nova`, `network:router_interface`; empty when unused.
    #[serde(default, deserialize_with = "null_as_default")]
    pub device_owner: String,
    #[serde(default)]
    pub tags: Vec<String>,
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

impl Creation for PortCreate {
    type Id = PortId;

    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }
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
