//! A port on every node of the management cluster: at the addresses that were given, or at those of the Nodes that are
//! ready.
//!
//! An endpoint that was published stays while any ready Node has its address; behind the tenant's `kubernetes` Service
//! stand the Nodes that are ready now.

use std::collections::BTreeSet;
use std::net::IpAddr;

use hangar_api::conditions::{Actor, Waiting};
use hangar_api::contract::Endpoint;
use hangar_api::controlplane::v1alpha1::HostedControlPlaneSettings;
use k8s_openapi::api::core::v1::ServiceSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::facts::{NodeFacts, SOME_NAMESPACES};
use super::{Draft, Exposed, MANAGEMENT_CLUSTER, Needs, Observed, READ_AGAIN, Validated, Way, given, parsed};
use crate::conditions::shared::unreadable;
use crate::flow::Read;

/// As many as can be given.
const MOST_ADDRESSES: usize = 64;

pub(super) struct NodePort;

impl Way for NodePort {
    fn address(
        &self,
        observed: &Observed,
        validated: &Validated<'_>,
        exposed: Exposed,
    ) -> Result<Endpoint, Waiting> {
        let service = exposed.facts(observed)?;
        let host = host(observed, validated)?;
        let name = exposed.port_name();
        let waiting = || Waiting::new(MANAGEMENT_CLUSTER, format!("a node port for {name}"));
        let port = service.node_ports.get(name).copied().ok_or_else(waiting)?;
        Ok(Endpoint { host, port })
    }

    fn targets(&self, observed: &Observed, validated: &Validated<'_>) -> Result<Vec<IpAddr>, Waiting> {
        match given_addresses(validated.settings) {
            [] => Ok(addresses(&ready(observed)?, &given(validated).host)),
            given => Ok(parsed(given)),
        }
    }

    fn shape(&self, validated: &Validated<'_>, exposed: Exposed, _: &mut ObjectMeta, spec: &mut ServiceSpec) {
        spec.type_ = Some("NodePort".to_owned());
        let exposure = validated.settings.exposure.as_ref();
        let chosen = exposure.and_then(|exposure| exposure.node_port.as_ref()?.port);
        for port in spec.ports.iter_mut().flatten().filter(|_| exposed == Exposed::Api) {
            port.node_port = chosen;
        }
    }

    fn needs(&self, _: &Observed, settings: &HostedControlPlaneSettings) -> Needs {
        Needs { nodes: given_addresses(settings).is_empty(), ..Needs::default() }
    }

    fn draft(&self, draft: &mut Draft<'_>, validated: &Validated<'_>) {
        if given_addresses(validated.settings).is_empty() && draft.observed.ways.nodes.is_unknown() {
            draft.again(READ_AGAIN);
        }
    }

    /// An endpoint that was published is known without Nodes.
    fn is_unread(&self, observed: &Observed, validated: &Validated<'_>) -> bool {
        let is_open = given_addresses(validated.settings).is_empty() && given(validated).host.is_empty();
        let nodes = &observed.ways.nodes;
        is_open && nodes.is_unknown() && *nodes != Read::unknown(SOME_NAMESPACES)
    }

    /// Of Nodes that were found: addresses that were given may be others', which lead there.
    fn present(&self, observed: &Observed, validated: &Validated<'_>) -> Option<(&'static str, Vec<IpAddr>)> {
        let is_found = given_addresses(validated.settings).is_empty();
        let ready = is_found.then(|| ready(observed).ok())??;
        Some(("the management cluster's nodes", ready.iter().flat_map(|node| node.all()).collect()))
    }
}

fn given_addresses(settings: &HostedControlPlaneSettings) -> &[String] {
    let exposure = settings.exposure.as_ref().and_then(|exposure| exposure.node_port.as_ref());
    exposure.map(|exposure| exposure.addresses.as_slice()).unwrap_or_default()
}

fn host(observed: &Observed, validated: &Validated<'_>) -> Result<String, Waiting> {
    if let Some(first) = given_addresses(validated.settings).first() {
        return Ok(first.clone());
    }
    let ready = ready(observed)?;
    let published = given(validated).host;
    if ready.iter().flat_map(|node| node.all()).any(|address| address.to_string() == published) {
        return Ok(published);
    }
    let first = addresses(&ready, &published).first().map(ToString::to_string);
    first.ok_or_else(|| Waiting::new(MANAGEMENT_CLUSTER, "a Node that is ready and has an address"))
}

/// The Nodes that are ready. Whether pods may be placed there makes no difference to who forwards.
fn ready(observed: &Observed) -> Result<Vec<&NodeFacts>, Waiting> {
    match &observed.ways.nodes {
        nodes if *nodes == Read::unknown(SOME_NAMESPACES) => {
            Err(Waiting::new(Actor::ClusterOwner, "spec.exposure.nodePort.addresses")
                .because(format!("{SOME_NAMESPACES}, so that it reads no Nodes")))
        }
        Read::Unknown(unknown) => Err(unreadable("the management cluster's Nodes", unknown)),
        nodes => Ok(nodes.iter().filter(|node| node.is_ready).collect()),
    }
}

/// Their external addresses if each has one, else their internal ones; the lowest first. They stay of the kind that was
/// published: a Node that lacks an address for a moment must not change the way of every tenant.
fn addresses(nodes: &[&NodeFacts], published: &str) -> Vec<IpAddr> {
    let has = |addresses: &[IpAddr]| addresses.iter().any(|address| address.to_string() == published);
    let is_external = nodes.iter().any(|node| has(&node.external))
        || !nodes.iter().any(|node| has(&node.internal))
            && nodes.iter().all(|node| !node.external.is_empty());
    let of = |node: &&NodeFacts| if is_external { node.external.clone() } else { node.internal.clone() };
    let all: BTreeSet<IpAddr> = nodes.iter().flat_map(of).collect();
    all.into_iter().take(MOST_ADDRESSES).collect()
}
