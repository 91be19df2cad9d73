//! Ports: connections to a network, with their addresses.
//!
//! Every address in use belongs to a port: those of routers and floating IPs too, as in Neutron. So an address is taken
//! exactly when a port has it.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::network::network_not_found;
use super::{Caller, Draw, Model, Refusal, Standard, Subnet};

/// Owner of a port that leads to the external network.
pub(crate) const ROUTER_GATEWAY: &str = "network:router_gateway";
/// Owner of a router's leg in a network.
pub(crate) const ROUTER_INTERFACE: &str = "network:router_interface";
/// Owner of the port that holds a floating address.
pub(crate) const FLOATING_IP: &str = "network:floatingip";

/// Owner of the port through which the cloud serves metadata: with OVN every network has one, and it goes with the network.
pub(crate) const DISTRIBUTED: &str = "network:distributed";

/// An address of a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixedIp {
    pub subnet: Uuid,
    pub address: IpAddr,
}

/// An address that may be sent from besides the fixed ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// One or a range.
    pub address: IpNet,
    /// Whether it was given as a range.
    pub is_range: bool,
    /// From which hardware address; the port's where none is given.
    pub mac: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    pub id: Uuid,
    /// Name, tags and so on.
    #[serde(flatten)]
    pub standard: Standard,
    pub network: Uuid,
    pub mac: [u8; 6],
    pub fixed_ips: Vec<FixedIp>,
    /// Whether it carries packets.
    pub admin_state_up: bool,
    /// What uses it: a server's or router's id, or nothing.
    pub device_id: String,
    /// What kind of thing that is.
    pub device_owner: String,
    pub security_groups: BTreeSet<Uuid>,
    pub allowed_address_pairs: Vec<Pair>,
    /// Whether security groups and spoofing rules apply.
    pub port_security_enabled: bool,
    /// `normal`, or what else was asked for.
    pub vnic_type: String,
    /// Whether what uses it runs.
    pub is_active: bool,
}

impl Port {
    /// Makes it a server's.
    pub(crate) fn bind(&mut self, server: Uuid, zone: &str) {
        self.device_id = server.to_string();
        self.device_owner = format!("{}{zone}", super::server::COMPUTE);
        self.standard.revision += 1;
    }

    /// Frees it, so that something else may use it.
    pub(crate) fn unbind(&mut self) {
        self.device_id.clear();
        self.device_owner.clear();
        self.is_active = false;
        self.standard.revision += 1;
    }
}

/// What a port is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPort {
    /// Name, tags and so on.
    pub standard: Standard,
    pub network: Uuid,
    /// Hardware address, where one is wanted.
    pub mac: Option<[u8; 6]>,
    /// Wanted addresses: subnet, address or both; one of each family where nothing is said.
    pub fixed_ips: Option<Vec<(Option<Uuid>, Option<IpAddr>)>>,
    /// Whether it carries packets.
    pub admin_state_up: bool,
    pub device_id: String,
    /// What kind of thing that is.
    pub device_owner: String,
    /// Security groups; the project's `default` where nothing is said.
    pub security_groups: Option<BTreeSet<Uuid>>,
    pub allowed_address_pairs: Vec<Pair>,
    /// As the network has it where nothing is said.
    pub port_security_enabled: Option<bool>,
    /// `normal`, or something else.
    pub vnic_type: String,
}

impl NewPort {
    /// A plain port, used by something.
    pub fn plain(standard: Standard, network: Uuid, device_owner: &str, device_id: &str) -> Self {
        Self {
            standard,
            network,
            mac: None,
            fixed_ips: None,
            admin_state_up: true,
            device_id: device_id.into(),
            device_owner: device_owner.into(),
            security_groups: None,
            allowed_address_pairs: vec![],
            port_security_enabled: None,
            vnic_type: "normal".into(),
        }
    }
}

pub(crate) fn port_not_found(id: impl std::fmt::Display) -> Refusal {
    Refusal::not_found("PortNotFound", format!("Port {id} could not be found."))
}

/// A hardware address as text.
pub fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

impl Model {
    /// Makes a port.
    pub fn create_port(&mut self, new: NewPort, draw: &mut Draw) -> Result<Uuid, Refusal> {
        let project = new.standard.project.clone();
        if !project.is_empty() && new.device_owner != DISTRIBUTED {
            self.check_network_quota(&project, "port")?;
        }
        let network = self.networks.get(&new.network).ok_or_else(|| network_not_found(new.network))?;
        // The cloud's own ports (routers, floating IPs) are not filtered.
        let is_plain = !new.device_owner.starts_with("network:");
        let port_security_enabled =
            is_plain && new.port_security_enabled.unwrap_or(network.port_security_enabled);
        let security_groups = match new.security_groups {
            Some(groups) => groups,
            None if port_security_enabled => self.default_security_group(&project).into_iter().collect(),
            None => BTreeSet::new(),
        };
        let is_taken =
            |mac: &[u8; 6]| self.ports.values().any(|port| port.network == new.network && port.mac == *mac);
        // Neutron draws again as often.
        let drawn = || (0..16).map(|_| draw.mac()).find(|mac| !is_taken(mac)).unwrap_or_else(|| draw.mac());
        let mac = new.mac.unwrap_or_else(drawn);
        if is_taken(&mac) {
            let words = format!(
                "Unable to complete operation for network {}. The mac address {} is in use.",
                new.network,
                mac_text(mac)
            );
            return Err(Refusal::conflict("MacAddressInUse", words));
        }
        let fixed_ips = self.give_addresses(new.network, new.fixed_ips.as_deref(), &[])?;
        let port = Port {
            id: draw.id(),
            standard: new.standard,
            network: new.network,
            mac,
            fixed_ips,
            admin_state_up: new.admin_state_up,
            device_id: new.device_id,
            device_owner: new.device_owner,
            security_groups,
            allowed_address_pairs: new.allowed_address_pairs,
            port_security_enabled,
            vnic_type: new.vnic_type,
            is_active: !is_plain,
        };
        check_port_security(&port)?;
        let id = port.id;
        self.ports.insert(id, port);
        Ok(id)
    }

    /// Finds addresses in a network. Those in `keep` count as free: they are the port's own.
    pub(crate) fn give_addresses(
        &self,
        network: Uuid,
        wanted: Option<&[(Option<Uuid>, Option<IpAddr>)]>,
        keep: &[FixedIp],
    ) -> Result<Vec<FixedIp>, Refusal> {
        let mut given: Vec<FixedIp> = vec![];
        let Some(wanted) = wanted else {
            for is_ipv6 in [false, true] {
                let mut subnets =
                    self.subnets_of(network).filter(|it| it.cidr.addr().is_ipv6() == is_ipv6).peekable();
                let exists = subnets.peek().is_some();
                match subnets.find_map(|subnet| self.free_address(subnet, keep, &given)) {
                    Some(fixed) => given.push(fixed),
                    None if exists => return Err(exhausted(network)),
                    None => {}
                }
            }
            return Ok(given);
        };
        for (subnet, address) in wanted {
            let subnet = match (subnet, address) {
                (Some(id), _) if !self.subnets.contains_key(id) => {
                    return Err(super::subnet::subnet_not_found(id));
                }
                (Some(id), _) => self.subnets_of(network).find(|subnet| subnet.id == *id).ok_or_else(|| {
                    let words = format!(
                        "Invalid input for operation: Failed to create port on network {network}, because fixed_ips included invalid subnet {id}."
                    );
                    Refusal::invalid("InvalidInput", words)
                })?,
                (None, Some(address)) => {
                    self.subnets_of(network).find(|subnet| subnet.cidr.contains(address)).ok_or_else(|| {
                        let words = format!(
                            "IP address {address} is not a valid IP for any of the subnets on the specified network."
                        );
                        Refusal::invalid("InvalidIpForNetwork", words)
                    })?
                }
                (None, None) => {
                    let words = "Invalid input for operation: IP allocation requires subnet_id or ip_address.";
                    return Err(Refusal::invalid("InvalidInput", words));
                }
            };
            let fixed = match address {
                Some(address) => self.take_address(subnet, *address, keep, &given)?,
                None => self.free_address(subnet, keep, &given).ok_or_else(|| exhausted(network))?,
            };
            given.push(fixed);
        }
        Ok(given)
    }

    /// Gives the port for metadata an address in a new subnet, if one is free.
    pub(crate) fn serve_metadata(&mut self, network: Uuid, subnet: Uuid) {
        let fixed = self.subnets.get(&subnet).and_then(|subnet| self.free_address(subnet, &[], &[]));
        let mut ports = self.ports.values_mut();
        let port = ports.find(|port| port.network == network && port.device_owner == DISTRIBUTED);
        if let Some(port) = port {
            port.fixed_ips.extend(fixed);
        }
    }

    fn take_address(
        &self,
        subnet: &Subnet,
        address: IpAddr,
        keep: &[FixedIp],
        given: &[FixedIp],
    ) -> Result<FixedIp, Refusal> {
        let is_wide = subnet.cidr.prefix_len() + 1 < subnet.cidr.max_prefix_len();
        let is_network_address = is_wide && address == subnet.cidr.network();
        if !subnet.cidr.contains(&address) || is_network_address {
            let words = format!("IP address {address} is not a valid IP for the specified subnet.");
            return Err(Refusal::invalid("InvalidIpForSubnet", words));
        }
        if self.taken(subnet.id, keep, given).contains(&address) {
            let words = format!("IP address {address} already allocated in subnet {}", subnet.id);
            return Err(Refusal::conflict("IpAddressAlreadyAllocated", words));
        }
        Ok(FixedIp { subnet: subnet.id, address })
    }

    fn free_address(&self, subnet: &Subnet, keep: &[FixedIp], given: &[FixedIp]) -> Option<FixedIp> {
        // What the port has already stays, so that an update does not move it.
        let mine = keep.iter().find(|fixed| fixed.subnet == subnet.id && !given.contains(fixed));
        if let Some(mine) = mine {
            return Some(mine.clone());
        }
        let taken = self.taken(subnet.id, keep, given);
        let address = subnet.pools.iter().find_map(|pool| pool.lowest_free(&taken))?;
        Some(FixedIp { subnet: subnet.id, address })
    }

    fn taken(&self, subnet: Uuid, keep: &[FixedIp], given: &[FixedIp]) -> BTreeSet<IpAddr> {
        let others =
            self.ports.values().flat_map(|port| &port.fixed_ips).filter(|fixed| !keep.contains(fixed));
        others.chain(given).filter(|fixed| fixed.subnet == subnet).map(|fixed| fixed.address).collect()
    }

    /// Subnets of a network, oldest first.
    pub fn subnets_of(&self, network: Uuid) -> impl Iterator<Item = &Subnet> {
        self.subnets.values().filter(move |subnet| subnet.network == network)
    }

    /// A port that the caller may see.
    pub fn port(&self, caller: &Caller, id: &str) -> Result<&Port, Refusal> {
        let port = Uuid::parse_str(id).ok().and_then(|id| self.ports.get(&id));
        port.filter(|port| port.standard.is_of(caller)).ok_or_else(|| port_not_found(id))
    }

    /// A port that the caller may change.
    pub fn port_mut(&mut self, caller: &Caller, id: &str) -> Result<&mut Port, Refusal> {
        let id = self.port(caller, id)?.id;
        self.ports.get_mut(&id).ok_or_else(|| port_not_found(id))
    }

    /// Deletes a port. What belongs to a router goes with the router's call; a server loses its port, as in Neutron.
    pub fn delete_port(&mut self, caller: &Caller, id: &str) -> Result<(), Refusal> {
        let port = self.port(caller, id)?;
        if port.device_owner.starts_with("network:") {
            let words = format!(
                "Port {} cannot be deleted directly via the port API: has device owner {}.",
                port.id, port.device_owner
            );
            return Err(Refusal::conflict("ServicePortInUse", words));
        }
        let id = port.id;
        self.remove_port(id);
        Ok(())
    }

    /// Removes a port from everything that names it.
    pub(crate) fn remove_port(&mut self, id: Uuid) {
        self.ports.remove(&id);
        for floating in self.floating_ips.values_mut().filter(|floating| floating.port == Some(id)) {
            floating.release();
        }
        for server in self.servers.values_mut() {
            server.ports.retain(|port| *port != id);
            server.own_ports.remove(&id);
        }
    }
}

/// Refuses groups and pairs on a port that is not secured.
pub(crate) fn check_port_security(port: &Port) -> Result<(), Refusal> {
    if port.port_security_enabled {
        return Ok(());
    }
    if !port.security_groups.is_empty() {
        let words = "Port has security group associated. Cannot disable port security or IP address until security group is removed.";
        return Err(Refusal::conflict("PortSecurityPortHasSecurityGroup", words));
    }
    if !port.allowed_address_pairs.is_empty() {
        let words = "Port Security must be enabled in order to have allowed address pairs on a port.";
        return Err(Refusal::conflict("AddressPairAndPortSecurityRequired", words));
    }
    Ok(())
}

fn exhausted(network: Uuid) -> Refusal {
    let words = format!("No more IP addresses available on network {network}.");
    Refusal::conflict("IpAddressGenerationFailure", words)
}
