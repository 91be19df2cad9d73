//! Subnets: address ranges of a network, and which of their addresses are assigned.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::address::{Pool, first_host, pools_without};
use super::port::DISTRIBUTED;
use super::{Caller, Draw, Model, Refusal, Standard};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subnet {
    pub id: Uuid,
    /// Name, tags and so on.
    #[serde(flatten)]
    pub standard: Standard,
    pub network: Uuid,
    pub cidr: IpNet,
    pub gateway: Option<IpAddr>,
    /// What is given out.
    pub pools: Vec<Pool>,
    /// Name servers for machines.
    pub name_servers: Vec<IpAddr>,
    pub host_routes: Vec<(IpNet, IpAddr)>,
    /// Whether machines are told their addresses. They have them anyway.
    pub enable_dhcp: bool,
    /// How IPv6 addresses come about.
    pub ipv6_address_mode: Option<String>,
    pub ipv6_ra_mode: Option<String>,
}

/// Which way out a subnet shall have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WantedGateway {
    /// The first address of the range: the default.
    First,
    None,
    At(IpAddr),
}

impl WantedGateway {
    /// The address in a range.
    pub fn address(self, cidr: IpNet) -> Option<IpAddr> {
        match self {
            Self::First => Some(first_host(cidr)),
            Self::None => None,
            Self::At(address) => Some(address),
        }
    }
}

/// What a subnet is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSubnet {
    /// Name, tags and so on.
    pub standard: Standard,
    pub network: Uuid,
    pub cidr: IpNet,
    pub gateway: WantedGateway,
    /// What is given out: everything else where nothing is said.
    pub pools: Option<Vec<Pool>>,
    pub name_servers: Vec<IpAddr>,
    pub host_routes: Vec<(IpNet, IpAddr)>,
    /// Whether machines are told their addresses.
    pub enable_dhcp: bool,
    /// How IPv6 addresses come about.
    pub ipv6_address_mode: Option<String>,
    pub ipv6_ra_mode: Option<String>,
}

impl Subnet {
    /// Refuses pools that do not fit the rest.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        check_pools(self.cidr, self.gateway, &self.pools)
    }
}

pub(crate) fn subnet_not_found(id: impl std::fmt::Display) -> Refusal {
    Refusal::not_found("SubnetNotFound", format!("Subnet {id} could not be found."))
}

/// Refuses pools that leave the range, overlap or hold the gateway.
fn check_pools(cidr: IpNet, gateway: Option<IpAddr>, pools: &[Pool]) -> Result<(), Refusal> {
    for (index, pool) in pools.iter().enumerate() {
        let text = format!("{}-{}", pool.start, pool.end);
        if !cidr.contains(&pool.start) || !cidr.contains(&pool.end) {
            let words = format!("The allocation pool {text} spans beyond the subnet cidr {cidr}.");
            return Err(Refusal::invalid("OutOfBoundsAllocationPool", words));
        }
        if pool.start > pool.end {
            let words = format!("The allocation pool {text} is not valid.");
            return Err(Refusal::invalid("InvalidAllocationPool", words));
        }
        if let Some(other) = pools[..index].iter().find(|it| it.start <= pool.end && pool.start <= it.end) {
            let words = format!(
                "Found overlapping allocation pools: {}-{}, {text} for subnet {cidr}.",
                other.start, other.end
            );
            return Err(Refusal::conflict("OverlappingAllocationPools", words));
        }
        if let Some(gateway) = gateway.filter(|gateway| pool.contains(*gateway)) {
            let words = format!("Gateway ip {gateway} conflicts with allocation pool {text}.");
            return Err(Refusal::conflict("GatewayConflictWithAllocationPools", words));
        }
    }
    Ok(())
}

impl Model {
    /// Makes a subnet.
    pub fn create_subnet(&mut self, new: NewSubnet, draw: &mut Draw) -> Result<Uuid, Refusal> {
        self.check_network_quota(&new.standard.project, "subnet")?;
        // Two calls at once with one range both succeed, as in Neutron.
        let is_seen = |created| created <= draw.arrived || created == draw.now;
        let siblings = self.subnets.values().filter(|subnet| subnet.network == new.network);
        let siblings = siblings.filter(|subnet| is_seen(subnet.standard.created));
        for sibling in siblings {
            if overlap(sibling.cidr, new.cidr) {
                let words = format!(
                    "Invalid input for operation: Requested subnet with cidr: {} for network: {} overlaps with another subnet.",
                    new.cidr, new.network
                );
                return Err(Refusal::invalid("InvalidInput", words));
            }
        }
        let gateway = new.gateway.address(new.cidr);
        let pools = new.pools.unwrap_or_else(|| pools_without(new.cidr, gateway));
        check_pools(new.cidr, gateway, &pools)?;
        let id = draw.id();
        let subnet = Subnet {
            id,
            standard: new.standard,
            network: new.network,
            cidr: new.cidr,
            gateway,
            pools,
            name_servers: new.name_servers,
            host_routes: new.host_routes,
            enable_dhcp: new.enable_dhcp,
            ipv6_address_mode: new.ipv6_address_mode,
            ipv6_ra_mode: new.ipv6_ra_mode,
        };
        let (network, takes_address) = (subnet.network, subnet.enable_dhcp);
        self.subnets.insert(id, subnet);
        if takes_address {
            self.serve_metadata(network, id);
        }
        Ok(id)
    }

    /// A subnet that the caller may see: their own, or one of a shared network. Those of an external network are
    /// hidden from others, as in Neutron.
    pub fn subnet(&self, caller: &Caller, id: &str) -> Result<&Subnet, Refusal> {
        let subnet = Uuid::parse_str(id).ok().and_then(|id| self.subnets.get(&id));
        subnet.filter(|subnet| self.sees_subnet(caller, subnet)).ok_or_else(|| subnet_not_found(id))
    }

    /// Whether the caller may see a subnet.
    pub fn sees_subnet(&self, caller: &Caller, subnet: &Subnet) -> bool {
        let is_shared = || self.networks.get(&subnet.network).is_some_and(|network| network.shared);
        subnet.standard.is_of(caller) || is_shared()
    }

    /// A subnet that the caller may change.
    pub fn subnet_mut(&mut self, caller: &Caller, id: &str, verb: &str) -> Result<&mut Subnet, Refusal> {
        let subnet = self.subnet(caller, id)?;
        if !subnet.standard.is_of(caller) {
            return Err(Refusal::forbidden(format!("rule:{verb}_subnet is disallowed by policy")));
        }
        let id = subnet.id;
        self.subnets.get_mut(&id).ok_or_else(|| subnet_not_found(id))
    }

    /// Deletes a subnet without addresses in use.
    pub fn delete_subnet(&mut self, caller: &Caller, id: &str) -> Result<(), Refusal> {
        let id = self.subnet_mut(caller, id, "delete")?.id;
        let mut others = self.ports.values().filter(|port| port.device_owner != DISTRIBUTED);
        if others.any(|port| port.fixed_ips.iter().any(|fixed| fixed.subnet == id)) {
            let words = format!(
                "Unable to complete operation on subnet {id}: One or more ports have an IP allocation from this subnet."
            );
            return Err(Refusal::conflict("SubnetInUse", words));
        }
        for port in self.ports.values_mut() {
            port.fixed_ips.retain(|fixed| fixed.subnet != id);
        }
        self.subnets.remove(&id);
        Ok(())
    }
}

/// Whether two ranges share an address.
pub(crate) fn overlap(one: IpNet, other: IpNet) -> bool {
    one.contains(&other) || other.contains(&one)
}
