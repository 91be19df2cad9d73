//! Plans the network, its subnet and its router: they are created and kept, or found and recorded.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use hangar_api::infrastructure::v1beta1::{
    AllocationPool, ManagedSubnet, NetworkStatus, NetworkStatusWithSubnets, RouterStatus, SubnetParam,
    SubnetStatus,
};

use super::conditions::{network_ready, router_ready};
use super::step::NewSubnet;
use super::{CloudFacts, Draft, NetworkStep, ObjectId};
use crate::flow::Read;
use crate::openstack::conditions::cloud;
use crate::openstack::{Network, Picked, Router, Subnet, pick};

/// What was made a moment ago is worth a second look.
const SOON: Duration = Duration::from_secs(1);

/// Both conditions and their steps.
pub(super) fn draft(draft: &mut Draft<'_>, facts: &CloudFacts) {
    let external = external_network(draft, facts);
    if draft.observed.is_managed() {
        managed(draft, facts, external.as_ref());
    } else {
        existing(draft, facts);
    }
}

/// The external network, where one is used. Trouble with it concerns the router.
fn external_network(draft: &mut Draft<'_>, facts: &CloudFacts) -> Option<Network> {
    if draft.observed.has_no_external_network() {
        draft.status.external_network = None;
        return None;
    }
    let is_given = draft.observed.object.spec.external_network.is_some();
    match &facts.external_networks {
        Read::One(network) => {
            draft.status.external_network = Some(NetworkStatus {
                id: network.id.to_string(),
                name: network.name.clone(),
                tags: network.tags.clone(),
            });
            Some(network.clone())
        }
        Read::Unknown(unknown) => {
            draft.unknown(router_ready::TYPE, &format!("external network: {unknown}"));
            None
        }
        Read::Absent if !is_given => {
            draft.status.external_network = None;
            None
        }
        Read::Absent => {
            let on = "an external network that matches spec.externalNetwork";
            draft.broken(router_ready::EXTERNAL_NETWORK_NOT_FOUND, on, "no network matches");
            None
        }
        Read::Many(networks) => {
            let why = listed("networks", networks.iter().map(|network| (&network.name, network.id.as_str())));
            draft.broken(router_ready::EXTERNAL_NETWORK_AMBIGUOUS, "spec.externalNetwork to name one", why);
            None
        }
    }
}

fn managed(draft: &mut Draft<'_>, facts: &CloudFacts, external: Option<&Network>) {
    let Some(given) = draft.observed.object.spec.managed_subnets.first() else { return };
    let wanted = match wanted_subnet(given) {
        Ok(wanted) => wanted,
        Err(why) => {
            return draft.broken(
                cloud::INVALID_SPECIFICATION.about(network_ready::TYPE),
                "spec.managedSubnets",
                why,
            );
        }
    };
    let Some(network) = managed_network(draft, facts) else { return };
    let Some(subnet) = managed_subnet(draft, facts, &network, wanted) else { return };
    draft.status.network = Some(recorded(&network, std::slice::from_ref(&subnet)));
    draft.say(network_ready::READY);
    if draft.said().iter().any(|finding| finding.type_() == router_ready::TYPE) {
        return;
    }
    if let Some(external) = external {
        managed_router(draft, facts, external, &subnet);
    } else {
        draft.status.router = None;
        draft.say(router_ready::NOT_NEEDED);
    }
}

fn managed_network(draft: &mut Draft<'_>, facts: &CloudFacts) -> Option<Network> {
    let spec = &draft.observed.object.spec;
    let recorded = draft.status.network.as_ref().map(|network| network.id.as_str().into());
    match pick(&facts.networks, |network| &network.id, recorded.as_ref()) {
        Picked::Unknown(why) => {
            draft.unknown(network_ready::TYPE, &why);
            None
        }
        Picked::None => {
            let step = NetworkStep::CreateNetwork {
                name: draft.observed.resource_name(),
                mtu: spec.network_mtu.and_then(|mtu| u32::try_from(mtu).ok()),
                is_port_security_enabled: (spec.disable_port_security == Some(true)).then_some(false),
            };
            draft
                .report
                .decide("make the network", "the cluster has a managed subnet and no network of ours exists");
            draft.step(step);
            draft.working(network_ready::WORKING, "the network to be made");
            None
        }
        Picked::One(network, extras) => {
            remove_extras(draft, extras.into_iter().map(|extra| ObjectId::Network(extra.id)));
            tag(draft, ObjectId::Network(network.id.clone()), &network.name, &network.tags);
            Some(network)
        }
    }
}

/// What the specification asks for, or which field cannot be read.
fn wanted_subnet(given: &ManagedSubnet) -> Result<NewSubnet, String> {
    let address = |field: &str, text: &str| read(&format!("spec.managedSubnets[0].{field}"), text);
    let pool = |(index, pool): (usize, &AllocationPool)| {
        let field = |end: &str| format!("allocationPools[{index}].{end}");
        Ok((address(&field("start"), &pool.start)?, address(&field("end"), &pool.end)?))
    };
    let servers = given.dns_nameservers.iter().enumerate();
    Ok(NewSubnet {
        cidr: read("spec.managedSubnets[0].cidr", &given.cidr)?,
        dns_nameservers: servers
            .map(|(index, text)| address(&format!("dnsNameservers[{index}]"), text))
            .collect::<Result<_, _>>()?,
        allocation_pools: given
            .allocation_pools
            .iter()
            .enumerate()
            .map(pool)
            .collect::<Result<_, String>>()?,
    })
}

fn read<T: FromStr<Err: Display>>(field: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|error| format!("{field}: {text:?}: {error}"))
}

fn managed_subnet(
    draft: &mut Draft<'_>,
    facts: &CloudFacts,
    network: &Network,
    wanted: NewSubnet,
) -> Option<Subnet> {
    let recorded = draft.status.network.as_ref().and_then(|network| network.subnets.first());
    let recorded = recorded.map(|subnet| subnet.id.as_str().into());
    let own = facts.subnets.clone().filter(|subnet| subnet.network_id == network.id);
    match pick(&own, |subnet| &subnet.id, recorded.as_ref()) {
        Picked::Unknown(why) => {
            draft.unknown(network_ready::TYPE, &why);
            None
        }
        Picked::None => {
            let step = NetworkStep::CreateSubnet {
                name: draft.observed.resource_name(),
                network_id: network.id.clone(),
                subnet: wanted,
            };
            draft.step(step);
            draft.working(network_ready::WORKING, "the subnet to be made");
            None
        }
        Picked::One(subnet, extras) => {
            remove_extras(draft, extras.into_iter().map(|extra| ObjectId::Subnet(extra.id)));
            tag(draft, ObjectId::Subnet(subnet.id.clone()), &subnet.name, &subnet.tags);
            if subnet.dns_nameservers != wanted.dns_nameservers {
                draft.step(NetworkStep::SetNameServers {
                    name: draft.observed.resource_name(),
                    id: subnet.id.clone(),
                    dns_nameservers: wanted.dns_nameservers,
                });
            }
            Some(subnet)
        }
    }
}

fn managed_router(draft: &mut Draft<'_>, facts: &CloudFacts, external: &Network, subnet: &Subnet) {
    let recorded = draft.status.router.as_ref().map(|router| router.id.as_str().into());
    // Of two the one that is connected is kept: it holds the gateway's address, and cannot be deleted.
    let connected = facts.interfaces.iter().filter(|port| port.subnet_ids.contains(&subnet.id));
    let mut connected = connected.map(|port| port.device_id.as_str().into());
    let preferred = connected.next().or_else(|| recorded.clone());
    let router = match pick(&facts.routers, |router| &router.id, preferred.as_ref()) {
        Picked::Unknown(why) => return draft.unknown(router_ready::TYPE, &why),
        Picked::None => {
            if let Some(step) = create_router(draft, external) {
                draft.step(step);
                draft.working(router_ready::WORKING, "the router to be made");
            }
            return;
        }
        Picked::One(router, extras) => {
            if let (false, Read::Unknown(unknown)) = (extras.is_empty(), &facts.interfaces) {
                // Which of them is connected cannot be told.
                return draft.unknown(router_ready::TYPE, &unknown.why);
            }
            remove_extras(draft, extras.into_iter().map(|extra| ObjectId::Router(extra.id)));
            router
        }
    };
    tag(draft, ObjectId::Router(router.id.clone()), &router.name, &router.tags);
    if recorded.is_none() && router.gateway_addresses.is_empty() {
        // It was made a moment ago: one more look shows the addresses that the cloud chose.
        draft.again(SOON);
    }
    draft.status.router = Some(recorded_router(&router));
    let interfaces = match &facts.interfaces {
        Read::Unknown(unknown) => return draft.unknown(router_ready::TYPE, &unknown.why),
        interfaces => interfaces.clone().filter(|port| port.device_id == router.id.as_str()),
    };
    if interfaces.iter().any(|port| port.subnet_ids.contains(&subnet.id)) {
        draft.say(router_ready::READY);
        return;
    }
    draft.step(NetworkStep::AddInterface {
        name: router.name.clone(),
        router_id: router.id.clone(),
        subnet_id: subnet.id.clone(),
    });
    draft.working(router_ready::WORKING, "the router to be connected to the subnet");
}

fn create_router(draft: &mut Draft<'_>, external: &Network) -> Option<NetworkStep> {
    let mut gateway_addresses = Vec::new();
    for (index, address) in draft.observed.object.spec.external_router_ips.iter().enumerate() {
        let SubnetParam::Id(subnet) = &address.subnet else {
            let field = format!("spec.externalRouterIPs[{index}].subnet.filter");
            draft.broken(
                cloud::UNSUPPORTED.about(router_ready::TYPE),
                "the subnet by id",
                format!("{field} is not supported"),
            );
            return None;
        };
        let given = Some(&address.fixed_ip).filter(|address| !address.is_empty());
        let field = format!("spec.externalRouterIPs[{index}].fixedIP");
        match given.map(|text| read(&field, text)).transpose() {
            Ok(fixed) => gateway_addresses.push((subnet.0.as_str().into(), fixed)),
            Err(why) => {
                draft.broken(
                    cloud::INVALID_SPECIFICATION.about(router_ready::TYPE),
                    "spec.externalRouterIPs",
                    why,
                );
                return None;
            }
        }
    }
    Some(NetworkStep::CreateRouter {
        name: draft.observed.resource_name(),
        gateway_network_id: external.id.clone(),
        gateway_addresses,
    })
}

/// Network, subnets and router that others made.
fn existing(draft: &mut Draft<'_>, facts: &CloudFacts) {
    if let Some((network, subnets)) = existing_network(draft, facts) {
        draft.status.network = Some(recorded(&network, &subnets));
        draft.say(network_ready::READY);
    }
    if draft.said().iter().any(|finding| finding.type_() == router_ready::TYPE) {
        return;
    }
    match (&draft.observed.object.spec.router, &facts.routers) {
        (None, _) => {
            draft.status.router = None;
            draft.say(router_ready::NOT_NEEDED);
        }
        (Some(_), Read::One(router)) => {
            draft.status.router = Some(recorded_router(router));
            draft.say(router_ready::READY);
        }
        (Some(_), Read::Unknown(unknown)) => draft.unknown(router_ready::TYPE, &unknown.why),
        (Some(_), Read::Absent) => {
            let on = "a router that matches spec.router";
            draft.broken(router_ready::ROUTER_NOT_FOUND, on, "no router matches");
        }
        (Some(_), Read::Many(routers)) => {
            let why = listed("routers", routers.iter().map(|router| (&router.name, router.id.as_str())));
            draft.broken(router_ready::ROUTER_AMBIGUOUS, "spec.router to name one", why);
        }
    }
}

fn existing_network(draft: &mut Draft<'_>, facts: &CloudFacts) -> Option<(Network, Vec<Subnet>)> {
    let spec = &draft.observed.object.spec;
    if spec.network.is_none() && spec.subnets.is_empty() {
        let on = "spec.managedSubnets, spec.network or spec.subnets";
        draft.broken(network_ready::NO_NETWORK, on, "no network is asked for");
        return None;
    }
    if !facts.subnet_problems.is_empty() {
        let why = facts.subnet_problems.join("; ");
        draft.broken(network_ready::SUBNET_NOT_FOUND, "one subnet for each of spec.subnets", &why);
        return None;
    }
    let network = match &facts.networks {
        Read::One(network) => network.clone(),
        Read::Unknown(unknown) => {
            draft.unknown(network_ready::TYPE, &unknown.why);
            return None;
        }
        Read::Absent => {
            let on = "a network that matches spec.network";
            draft.broken(network_ready::NETWORK_NOT_FOUND, on, "no network matches");
            return None;
        }
        Read::Many(networks) => {
            let why = listed("networks", networks.iter().map(|network| (&network.name, network.id.as_str())));
            draft.broken(network_ready::NETWORK_AMBIGUOUS, "spec.network to name one", why);
            return None;
        }
    };
    let subnets = match facts.subnets.clone().known() {
        Ok(subnets) => subnets,
        Err(unknown) => {
            draft.unknown(network_ready::TYPE, &unknown.why);
            return None;
        }
    };
    if let Some(stranger) = subnets.iter().find(|subnet| subnet.network_id != network.id) {
        let why = format!("subnet {} is not on network {}", stranger.id, network.id);
        draft.broken(network_ready::SUBNET_NOT_FOUND, "subnets of the network", &why);
        return None;
    }
    for (version, is_four) in [(4, true), (6, false)] {
        let count = subnets.iter().filter(|subnet| subnet.cidr.addr().is_ipv4() == is_four).count();
        if count > 1 {
            let why = format!("{count} IPv{version} subnets match");
            draft.broken(
                network_ready::SUBNET_AMBIGUOUS,
                "spec.subnets to name one of each address family",
                why,
            );
            return None;
        }
    }
    Some((network, subnets))
}

/// Those that match, by name and id.
fn listed<'a>(what: &str, found: impl Iterator<Item = (&'a String, &'a str)>) -> String {
    let names: Vec<String> = found.map(|(name, id)| format!("{name} ({id})")).collect();
    format!("{} {what} match: {}", names.len(), names.join(", "))
}

fn recorded(network: &Network, subnets: &[Subnet]) -> NetworkStatusWithSubnets {
    let subnets = subnets.iter().map(|subnet| SubnetStatus {
        id: subnet.id.to_string(),
        name: subnet.name.clone(),
        cidr: subnet.cidr.to_string(),
        tags: subnet.tags.clone(),
    });
    NetworkStatusWithSubnets {
        id: network.id.to_string(),
        name: network.name.clone(),
        tags: network.tags.clone(),
        subnets: subnets.collect(),
    }
}

fn recorded_router(router: &Router) -> RouterStatus {
    RouterStatus {
        id: router.id.to_string(),
        name: router.name.clone(),
        tags: router.tags.clone(),
        ips: router.gateway_addresses.iter().map(ToString::to_string).collect(),
    }
}

/// What a lost answer made twice. The cloud refuses to delete what is in use.
pub(super) fn remove_extras(draft: &mut Draft<'_>, ids: impl Iterator<Item = ObjectId>) {
    let name = draft.observed.resource_name();
    for (number, id) in ids.enumerate() {
        let name = format!("{name} (extra {})", number + 1);
        draft.step(NetworkStep::Delete { id, name });
    }
}

/// Tags are a second call: they are for people, nothing is found by them.
pub(super) fn tag(draft: &mut Draft<'_>, id: ObjectId, name: &str, present: &[String]) {
    let wanted = &draft.observed.object.spec.tags;
    if wanted.iter().all(|tag| present.contains(tag)) {
        return;
    }
    let mut tags: Vec<String> = present.to_vec();
    tags.extend(wanted.iter().filter(|tag| !present.contains(tag)).cloned());
    draft.step(NetworkStep::Tag { id, name: name.to_owned(), tags });
}
