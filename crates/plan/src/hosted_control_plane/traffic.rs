//! Who may connect to the control plane's pods, and whom they may connect to. One description, which is rendered as
//! NetworkPolicies or as CiliumNetworkPolicies: what is not named here is refused.

use std::net::IpAddr;

use super::names::Component;
use super::observed::Observed;
use super::servers::servers;
use super::validate::{API_SERVER_PORT, KONNECTIVITY_PORT, Validated};
use super::{controller_manager, etcd, konnectivity, restore, scheduler};

/// Somebody at the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    Everybody,
    /// Pods of the management cluster, in whichever namespace.
    Pods,
    /// Hangar's managers, in their namespace.
    Managers(String),
    /// Pods of the same control plane.
    Own(Component),
    /// Pods of a namespace.
    Namespace(String),
    Address(IpAddr),
    Name(String),
}

/// Which ports of whoever is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ports {
    /// Of a name server.
    Names,
    One(u16),
    /// A Service is known by its port, its pods may have another.
    All,
}

/// What one component's pods take part in.
pub(super) struct Traffic {
    pub(super) component: Component,
    /// What its policy is called.
    pub(super) name: String,
    pub(super) incoming: Vec<(Peer, Ports)>,
    pub(super) outgoing: Vec<(Peer, Ports)>,
}

/// Of every component.
pub(super) fn traffic(observed: &Observed, validated: &Validated<'_>) -> [Traffic; 4] {
    let names = &validated.names;
    let metrics = |port| (Peer::Pods, Ports::One(port));
    let own = |component, port| (Peer::Own(component), Ports::One(port));
    let anybody = |port| (Peer::Everybody, Ports::One(port));
    let of = |component, name, incoming, mut outgoing: Vec<_>| {
        // All find each other by the names of Services. Who answers cannot be said in a policy: pods in a namespace, a
        // cache on the node's own address, or somebody outside.
        outgoing.insert(0, (Peer::Everybody, Ports::Names));
        Traffic { component, name, incoming, outgoing }
    };
    let mut to_etcd = vec![
        own(Component::ApiServer, etcd::CLIENT_PORT),
        own(Component::Etcd, etcd::PEER_PORT),
        // Whoever collects metrics, and the manager, which asks for alarms there.
        metrics(etcd::METRICS_PORT),
    ];
    // A manager that does not run in the management cluster comes from outside, where no policy of ours can name it.
    let managers = observed.manager_namespace.clone();
    to_etcd.extend(managers.map(|namespace| (Peer::Managers(namespace), Ports::One(etcd::CLIENT_PORT))));
    // The tunnel's server goes through the Service of the API servers.
    let mut outgoing =
        vec![own(Component::Etcd, etcd::CLIENT_PORT), own(Component::ApiServer, API_SERVER_PORT)];
    outgoing.extend(outside(validated));
    // While a backup is fetched, and no longer.
    let mut from_etcd = vec![own(Component::Etcd, etcd::PEER_PORT)];
    from_etcd.extend(restore::running(validated).and_then(|restoration| restore::server(&restoration.store)));
    [
        of(Component::Etcd, names.etcd(), to_etcd, from_etcd),
        of(
            Component::ApiServer,
            names.api_server(),
            // People, nodes and agents come from anywhere.
            vec![anybody(API_SERVER_PORT), anybody(KONNECTIVITY_PORT), metrics(konnectivity::ADMIN_PORT)],
            outgoing,
        ),
        of(
            Component::ControllerManager,
            names.controller_manager(),
            vec![metrics(controller_manager::PORT)],
            vec![own(Component::ApiServer, API_SERVER_PORT)],
        ),
        of(
            Component::Scheduler,
            names.scheduler(),
            vec![metrics(scheduler::PORT)],
            vec![own(Component::ApiServer, API_SERVER_PORT)],
        ),
    ]
}

/// The servers that the specification tells the API server to connect to. Whatever else a tenant chooses goes through
/// the tunnel (`konnectivity::egress`).
fn outside(validated: &Validated<'_>) -> Vec<(Peer, Ports)> {
    let mut all = Vec::new();
    for server in servers(validated.settings) {
        let rule = server.rule();
        if !all.contains(&rule) {
            all.push(rule);
        }
    }
    all
}
