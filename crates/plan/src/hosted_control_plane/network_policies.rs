//! Policies for each component, in both directions, in the dialect that the management cluster has: CiliumNetworkPolicies
//! where there is that kind, else NetworkPolicies.
//!
//! Where the management cluster enforces policies they are the second lock: the first is that an API server sends what
//! its tenant chooses through the tunnel (`konnectivity::egress`). Policies add up, so whoever needs more adds one beside
//! these.
//!
//! When the dialect changes, the policies of the other one go only after all of the new ones are there, so that no pod is
//! ever without. While it is not known whether there are CiliumNetworkPolicies nothing is changed, and no etcd is made:
//! everything else comes after it.

use std::net::IpAddr;

use hangar_api::conditions::{Actor, Waiting};
use k8s_openapi::api::networking::v1::{
    IPBlock, NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPeer,
    NetworkPolicyPort, NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::cilium_policies::cilium_policy;
use super::observed::{ObjectIdentity, Observed, OwnedObject};
use super::traffic::{Peer, Ports, Traffic, traffic};
use super::validate::Validated;
use super::{Draft, step};
use crate::flow::{Read, Unknown};
use crate::install::manager_labels;
use crate::pieces::{pairs, selecting, texts};

pub(super) const DNS_PORT: u16 = 53;

pub(super) fn draft(draft: &mut Draft<'_>, validated: &Validated<'_>) {
    let traffic = traffic(draft.observed, validated);
    let found = match &draft.observed.cilium_policies {
        Read::Absent => return traffic.iter().for_each(|one| draft.apply(&network_policy(validated, one))),
        Read::Unknown(_) | Read::Many(_) => return,
        Read::One(found) => found,
    };
    let mut has_all = true;
    for one in &traffic {
        draft.apply(&cilium_policy(validated, one));
        match found.get(&one.name) {
            Some(OwnedObject { is_deleting: false, problem: None, .. }) => continue,
            Some(OwnedObject { problem: Some(problem), .. }) => {
                // Cilium does not enforce it, and enforces these as well.
                draft.apply(&network_policy(validated, one));
                let name = &one.name;
                let waiting =
                    Waiting::new(Actor::Hangar, format!("a CiliumNetworkPolicy {name} that is valid"));
                draft.report.wait(waiting.because(problem));
            }
            _ => {}
        }
        has_all = false;
    }
    if has_all {
        remove_network_policies(draft, validated);
    }
}

fn remove_network_policies(draft: &mut Draft<'_>, validated: &Validated<'_>) {
    let Read::One(present) = &draft.observed.network_policies else { return };
    for (name, policy) in present.iter().filter(|(_, policy)| !policy.is_deleting) {
        draft.report.decide(
            format!("delete NetworkPolicy {name}"),
            "there are CiliumNetworkPolicies for all components",
        );
        let object = ObjectIdentity {
            api_version: "networking.k8s.io/v1".to_owned(),
            kind: "NetworkPolicy".to_owned(),
            namespace: validated.names.namespace().to_owned(),
            name: name.clone(),
        };
        draft.step(step::delete(&object, &policy.uid));
    }
}

/// Why it is not known which policies there should be, if so.
pub(super) fn undecided(observed: &Observed) -> Option<&Unknown> {
    match &observed.cilium_policies {
        Read::Unknown(unknown) => Some(unknown),
        _ => None,
    }
}

fn network_policy(validated: &Validated<'_>, traffic: &Traffic) -> NetworkPolicy {
    let peer = |peer: &Peer| network_peer(validated, peer).map(|peer| vec![peer]);
    let incoming = traffic
        .incoming
        .iter()
        .map(|(from, to)| NetworkPolicyIngressRule { from: peer(from), ports: ports(*to) });
    let mut outgoing: Vec<NetworkPolicyEgressRule> = Vec::new();
    for (to, at) in &traffic.outgoing {
        let rule = NetworkPolicyEgressRule { to: peer(to), ports: ports(*at) };
        // Names with one port are one rule here.
        if !outgoing.contains(&rule) {
            outgoing.push(rule);
        }
    }
    let spec = NetworkPolicySpec {
        pod_selector: Some(selecting(validated.selector(traffic.component))),
        policy_types: Some(texts(&["Ingress", "Egress"])),
        ingress: Some(incoming.collect()),
        egress: Some(outgoing),
    };
    let metadata = validated.metadata(traffic.name.clone(), traffic.component);
    NetworkPolicy { metadata, spec: Some(spec) }
}

/// Nothing for everybody. A name can be anybody: these policies know none.
fn network_peer(validated: &Validated<'_>, peer: &Peer) -> Option<NetworkPolicyPeer> {
    let mut found = NetworkPolicyPeer::default();
    match peer {
        Peer::Everybody | Peer::Name(_) => return None,
        Peer::Pods => found.namespace_selector = Some(LabelSelector::default()),
        Peer::Managers(name) => {
            found.namespace_selector = Some(namespace(name));
            found.pod_selector = Some(selecting(manager_labels()));
        }
        Peer::Own(component) => found.pod_selector = Some(selecting(validated.selector(*component))),
        Peer::Namespace(name) => found.namespace_selector = Some(namespace(name)),
        Peer::Address(address) => {
            found.ip_block = Some(IPBlock { cidr: alone(*address), except: None });
        }
    }
    Some(found)
}

fn namespace(name: &str) -> LabelSelector {
    selecting(pairs([("kubernetes.io/metadata.name", name)]))
}

/// The range of one address.
pub(super) fn alone(address: IpAddr) -> String {
    ipnet::IpNet::from(address).to_string()
}

fn ports(ports: Ports) -> Option<Vec<NetworkPolicyPort>> {
    let port = |port: u16, protocol: &str| NetworkPolicyPort {
        port: Some(IntOrString::Int(port.into())),
        protocol: Some(protocol.to_owned()),
        end_port: None,
    };
    match ports {
        Ports::Names => Some(vec![port(DNS_PORT, "UDP"), port(DNS_PORT, "TCP")]),
        Ports::One(number) => Some(vec![port(number, "TCP")]),
        Ports::All => None,
    }
}
