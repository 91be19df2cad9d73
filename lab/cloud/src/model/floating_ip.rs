//! Floating IPs: external addresses that lead to a port.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::port::FLOATING_IP;
use super::{Caller, Draw, Model, NewPort, Refusal, Standard};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FloatingIp {
    pub id: Uuid,
    /// Tags and so on; the name is empty.
    #[serde(flatten)]
    pub standard: Standard,
    /// Of which external network.
    pub network: Uuid,
    pub address: IpAddr,
    /// The cloud's own port that holds it.
    pub holder: Uuid,
    pub port: Option<Uuid>,
    /// To which of that port's addresses.
    pub fixed_address: Option<IpAddr>,
    pub router: Option<Uuid>,
}

impl FloatingIp {
    /// Lets it lead nowhere.
    pub(crate) fn release(&mut self) {
        self.port = None;
        self.fixed_address = None;
        self.router = None;
    }
}

pub(crate) fn floating_ip_not_found(id: impl std::fmt::Display) -> Refusal {
    Refusal::not_found("FloatingIPNotFound", format!("Floating IP {id} could not be found"))
}

impl Model {
    /// Takes an external address.
    pub fn create_floating_ip(
        &mut self,
        standard: Standard,
        network: Uuid,
        address: Option<IpAddr>,
        draw: &mut Draw,
    ) -> Result<Uuid, Refusal> {
        if !self.networks.get(&network).is_some_and(|network| network.external) {
            let words = format!("Bad floatingip request: Network {network} is not a valid external network.");
            return Err(Refusal::invalid("BadRequest", words));
        }
        self.check_network_quota(&standard.project, "floatingip")?;
        let id = draw.id();
        let mut new = NewPort::plain(Standard::new("", "", "", draw), network, FLOATING_IP, &id.to_string());
        new.fixed_ips = address.map(|address| vec![(None, Some(address))]);
        let holder = self.create_port(new, draw)?;
        let address =
            self.ports.get(&holder).and_then(|port| port.fixed_ips.first()).map(|fixed| fixed.address);
        let address = address.ok_or_else(|| {
            let words = format!("No more IP addresses available on network {network}.");
            Refusal::conflict("IpAddressGenerationFailure", words)
        })?;
        let floating = FloatingIp {
            id,
            standard,
            network,
            address,
            holder,
            port: None,
            fixed_address: None,
            router: None,
        };
        self.floating_ips.insert(id, floating);
        Ok(id)
    }

    /// A floating IP that the caller may see.
    pub fn floating_ip(&self, caller: &Caller, id: &str) -> Result<&FloatingIp, Refusal> {
        let floating = Uuid::parse_str(id).ok().and_then(|id| self.floating_ips.get(&id));
        floating.filter(|floating| floating.standard.is_of(caller)).ok_or_else(|| floating_ip_not_found(id))
    }

    /// A floating IP that the caller may change.
    pub fn floating_ip_mut(&mut self, caller: &Caller, id: &str) -> Result<&mut FloatingIp, Refusal> {
        let id = self.floating_ip(caller, id)?.id;
        self.floating_ips.get_mut(&id).ok_or_else(|| floating_ip_not_found(id))
    }

    /// Lets a floating IP lead to a port.
    pub fn associate(&mut self, id: Uuid, port: Uuid, fixed: Option<IpAddr>) -> Result<(), Refusal> {
        let floating = self.floating_ips.get(&id).ok_or_else(|| floating_ip_not_found(id))?;
        let (network, address) = (floating.network, floating.address);
        let target = self.ports.get(&port).ok_or_else(|| super::port::port_not_found(port))?;
        let mut choices = target.fixed_ips.iter().filter(|it| it.address.is_ipv4());
        let chosen = match fixed {
            Some(fixed) => choices.find(|it| it.address == fixed).ok_or_else(|| {
                let words = format!("Bad floatingip request: Port {port} does not have fixed ip {fixed}.");
                Refusal::invalid("BadRequest", words)
            })?,
            None => choices.next().ok_or_else(|| {
                let words = format!(
                    "Bad floatingip request: Cannot add floating IP to port {port} that has no fixed IPv4 addresses."
                );
                Refusal::invalid("BadRequest", words)
            })?,
        };
        let chosen = chosen.clone();
        let rival = self.floating_ips.values().find(|it| {
            it.id != id
                && it.port == Some(port)
                && it.fixed_address == Some(chosen.address)
                && it.network == network
        });
        if rival.is_some() {
            let words = format!(
                "Cannot associate floating IP {address} ({id}) with port {port} using fixed IP {}, as that fixed IP already has a floating IP on external network {network}.",
                chosen.address
            );
            return Err(Refusal::conflict("FloatingIPPortAlreadyAssociated", words));
        }
        let router = self.router_between(chosen.subnet, network).ok_or_else(|| {
            let words = format!(
                "External network {network} is not reachable from subnet {}. Therefore, cannot associate Port {port} with a Floating IP.",
                chosen.subnet
            );
            Refusal::not_found("ExternalGatewayForFloatingIPNotFound", words)
        })?;
        if let Some(floating) = self.floating_ips.get_mut(&id) {
            floating.port = Some(port);
            floating.fixed_address = Some(chosen.address);
            floating.router = Some(router);
        }
        Ok(())
    }

    fn router_between(&self, subnet: Uuid, external: Uuid) -> Option<Uuid> {
        let routers = self.routers.values();
        let mut ways =
            routers.filter(|router| router.gateway.as_ref().is_some_and(|it| it.network == external));
        ways.find(|router| {
            self.router_interfaces(router.id).any(|leg| leg.fixed_ips.iter().any(|it| it.subnet == subnet))
        })
        .map(|router| router.id)
    }

    /// Gives an external address back.
    pub fn delete_floating_ip(&mut self, caller: &Caller, id: &str) -> Result<(), Refusal> {
        let floating = self.floating_ip(caller, id)?;
        let (id, holder) = (floating.id, floating.holder);
        self.ports.remove(&holder);
        self.floating_ips.remove(&id);
        Ok(())
    }
}
