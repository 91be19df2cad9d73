//! Converts objects of the cloud's API into the facts that plans decide from.

use hangar_openstack as cloud;
use hangar_plan::openstack::{
    Address, Flavor, Group, GroupRule, Image, KnownRule, Network, Port, Router, Server, Subnet, Zone, range,
};

use super::CloudId;

pub(crate) fn network(from: cloud::Network) -> Network {
    Network { id: CloudId::from_cloud(&from.id), name: from.name, tags: from.tags }
}

pub(crate) fn subnet(from: cloud::Subnet) -> Subnet {
    Subnet {
        id: CloudId::from_cloud(&from.id),
        name: from.name,
        network_id: CloudId::from_cloud(&from.network_id),
        cidr: from.cidr,
        dns_nameservers: from.dns_nameservers,
        tags: from.tags,
    }
}

pub(crate) fn router(from: cloud::Router) -> Router {
    let gateway = from.external_gateway.as_ref();
    let addresses = gateway.map(|gateway| gateway.addresses.iter()).into_iter().flatten();
    Router {
        id: CloudId::from_cloud(&from.id),
        name: from.name,
        tags: from.tags,
        gateway_network_id: gateway.map(|gateway| CloudId::from_cloud(&gateway.network_id)),
        gateway_addresses: addresses.filter_map(|address| address.ip_address).collect(),
    }
}

pub(crate) fn port(from: cloud::Port) -> Port {
    Port {
        id: CloudId::from_cloud(&from.id),
        name: from.name,
        network_id: CloudId::from_cloud(&from.network_id),
        subnet_ids: from.fixed_ips.iter().map(|fixed| CloudId::from_cloud(&fixed.subnet_id)).collect(),
        device_id: from.device_id,
        device_owner: from.device_owner,
        has_no_address: from.fixed_ips.is_empty(),
        tags: from.tags,
    }
}

pub(crate) fn group(from: cloud::SecurityGroup) -> Group {
    // A rule whose range cannot be read is left alone.
    let rules = from.rules.into_iter().filter_map(|rule| {
        let rule_range = rule.remote_ip_prefix.as_deref().map(|text| range(text).ok_or(()));
        Some(KnownRule {
            id: CloudId::from_cloud(&rule.id),
            rule: GroupRule {
                direction: rule.direction,
                ether_type: rule.ethertype,
                protocol: rule.protocol,
                port_range_min: rule.port_range_min,
                port_range_max: rule.port_range_max,
                remote_ip_prefix: rule_range.transpose().ok()?,
                remote_group_id: rule.remote_group_id.as_ref().map(CloudId::from_cloud),
            },
        })
    });
    Group { id: CloudId::from_cloud(&from.id), name: from.name, tags: from.tags, rules: rules.collect() }
}

pub(crate) fn zone(from: cloud::AvailabilityZone) -> Zone {
    Zone { name: from.name, is_available: from.is_available }
}

pub(crate) fn image(from: cloud::Image) -> Image {
    Image { id: CloudId::from_cloud(&from.id), name: from.name, status: from.status }
}

pub(crate) fn flavor(from: cloud::Flavor) -> Flavor {
    Flavor { id: CloudId::from_cloud(&from.id), name: from.name }
}

pub(crate) fn server(from: cloud::Server) -> Server {
    let addresses = from.addresses.into_iter().map(|(network, addresses)| {
        let addresses = addresses.into_iter().map(|address| Address {
            address: address.address,
            is_floating: address.kind == cloud::AddressKind::Floating,
        });
        (network, addresses.collect())
    });
    Server {
        id: CloudId::from_cloud(&from.id),
        name: from.name,
        status: from.status,
        fault: from.fault.map(|fault| fault.message.trim().to_owned()).filter(|words| !words.is_empty()),
        addresses: addresses.collect(),
        is_going: matches!(from.task_state.as_deref(), Some("deleting" | "soft-deleting")),
        updated: from.updated,
    }
}
