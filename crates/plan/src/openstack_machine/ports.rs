//! Which ports a machine has.

use hangar_api::infrastructure::v1beta1::{
    AddressPair, NetworkParam, OpenStackMachineSpec, Port, SecurityGroupParam, SubnetParam,
};

use super::InfrastructureFacts;

/// An address that a port shall have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WantedFixedIp {
    /// On this subnet, as the specification names it.
    pub subnet: Option<SubnetParam>,
    /// On this subnet, which is known.
    pub subnet_id: Option<String>,
    pub ip_address: Option<String>,
}

/// A port that a machine shall have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WantedPort {
    pub name: String,
    /// Words of the user before our mark.
    pub description: Option<String>,
    /// Its network, as the specification names it; the cluster's when none.
    pub network: Option<NetworkParam>,
    pub fixed_ips: Vec<WantedFixedIp>,
    /// Its groups, as the specification names them.
    pub security_groups: Vec<SecurityGroupParam>,
    /// Whether the managed group of the role is used.
    pub uses_managed_group: bool,
    pub tags: Vec<String>,
    /// What it may send besides.
    pub allowed_address_pairs: Vec<AddressPair>,
    pub mac_address: Option<String>,
    /// Whether it is up.
    pub admin_state_up: Option<bool>,
    /// Its type of network card.
    pub vnic_type: Option<String>,
    /// Whether filtering is off.
    pub disable_port_security: bool,
}

/// The ports in order. Names follow from the server's: they are how a port is found again.
pub fn wanted_ports(
    server: &str,
    spec: &OpenStackMachineSpec,
    infrastructure: &InfrastructureFacts,
) -> Vec<WantedPort> {
    let of_cluster: Vec<WantedFixedIp> = infrastructure
        .subnet_ids
        .iter()
        .map(|id| WantedFixedIp { subnet_id: Some(id.clone()), ..WantedFixedIp::default() })
        .collect();
    let mut given = spec.ports.clone();
    if given.is_empty() {
        given.push(Port::default());
    }
    let ports = given.iter().enumerate().map(|(index, port)| {
        let suffix = suffix(index, port);
        let disable_port_security = port
            .disable_port_security
            .unwrap_or(port.network.is_none() && infrastructure.disables_port_security);
        let mut tags = [&port.tags[..], &spec.tags[..], &infrastructure.tags[..]].concat();
        dedup(&mut tags);
        let fixed_ips: Vec<WantedFixedIp> = port
            .fixed_ips
            .iter()
            .map(|fixed| WantedFixedIp {
                subnet: fixed.subnet.clone(),
                subnet_id: None,
                ip_address: fixed.ip_address.clone(),
            })
            .collect();
        let is_left_open = port.network.is_none() && fixed_ips.is_empty();
        WantedPort {
            name: format!("{server}-{suffix}"),
            description: port.description.clone(),
            network: port.network.clone(),
            fixed_ips: if is_left_open { of_cluster.clone() } else { fixed_ips },
            security_groups: port.security_groups.clone(),
            uses_managed_group: port.security_groups.is_empty(),
            tags,
            allowed_address_pairs: port.allowed_address_pairs.clone(),
            mac_address: port.mac_address.clone(),
            admin_state_up: port.admin_state_up,
            vnic_type: port.vnic_type.clone(),
            disable_port_security,
        }
    });
    ports.collect()
}

/// The end of a port's name: given, or its place in the list.
pub(super) fn suffix(index: usize, port: &Port) -> String {
    port.name_suffix.clone().unwrap_or_else(|| index.to_string())
}

/// Keeps the first of each.
pub(super) fn dedup(items: &mut Vec<String>) {
    let mut seen = Vec::new();
    items.retain(|item| {
        let is_new = !seen.contains(item);
        seen.push(item.clone());
        is_new
    });
}
