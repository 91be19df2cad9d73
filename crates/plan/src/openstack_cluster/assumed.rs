//! The project that a preview without a cloud plans from: it has what the specification names, and nothing of ours yet.

use hangar_api::infrastructure::v1beta1::OpenStackClusterSpec;
use serde::Serialize;

use super::CloudFacts;
use crate::flow::Read;
use crate::openstack::{Network, Router, Subnet, named};

impl CloudFacts {
    pub(super) fn assumed(spec: &OpenStackClusterSpec) -> Self {
        let is_managed = !spec.managed_subnets.is_empty();
        let networks = match &spec.network {
            _ if is_managed => Read::Absent,
            Some(parameter) => Read::One(network(parameter)),
            // Subnets alone name their network.
            None if spec.subnets.is_empty() => Read::Absent,
            None => Read::One(unnamed("network of the subnets")),
        };
        let network_id = networks.iter().next().map(|network| network.id.clone()).unwrap_or_default();
        let subnet = |(id, name): (String, String)| Subnet {
            id: id.into(),
            name,
            network_id: network_id.clone(),
            ..Subnet::default()
        };
        let subnets = match (is_managed, spec.subnets.as_slice(), &networks) {
            (true, ..) | (_, [], Read::Absent) => Read::Absent,
            (_, [], _) => Read::One(subnet(("<subnet of the network>".to_owned(), String::new()))),
            (_, given, _) => Read::found(given.iter().map(|given| subnet(named("subnet", given)))),
        };
        let routers = spec.router.as_ref().filter(|_| !is_managed).map(|parameter| {
            let (id, name) = named("router", parameter);
            Router { id: id.into(), name, ..Router::default() }
        });
        Self {
            external_networks: match (&spec.external_network, spec.disable_external_network) {
                (_, Some(true)) => Read::Absent,
                (Some(parameter), _) => Read::One(network(parameter)),
                (None, _) => Read::One(unnamed("the external network")),
            },
            networks,
            subnets,
            subnet_problems: Vec::new(),
            routers: Read::found(routers),
            interfaces: Read::Absent,
            groups: Read::Absent,
            zones: Read::Absent,
            other_ports: Read::Absent,
        }
    }
}

fn network(parameter: &impl Serialize) -> Network {
    let (id, name) = named("network", parameter);
    Network { id: id.into(), name, ..Network::default() }
}

fn unnamed(what: &str) -> Network {
    Network { id: format!("<{what}>").into(), name: what.to_owned(), ..Network::default() }
}
