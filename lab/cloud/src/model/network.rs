//! Networks.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::port::DISTRIBUTED;
use super::{Caller, Draw, Model, NewPort, Refusal, Standard};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    pub id: Uuid,
    /// Name, tags and so on.
    #[serde(flatten)]
    pub standard: Standard,
    /// Whether it carries packets.
    pub admin_state_up: bool,
    /// Whether other projects may use it.
    pub shared: bool,
    /// Whether routers may have their gateway in it.
    pub external: bool,
    pub mtu: u32,
    pub port_security_enabled: bool,
}

/// What a network is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNetwork {
    /// Name, tags and so on.
    pub standard: Standard,
    /// Whether it carries packets.
    pub admin_state_up: bool,
    /// Largest packet; the external network's where it is not given.
    pub mtu: Option<u32>,
    pub port_security_enabled: bool,
}

/// Message for a network that does not exist, or is not the caller's.
pub(crate) fn network_not_found(id: impl std::fmt::Display) -> Refusal {
    Refusal::not_found("NetworkNotFound", format!("Network {id} could not be found."))
}

impl Model {
    /// Makes a network.
    pub fn create_network(&mut self, new: NewNetwork, draw: &mut Draw) -> Result<Uuid, Refusal> {
        self.check_network_quota(&new.standard.project, "network")?;
        let largest = self.external_network().map_or(1500, |network| network.mtu);
        let mtu = new.mtu.unwrap_or(largest);
        if mtu > largest {
            let words = format!("Requested MTU is too big, maximum is {largest}");
            return Err(Refusal::invalid("InvalidInput", format!("Invalid input for operation: {words}.")));
        }
        let id = draw.id();
        let network = Network {
            id,
            standard: new.standard,
            admin_state_up: new.admin_state_up,
            shared: false,
            external: false,
            mtu,
            port_security_enabled: new.port_security_enabled,
        };
        let standard = Standard::new(&network.standard.project, "", "", draw);
        self.networks.insert(id, network);
        self.create_port(NewPort::plain(standard, id, DISTRIBUTED, &format!("ovnmeta-{id}")), draw)?;
        Ok(id)
    }

    /// The network that routers lead to.
    pub fn external_network(&self) -> Option<&Network> {
        self.networks.values().find(|network| network.external)
    }

    /// A network that the caller may see.
    pub fn network(&self, caller: &Caller, id: &str) -> Result<&Network, Refusal> {
        let network = Uuid::parse_str(id).ok().and_then(|id| self.networks.get(&id));
        network
            .filter(|network| network.standard.is_of(caller) || network.shared || network.external)
            .ok_or_else(|| network_not_found(id))
    }

    /// A network that the caller may change.
    pub fn network_mut(&mut self, caller: &Caller, id: &str, verb: &str) -> Result<&mut Network, Refusal> {
        let network = self.network(caller, id)?;
        if !network.standard.is_of(caller) {
            return Err(Refusal::forbidden(format!("rule:{verb}_network is disallowed by policy")));
        }
        let id = network.id;
        self.networks.get_mut(&id).ok_or_else(|| network_not_found(id))
    }

    /// Deletes a network with its subnets.
    pub fn delete_network(&mut self, caller: &Caller, id: &str) -> Result<(), Refusal> {
        let id = self.network_mut(caller, id, "delete")?.id;
        let others =
            self.ports.values().filter(|port| port.network == id && port.device_owner != DISTRIBUTED);
        let ports: Vec<String> = others.map(|port| port.id.to_string()).collect();
        if !ports.is_empty() {
            let words = format!(
                "Unable to complete operation on network {id}. There are one or more ports still in use on the network, id for these ports: {}.",
                ports.join(",")
            );
            return Err(Refusal::conflict("NetworkInUse", words));
        }
        self.ports.retain(|_, port| port.network != id);
        self.subnets.retain(|_, subnet| subnet.network != id);
        self.networks.remove(&id);
        Ok(())
    }
}
