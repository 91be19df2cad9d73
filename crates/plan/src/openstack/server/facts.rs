//! Facts about a server, and how our own steps change them.

use std::collections::BTreeMap;

use super::{ServerStep, UserData};
use crate::flow::Read;
use crate::openstack::{Flavor, Group, Image, Network, Port, Server, ServerGroupId, Subnet};

/// What the cloud says.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerFacts {
    /// Servers with the owner id, or the recorded one if it is nobody else's.
    pub servers: Read<Server>,
    /// Ports with the owner id, by name.
    pub ports: BTreeMap<String, Read<Port>>,
    /// What a new server needs; looked for only while there is none.
    pub preflight: Option<Preflight>,
}

/// What a new server needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Preflight {
    pub image: Read<Image>,
    pub flavor: Read<Flavor>,
    /// The id of the server group, if one is asked for.
    pub server_group: Read<ServerGroupId>,
    /// Whether the key exists, if one is asked for.
    pub key: Read<bool>,
    /// For each wanted port.
    pub wanted: Vec<PortFacts>,
    /// Security groups of all ports.
    pub groups: Vec<Read<Group>>,
    pub user_data: Read<UserData>,
}

/// What is found for one wanted port.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PortFacts {
    /// Its network; only looked for when the port names one.
    pub network: Read<Network>,
    /// Whether its network has a subnet; a port without an address is of no use.
    pub has_subnet: Read<bool>,
    /// Its subnets, in the order of its addresses that name one.
    pub subnets: Vec<Read<Subnet>>,
    /// Its security groups, in their order.
    pub groups: Vec<Read<Group>>,
}

#[cfg(test)]
crate::flow::doubt::reads! {
    ServerFacts { servers, ports, preflight }
    Preflight { image, flavor, server_group, key, wanted, groups, user_data }
    PortFacts { network, has_subnet, subnets, groups };
    UserData,
}

impl ServerFacts {
    /// Servers that count. One that the cloud only keeps for a while is none.
    pub fn visible(&self) -> Read<Server> {
        self.servers.clone().filter(|server| !server.is_gone())
    }

    /// Whether there is no server, and what a new one needs was not looked for.
    pub fn lacks_preflight(&self) -> bool {
        self.preflight.is_none() && self.visible().is_absent()
    }

    /// After a lost answer nothing is known of what may have changed.
    pub fn forget(&mut self, why: &str) {
        self.servers = Read::unknown(why);
        for read in self.ports.values_mut() {
            *read = Read::unknown(why);
        }
    }

    /// Makes the facts what they are after that step. With a request that is not settled yet, a server may have come
    /// before its port went.
    pub fn done(&mut self, step: &ServerStep, new_id: &str, is_requested: bool) {
        match step {
            ServerStep::CreatePort(port) => {
                let made = Port {
                    id: new_id.into(),
                    name: port.name.clone(),
                    network_id: port.network_id.clone(),
                    ..Port::default()
                };
                self.ports.insert(port.name.clone(), Read::One(made));
            }
            ServerStep::TagPort { id, tags, .. } => {
                for port in self.ports.values_mut().flat_map(Read::iter_mut).filter(|port| port.id == *id) {
                    port.tags.clone_from(tags);
                }
            }
            ServerStep::CreateServer(new) => {
                let ports = self.ports.values_mut().flat_map(Read::iter_mut);
                for port in ports.filter(|port| new.port_ids.contains(&port.id)) {
                    new_id.clone_into(&mut port.device_id);
                }
                let (id, name, status) = (new_id.into(), new.name.clone(), "BUILD".to_owned());
                self.servers = Read::One(Server { id, name, status, ..Server::default() });
            }
            ServerStep::DeleteServer { id, .. } => {
                // Asked for, not gone: only a new look tells.
                for server in self.servers.iter_mut().filter(|server| server.id == *id) {
                    server.is_going = true;
                    server.updated = None;
                }
            }
            ServerStep::DeletePort { id, .. } => {
                for read in self.ports.values_mut() {
                    read.retain(|port| port.id != *id);
                }
                if is_requested {
                    self.servers =
                        Read::unknown("whether a server came before its port went is only seen now");
                }
            }
        }
    }
}
