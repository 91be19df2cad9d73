//! Derives the topology from the model: only what carries packets or runs.
//!
//! A server that is being deleted is left out, and its ports with it; so is one that a fault rule lets fail, and one
//! that has not taken its ports yet.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use ipnet::IpNet;
use uuid::Uuid;

use super::security_rule::protocol_number;
use super::{FixedIp, Model, Router, SecurityRule, Server};
use crate::topology::{self, Topology};

/// What should be, given the model.
pub fn topology(model: &Model) -> Topology {
    let servers: BTreeMap<Uuid, topology::Server> = model
        .servers
        .values()
        .filter(|server| !server.is_deleting && server.fails_with.is_none() && server.binds_at.is_none())
        .map(|server| (server.id, server_of(model, server)))
        .collect();
    let ports: BTreeMap<Uuid, topology::Port> = servers
        .values()
        .flat_map(|server| &server.ports)
        .filter_map(|id| Some((*id, port_of(model, *id)?)))
        .collect();
    let groups = groups_in_use(model, &ports);
    Topology {
        external: model.external_network().map(|network| network.id),
        networks: model
            .networks
            .values()
            .filter(|network| !network.external)
            .map(|network| (network.id, network_of(model, network)))
            .collect(),
        routers: model.routers.values().map(|router| (router.id, router_of(model, router))).collect(),
        security_groups: groups.into_iter().map(|id| (id, group_of(model, id))).collect(),
        ports,
        servers,
    }
}

fn network_of(model: &Model, network: &super::Network) -> topology::Network {
    let subnets = model.subnets_of(network.id).map(|subnet| topology::Subnet {
        id: subnet.id,
        cidr: subnet.cidr,
        gateway: subnet.gateway,
        name_servers: subnet.name_servers.clone(),
        host_routes: subnet.host_routes.clone(),
    });
    topology::Network { mtu: network.mtu, subnets: subnets.collect() }
}

fn router_of(model: &Model, router: &Router) -> topology::Router {
    let gateway = router.gateway.as_ref();
    let outside = gateway.and_then(|gateway| model.ports.get(&gateway.port));
    let interfaces = model.router_interfaces(router.id).map(|leg| {
        let addresses = leg.fixed_ips.iter().filter_map(|fixed| with_prefix(model, fixed)).collect();
        (leg.id, topology::RouterInterface { network: leg.network, addresses })
    });
    let floating = model.floating_ips.values().filter(|floating| floating.router == Some(router.id));
    topology::Router {
        external_address: outside.and_then(|port| port.fixed_ips.first()).map(|fixed| fixed.address),
        translates_source: gateway.is_some_and(|gateway| gateway.enable_snat),
        interfaces: interfaces.collect(),
        floating: floating.filter_map(|it| Some((it.address, it.fixed_address?))).collect(),
    }
}

fn with_prefix(model: &Model, fixed: &FixedIp) -> Option<IpNet> {
    let subnet = model.subnets.get(&fixed.subnet)?;
    IpNet::new(fixed.address, subnet.cidr.prefix_len()).ok()
}

fn port_of(model: &Model, id: Uuid) -> Option<topology::Port> {
    let port = model.ports.get(&id)?;
    Some(topology::Port {
        network: port.network,
        mac: port.mac,
        fixed: port.fixed_ips.iter().map(|fixed| (fixed.subnet, fixed.address)).collect(),
        allowed_pairs: port.allowed_address_pairs.iter().map(|pair| pair.address).collect(),
        secured: port.port_security_enabled,
        security_groups: port.security_groups.clone(),
    })
}

/// Groups of the ports, and those that their rules name as the other side: members are found by them.
fn groups_in_use(model: &Model, ports: &BTreeMap<Uuid, topology::Port>) -> BTreeSet<Uuid> {
    let direct: BTreeSet<Uuid> =
        ports.values().flat_map(|port| port.security_groups.iter().copied()).collect();
    let rules = model.security_rules.values().filter(|rule| direct.contains(&rule.group));
    let remote =
        rules.filter_map(|rule| rule.remote_group).filter(|id| model.security_groups.contains_key(id));
    direct.iter().copied().chain(remote).collect()
}

fn group_of(model: &Model, id: Uuid) -> topology::SecurityGroup {
    let rules = model.security_rules.values().filter(|rule| rule.group == id);
    topology::SecurityGroup { rules: rules.map(rule_of).collect() }
}

fn rule_of(rule: &SecurityRule) -> topology::SecurityRule {
    topology::SecurityRule {
        ingress: rule.ingress,
        ipv6: rule.ipv6,
        protocol: protocol_number(rule.protocol.as_deref()).and_then(|number| u8::try_from(number).ok()),
        ports: rule.port_min.map(|first| (first, rule.port_max)),
        remote: rule.remote,
        remote_group: rule.remote_group,
    }
}

fn server_of(model: &Model, server: &Server) -> topology::Server {
    let decode = |text: &String| base64::engine::general_purpose::STANDARD.decode(text).ok();
    topology::Server {
        name: server.name.clone(),
        ports: server.ports.iter().filter(|id| model.ports.contains_key(id)).copied().collect(),
        image: server.image_properties.clone(),
        metadata: server.metadata.clone(),
        user_data: server.user_data.as_ref().and_then(decode),
        key: server.key.clone(),
        availability_zone: server.zone.clone(),
        project: server.project.clone(),
        runs: server.runs,
    }
}
