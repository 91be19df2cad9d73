//! The ids that the parameters of a server were resolved to; they are found once and used from then on.

use super::{AddressPair, BindingProfile, ValueSpec};
use hangar_wire::wire;

/// A machine's parameters, resolved into ids.
#[wire]
#[serde(default)]
pub struct ResolvedServer {
    /// UUID of the server group.
    #[serde(rename = "serverGroupID", skip_serializing_if = "String::is_empty")]
    pub server_group_id: String,
    /// UUID of the image.
    #[serde(rename = "imageID", skip_serializing_if = "String::is_empty")]
    pub image_id: String,
    /// Id of the flavor.
    #[serde(rename = "flavorID", skip_serializing_if = "String::is_empty")]
    pub flavor_id: String,
    /// The ports as they are created.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<ResolvedPort>,
}

/// A port's parameters, resolved into ids.
#[wire]
pub struct ResolvedPort {
    /// Name of the port.
    pub name: String,
    /// Description of the port.
    pub description: String,
    /// UUID of its network.
    #[serde(rename = "networkID")]
    pub network_id: String,
    /// Its subnets and addresses.
    #[serde(rename = "fixedIPs", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub fixed_ips: Vec<ResolvedFixedIp>,
    /// UUIDs of its security groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub security_groups: Vec<String>,
    /// Its tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub tags: Vec<String>,
    /// Whether it is a trunk.
    pub trunk: Option<bool>,
    /// Whether it is up.
    pub admin_state_up: Option<bool>,
    /// Requested MAC address.
    pub mac_address: Option<String>,
    /// Further addresses that may send from it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_address_pairs: Vec<AddressPair>,
    /// Hypervisor it is bound to.
    #[serde(rename = "hostID")]
    pub host_id: Option<String>,
    /// Type of its virtual network card.
    #[serde(rename = "vnicType")]
    pub vnic_type: Option<String>,
    /// Its binding profile.
    pub profile: Option<BindingProfile>,
    /// Whether anti-spoofing and security groups are off.
    pub disable_port_security: Option<bool>,
    /// Whether the state of the uplink is passed on.
    pub propagate_uplink_status: Option<bool>,
    /// Further properties.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub value_specs: Vec<ValueSpec>,
}

/// A subnet's id and an address in it.
#[wire]
#[serde(default)]
pub struct ResolvedFixedIp {
    /// UUID of the subnet.
    pub subnet: Option<String>,
    /// Requested address.
    pub ip_address: Option<String>,
}

/// What was created for a machine.
#[wire]
#[serde(default)]
pub struct MachineResources {
    /// Its ports, in the order of the resolved ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortResource>,
}

/// A port that was created.
#[wire]
pub struct PortResource {
    /// UUID of the port.
    pub id: String,
}
