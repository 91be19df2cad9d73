//! Topologies of the tests: a network with a router to the outside, servers on it, groups.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use hangar_cloud::driver::namespaces::KUBERNETES_VERSION;
use hangar_cloud::topology::{
    Network, Port, Router, RouterInterface, SecurityGroup, SecurityRule, Server, Subnet, Topology,
};
use uuid::Uuid;

pub(crate) const EXTERNAL: Uuid = Uuid::from_u128(0xe0);
pub(crate) const NETWORK: Uuid = Uuid::from_u128(0xa1_0000_0000_0000_0000_0000_0000);
pub(crate) const ROUTER: Uuid = Uuid::from_u128(0xb1_0000_0000_0000_0000_0000_0000);
pub(crate) const GROUP: Uuid = Uuid::from_u128(0xc1);
const SUBNET: Uuid = Uuid::from_u128(0xd1);

/// A server's id and its address in the network are made from one number.
pub(crate) fn server_id(last: u8) -> Uuid {
    Uuid::from_u128(0x5e_0000_0000_0000_0000_0000_0000 + u128::from(last))
}

pub(crate) fn port_id(last: u8) -> Uuid {
    Uuid::from_u128(0x70_0000_0000_0000_0000_0000_0000 + u128::from(last))
}

pub(crate) fn fixed(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 6, 0, last)
}

pub(crate) fn rule(ingress: bool) -> SecurityRule {
    SecurityRule { ingress, ipv6: false, protocol: None, ports: None, remote: None, remote_group: None }
}

pub(crate) fn tcp(port: u16) -> SecurityRule {
    SecurityRule { protocol: Some(6), ports: Some((port, Some(port))), ..rule(true) }
}

/// A network behind a router whose external address is `100.121.<third>.50`.
pub(crate) fn topology(third: u8) -> Topology {
    let subnet = Subnet {
        id: SUBNET,
        cidr: "10.6.0.0/24".parse().unwrap(),
        gateway: Some(IpAddr::V4(fixed(1))),
        name_servers: Vec::new(),
        host_routes: Vec::new(),
    };
    let interface = RouterInterface { network: NETWORK, addresses: vec!["10.6.0.1/24".parse().unwrap()] };
    Topology {
        external: Some(EXTERNAL),
        networks: BTreeMap::from([(NETWORK, Network { mtu: 1450, subnets: vec![subnet] })]),
        routers: BTreeMap::from([(
            ROUTER,
            Router {
                external_address: Some(IpAddr::from([100, 121, third, 50])),
                translates_source: true,
                interfaces: BTreeMap::from([(
                    Uuid::from_u128(0x71_0000_0000_0000_0000_0000_0001),
                    interface,
                )]),
                floating: BTreeMap::new(),
            },
        )]),
        // Anything out, nothing in.
        security_groups: BTreeMap::from([(GROUP, SecurityGroup { rules: vec![rule(false)] })]),
        ..Topology::default()
    }
}

pub(crate) fn add_server(topology: &mut Topology, last: u8, image: &str) -> Uuid {
    topology.ports.insert(
        port_id(last),
        Port {
            network: NETWORK,
            mac: [0xfa, 0x16, 0x3e, 0, 0, last],
            fixed: vec![(SUBNET, IpAddr::V4(fixed(last)))],
            allowed_pairs: Vec::new(),
            secured: true,
            security_groups: BTreeSet::from([GROUP]),
        },
    );
    let server = Server {
        name: format!("node-{last}"),
        ports: vec![port_id(last)],
        image: BTreeMap::from([(KUBERNETES_VERSION.to_owned(), image.to_owned())]),
        metadata: BTreeMap::new(),
        user_data: None,
        key: None,
        availability_zone: "nova".to_owned(),
        project: "demo".to_owned(),
        runs: true,
    };
    topology.servers.insert(server_id(last), server);
    server_id(last)
}

pub(crate) fn allow(topology: &mut Topology, rule: SecurityRule) {
    topology.security_groups.get_mut(&GROUP).unwrap().rules.push(rule);
}
