//! Ports of a server.

use super::{NetworkParam, SecurityGroupParam, SubnetParam};
use hangar_wire::wire;

/// A port that is created for a server.
#[wire]
#[serde(default)]
pub struct Port {
    /// Network of the port; the cluster's network when empty.
    pub network: Option<NetworkParam>,
    /// Description shown in the cloud.
    pub description: Option<String>,
    /// End of the port's name, which begins with the server's name; the port's index when empty.
    pub name_suffix: Option<String>,
    /// Subnets and addresses; the cloud chooses when empty.
    #[serde(rename = "fixedIPs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub fixed_ips: Vec<FixedIp>,
    /// Security groups of this port instead of the machine's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub security_groups: Vec<SecurityGroupParam>,
    /// Tags of the port, besides the machine's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub tags: Vec<String>,
    /// Whether the port is a trunk; the machine's setting when empty. Not supported yet.
    pub trunk: Option<bool>,
    /// Whether the port is up; true when empty.
    pub admin_state_up: Option<bool>,
    /// Its MAC address; the cloud chooses when empty.
    pub mac_address: Option<String>,
    /// Further addresses that may send from this port. It can be changed in a template; existing machines keep theirs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_address_pairs: Vec<AddressPair>,
    /// Hypervisor the port is bound to. Not supported yet.
    #[serde(rename = "hostID")]
    pub host_id: Option<String>,
    /// Type of the virtual network card, such as `normal` or `direct`.
    #[serde(rename = "vnicType")]
    pub vnic_type: Option<String>,
    /// Binding profile. Not supported yet.
    pub profile: Option<BindingProfile>,
    /// Switches off anti-spoofing and security groups on this port.
    pub disable_port_security: Option<bool>,
    /// Passes the state of the physical uplink on to the port. Not supported yet.
    pub propagate_uplink_status: Option<bool>,
    /// Further properties that the cloud's network plugin understands. Not supported yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub value_specs: Vec<ValueSpec>,
}

/// A subnet and an address in it.
#[wire]
#[serde(default)]
pub struct FixedIp {
    /// Subnet the address comes from.
    pub subnet: Option<SubnetParam>,
    /// The address; the cloud chooses when empty.
    pub ip_address: Option<String>,
}

/// An address, or a range, that may send from a port.
#[wire]
pub struct AddressPair {
    /// Address or range.
    pub ip_address: String,
    /// Its MAC address; the port's when empty.
    pub mac_address: Option<String>,
}

/// Binding profile of a port.
#[wire]
#[serde(default)]
pub struct BindingProfile {
    /// Asks for Open vSwitch hardware offload.
    #[serde(rename = "ovsHWOffload")]
    pub ovs_hardware_offload: Option<bool>,
    /// Marks the virtual function as trusted.
    #[serde(rename = "trustedVF")]
    pub trusted_virtual_function: Option<bool>,
}

/// A further property of a port.
#[wire]
pub struct ValueSpec {
    /// Name of the entry, unique in its list. The cloud does not see it.
    pub name: String,
    /// Name of the property.
    pub key: String,
    /// Value of the property.
    pub value: String,
}
