//! Who may connect to the control plane's pods, and whom they may connect to: a policy for each component, in both
//! directions, so that what is not named here is refused.
//!
//! Where the management cluster enforces policies they are the second lock: the first is that an API server sends what
//! its tenant chooses through the tunnel (`konnectivity::egress`). Policies add up, so whoever needs more, such as an
//! API server that asks an issuer of tokens by itself, adds one beside these.

use k8s_openapi::api::networking::v1::{
    NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort,
    NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::names::Component;
use super::validate::{API_SERVER_PORT, KONNECTIVITY_PORT, Validated};
use super::{Draft, controller_manager, etcd, scheduler};
use crate::pieces::{selecting, texts};

const DNS_PORT: u16 = 53;

pub(super) fn draft(draft: &mut Draft<'_>, validated: &Validated<'_>) {
    for policy in policies(validated) {
        draft.apply(&policy);
    }
}

fn policies(validated: &Validated<'_>) -> [NetworkPolicy; 4] {
    let names = &validated.names;
    let own = |component| NetworkPolicyPeer {
        pod_selector: Some(selecting(validated.selector(component))),
        ..NetworkPolicyPeer::default()
    };
    // Whoever collects metrics, in whichever namespace, and the manager, which asks etcd for its alarms there: they are
    // numbers, or they want the tenant's credentials.
    let any_pod = || NetworkPolicyPeer {
        namespace_selector: Some(LabelSelector::default()),
        ..NetworkPolicyPeer::default()
    };
    let etcd = policy(validated, Component::Etcd, names.etcd())
        .from(Some(own(Component::ApiServer)), etcd::CLIENT_PORT)
        .from(Some(own(Component::Etcd)), etcd::PEER_PORT)
        .from(Some(any_pod()), etcd::METRICS_PORT)
        .to(own(Component::Etcd), etcd::PEER_PORT);
    // People, nodes and agents come from anywhere.
    let api_server = policy(validated, Component::ApiServer, names.api_server())
        .from(None, API_SERVER_PORT)
        .from(None, KONNECTIVITY_PORT)
        .to(own(Component::Etcd), etcd::CLIENT_PORT);
    let controller_manager = policy(validated, Component::ControllerManager, names.controller_manager())
        .from(Some(any_pod()), controller_manager::PORT)
        .to(own(Component::ApiServer), API_SERVER_PORT);
    let scheduler = policy(validated, Component::Scheduler, names.scheduler())
        .from(Some(any_pod()), scheduler::PORT)
        .to(own(Component::ApiServer), API_SERVER_PORT);
    [etcd, api_server, controller_manager, scheduler].map(|rules| rules.0)
}

struct Rules(NetworkPolicy);

/// Lets nobody in, and out only questions for names: all of them find each other by the names of Services. Who answers
/// cannot be said in a policy: pods in a namespace, a cache on the node's own address, or somebody outside.
fn policy(validated: &Validated<'_>, component: Component, name: String) -> Rules {
    let names =
        NetworkPolicyEgressRule { to: None, ports: Some(vec![port(DNS_PORT, "UDP"), port(DNS_PORT, "TCP")]) };
    let spec = NetworkPolicySpec {
        pod_selector: Some(selecting(validated.selector(component))),
        policy_types: Some(texts(&["Ingress", "Egress"])),
        ingress: None,
        egress: Some(vec![names]),
    };
    Rules(NetworkPolicy { metadata: validated.metadata(name, component), spec: Some(spec) })
}

impl Rules {
    /// Lets somebody, or everybody, connect to a port.
    fn from(mut self, peer: Option<NetworkPolicyPeer>, to: u16) -> Self {
        let rule = NetworkPolicyIngressRule {
            from: peer.map(|peer| vec![peer]),
            ports: Some(vec![port(to, "TCP")]),
        };
        self.0.spec.get_or_insert_default().ingress.get_or_insert_default().push(rule);
        self
    }

    /// Lets the pods connect to somebody's port.
    fn to(mut self, peer: NetworkPolicyPeer, to: u16) -> Self {
        let rule = NetworkPolicyEgressRule { to: Some(vec![peer]), ports: Some(vec![port(to, "TCP")]) };
        self.0.spec.get_or_insert_default().egress.get_or_insert_default().push(rule);
        self
    }
}

fn port(port: u16, protocol: &str) -> NetworkPolicyPort {
    NetworkPolicyPort {
        port: Some(IntOrString::Int(port.into())),
        protocol: Some(protocol.to_owned()),
        end_port: None,
    }
}
