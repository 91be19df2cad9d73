//! The topology: what should exist on the host, derived from the model, made by a driver.
//!
//! It separates the API from the machines. The API changes its model and never waits; after every change a driver is
//! given the whole topology and brings the host there. So a driver that was killed half way, or a host that was
//! restarted, needs no special case: the next call repairs it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Everything that should exist, by id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    /// The network that routers lead to: the one-host private network. It exists without us.
    pub external: Option<Uuid>,
    pub networks: BTreeMap<Uuid, Network>,
    pub routers: BTreeMap<Uuid, Router>,
    /// Ports that something is plugged into.
    pub ports: BTreeMap<Uuid, Port>,
    /// Security groups that a port names.
    pub security_groups: BTreeMap<Uuid, SecurityGroup>,
    /// Servers that should run or be stopped.
    pub servers: BTreeMap<Uuid, Server>,
}

/// A layer 2 network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    pub mtu: u32,
    pub subnets: Vec<Subnet>,
}

/// Addresses of a network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subnet {
    pub id: Uuid,
    pub cidr: IpNet,
    /// Where packets to elsewhere go.
    pub gateway: Option<IpAddr>,
    /// Name servers for machines; the private network's resolver where there are none.
    pub name_servers: Vec<IpAddr>,
    /// Further routes for machines: destination and next hop.
    pub host_routes: Vec<(IpNet, IpAddr)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Router {
    /// Its address on the external network, where it has a gateway there.
    pub external_address: Option<IpAddr>,
    /// Whether packets that leave by it get that address.
    pub translates_source: bool,
    /// Ports in the networks it joins, by port id.
    pub interfaces: BTreeMap<Uuid, RouterInterface>,
    /// Floating addresses: external address to the fixed one behind it.
    pub floating: BTreeMap<IpAddr, IpAddr>,
}

/// A router's leg in a network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouterInterface {
    pub network: Uuid,
    /// Its addresses there, with the subnet's prefix.
    pub addresses: Vec<IpNet>,
}

/// A server's port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    pub network: Uuid,
    pub mac: [u8; 6],
    /// Addresses, each with its subnet.
    pub fixed: Vec<(Uuid, IpAddr)>,
    /// Further addresses that may be sent from here.
    pub allowed_pairs: Vec<IpNet>,
    /// Whether security groups and spoofing rules apply.
    pub secured: bool,
    pub security_groups: BTreeSet<Uuid>,
}

/// Which packets are let through.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecurityGroup {
    /// Each lets something through; what none lets through is dropped.
    pub rules: Vec<SecurityRule>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecurityRule {
    /// Towards the machine, or away from it.
    pub ingress: bool,
    /// IPv6 instead of IPv4.
    pub ipv6: bool,
    /// Its number: not every host knows every name. Any without.
    pub protocol: Option<u8>,
    /// First and last port, for protocols that have ports; ICMP's type and code, which may be any.
    pub ports: Option<(u16, Option<u16>)>,
    /// The other side by address.
    pub remote: Option<IpNet>,
    /// The other side by group.
    pub remote_group: Option<Uuid>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// Its name, which is its host name too.
    pub name: String,
    /// Its ports in order: the first is `eth0`.
    pub ports: Vec<Uuid>,
    /// Properties of the image it was made from; they select what runs inside.
    pub image: BTreeMap<String, String>,
    /// Properties given at creation.
    pub metadata: BTreeMap<String, String>,
    pub user_data: Option<Vec<u8>>,
    /// Name and public key, where it has one.
    pub key: Option<(String, String)>,
    /// Zone, as the metadata service tells it.
    pub availability_zone: String,
    /// Project, as the metadata service tells it.
    pub project: String,
    /// Whether it should run.
    pub runs: bool,
}
