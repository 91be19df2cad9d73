//! Routers: legs in networks, and a gateway to the external one.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::port::{ROUTER_GATEWAY, ROUTER_INTERFACE};
use super::subnet::overlap;
use super::{Caller, Draw, Model, NewPort, Refusal, Standard};

/// A router's way out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gateway {
    pub network: Uuid,
    /// The port that holds its address there.
    pub port: Uuid,
    /// Whether packets that leave get that address.
    pub enable_snat: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Router {
    pub id: Uuid,
    /// Name, tags and so on.
    #[serde(flatten)]
    pub standard: Standard,
    /// Whether it carries packets.
    pub admin_state_up: bool,
    pub gateway: Option<Gateway>,
}

pub(crate) fn router_not_found(id: impl std::fmt::Display) -> Refusal {
    Refusal::not_found("RouterNotFound", format!("Router {id} could not be found"))
}

fn bad_router(why: impl std::fmt::Display) -> Refusal {
    Refusal::invalid("BadRequest", format!("Bad router request: {why}."))
}

impl Model {
    /// Makes a router without a way out.
    pub fn create_router(
        &mut self,
        standard: Standard,
        admin_state_up: bool,
        draw: &mut Draw,
    ) -> Result<Uuid, Refusal> {
        self.check_network_quota(&standard.project, "router")?;
        let id = draw.id();
        self.routers.insert(id, Router { id, standard, admin_state_up, gateway: None });
        Ok(id)
    }

    /// A router that the caller may see.
    pub fn router(&self, caller: &Caller, id: &str) -> Result<&Router, Refusal> {
        let router = Uuid::parse_str(id).ok().and_then(|id| self.routers.get(&id));
        router.filter(|router| router.standard.is_of(caller)).ok_or_else(|| router_not_found(id))
    }

    /// A router that the caller may change.
    pub fn router_mut(&mut self, caller: &Caller, id: &str) -> Result<&mut Router, Refusal> {
        let id = self.router(caller, id)?.id;
        self.routers.get_mut(&id).ok_or_else(|| router_not_found(id))
    }

    /// Gives a router a way out, or keeps the one it has where that is the same.
    pub fn set_gateway(
        &mut self,
        router: Uuid,
        network: Uuid,
        enable_snat: bool,
        fixed: Option<Vec<(Option<Uuid>, Option<IpAddr>)>>,
        draw: &mut Draw,
    ) -> Result<(), Refusal> {
        if !self.networks.get(&network).is_some_and(|network| network.external) {
            return Err(bad_router(format!("Network {network} is not an external network")));
        }
        let current = self.routers.get(&router).and_then(|router| router.gateway.clone());
        let port = match current {
            Some(gateway) if gateway.network == network && fixed.is_none() => gateway.port,
            current => {
                if current.is_some() {
                    self.clear_gateway(router)?;
                }
                // The port is the cloud's own: it has no project, and nobody sees it.
                let standard = Standard::new("", "", "", draw);
                let mut new = NewPort::plain(standard, network, ROUTER_GATEWAY, &router.to_string());
                new.fixed_ips = fixed;
                self.create_port(new, draw)?
            }
        };
        let router = self.routers.get_mut(&router).ok_or_else(|| router_not_found(router))?;
        router.gateway = Some(Gateway { network, port, enable_snat });
        Ok(())
    }

    /// Takes a router's way out, unless floating IPs need it.
    pub fn clear_gateway(&mut self, router: Uuid) -> Result<(), Refusal> {
        let Some(gateway) = self.routers.get(&router).and_then(|router| router.gateway.clone()) else {
            return Ok(());
        };
        if self.floating_ips.values().any(|floating| floating.router == Some(router)) {
            let words = format!(
                "Gateway cannot be updated for router {router}, since a gateway to external network {} is required by one or more floating IPs.",
                gateway.network
            );
            return Err(Refusal::conflict("RouterExternalGatewayInUseByFloatingIp", words));
        }
        self.ports.remove(&gateway.port);
        if let Some(router) = self.routers.get_mut(&router) {
            router.gateway = None;
        }
        Ok(())
    }

    /// Ports that are a router's legs.
    pub fn router_interfaces(&self, router: Uuid) -> impl Iterator<Item = &super::Port> {
        let device = router.to_string();
        self.ports
            .values()
            .filter(move |port| port.device_owner == ROUTER_INTERFACE && port.device_id == device)
    }

    /// Gives a router a leg in a subnet, at that subnet's gateway address, and returns the port.
    pub fn add_interface(&mut self, router: Uuid, subnet: Uuid, draw: &mut Draw) -> Result<Uuid, Refusal> {
        let found = self.subnets.get(&subnet).ok_or_else(|| super::subnet::subnet_not_found(subnet))?;
        let network = found.network;
        let gateway =
            found.gateway.ok_or_else(|| bad_router("Subnet for router interface must have a gateway IP"))?;
        self.check_new_interface(router, subnet)?;
        let project =
            self.routers.get(&router).map(|router| router.standard.project.clone()).unwrap_or_default();
        let standard = Standard::new(&project, "", "", draw);
        let mut new = NewPort::plain(standard, network, ROUTER_INTERFACE, &router.to_string());
        new.fixed_ips = Some(vec![(Some(subnet), Some(gateway))]);
        self.create_port(new, draw)
    }

    /// Makes an existing port a router's leg.
    pub fn add_interface_port(&mut self, router: Uuid, port: Uuid) -> Result<(), Refusal> {
        let found = self.ports.get(&port).ok_or_else(|| super::port::port_not_found(port))?;
        if !found.device_id.is_empty() {
            let words = format!(
                "Unable to complete operation on port {port} for network {}. Port already has an attached device {}.",
                found.network, found.device_id
            );
            return Err(Refusal::conflict("PortInUse", words));
        }
        if found.fixed_ips.is_empty() {
            return Err(bad_router("Router port must have at least one fixed IP"));
        }
        for fixed in found.fixed_ips.clone() {
            self.check_new_interface(router, fixed.subnet)?;
        }
        if let Some(port) = self.ports.get_mut(&port) {
            port.device_id = router.to_string();
            port.device_owner = ROUTER_INTERFACE.into();
            port.is_active = true;
            port.port_security_enabled = false;
            port.security_groups.clear();
        }
        Ok(())
    }

    fn check_new_interface(&self, router: Uuid, subnet: Uuid) -> Result<(), Refusal> {
        let new = self.subnets.get(&subnet).ok_or_else(|| super::subnet::subnet_not_found(subnet))?;
        for fixed in self.router_interfaces(router).flat_map(|port| &port.fixed_ips) {
            if fixed.subnet == subnet {
                return Err(bad_router(format!("Router already has a port on subnet {subnet}")));
            }
            if let Some(other) = self.subnets.get(&fixed.subnet).filter(|other| overlap(other.cidr, new.cidr))
            {
                return Err(bad_router(format!(
                    "Cidr {} of subnet {subnet} overlaps with cidr {} of subnet {}",
                    new.cidr, other.cidr, other.id
                )));
            }
        }
        Ok(())
    }

    /// Takes a router's leg and returns the port that was it, with its subnet.
    pub fn remove_interface(
        &mut self,
        router: Uuid,
        subnet: Option<Uuid>,
        port: Option<Uuid>,
    ) -> Result<super::Port, Refusal> {
        let leg = self.router_interfaces(router).find(|leg| {
            port.is_none_or(|port| port == leg.id)
                && subnet.is_none_or(|subnet| leg.fixed_ips.iter().any(|fixed| fixed.subnet == subnet))
        });
        let leg = leg.cloned().ok_or_else(|| match (subnet, port) {
            (Some(subnet), _) => Refusal::not_found(
                "RouterInterfaceNotFoundForSubnet",
                format!("Router {router} has no interface on subnet {subnet}"),
            ),
            (None, port) => Refusal::not_found(
                "RouterInterfaceNotFound",
                format!("Router {router} does not have an interface with id {}", port.unwrap_or_default()),
            ),
        })?;
        for fixed in &leg.fixed_ips {
            if self.floating_needs(router, fixed.subnet) {
                let words = format!(
                    "Router interface for subnet {} on router {router} cannot be deleted, as it is required by one or more floating IPs.",
                    fixed.subnet
                );
                return Err(Refusal::conflict("RouterInterfaceInUseByFloatingIP", words));
            }
        }
        self.ports.remove(&leg.id);
        Ok(leg)
    }

    fn floating_needs(&self, router: Uuid, subnet: Uuid) -> bool {
        self.floating_ips.values().filter(|floating| floating.router == Some(router)).any(|floating| {
            let port = floating.port.and_then(|port| self.ports.get(&port));
            port.is_some_and(|port| {
                port.fixed_ips
                    .iter()
                    .any(|it| it.subnet == subnet && Some(it.address) == floating.fixed_address)
            })
        })
    }

    /// Deletes a router that has no legs.
    pub fn delete_router(&mut self, caller: &Caller, id: &str) -> Result<(), Refusal> {
        let id = self.router(caller, id)?.id;
        if self.router_interfaces(id).next().is_some() {
            return Err(Refusal::conflict("RouterInUse", format!("Router {id} still has ports")));
        }
        self.clear_gateway(id)?;
        self.routers.remove(&id);
        Ok(())
    }
}
