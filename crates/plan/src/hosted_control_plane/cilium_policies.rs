//! Renders CiliumNetworkPolicies. They know names: an API server reaches the servers that its specification names, and no
//! others at their port.
//!
//! A name becomes addresses by the answers that Cilium sees. So where a policy has names, questions go through Cilium's
//! own proxy; where it has none they do not, because nobody gets an answer while that proxy restarts.

use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::network_policies::{DNS_PORT, alone};
use super::traffic::{Peer, Ports, Traffic};
use super::validate::Validated;
use crate::flow::dynamic;
use crate::install::manager_labels;
use crate::neighbours::Neighbour;

/// The namespace of a pod, among the labels that Cilium knows it by.
const NAMESPACE: &str = "k8s:io.kubernetes.pod.namespace";

pub(super) fn cilium_policy(validated: &Validated<'_>, traffic: &Traffic) -> DynamicObject {
    let has_names = traffic.outgoing.iter().any(|(peer, _)| matches!(peer, Peer::Name(_)));
    let rules = |direction: Direction, rules: &[(Peer, Ports)]| -> Vec<Value> {
        rules.iter().map(|(peer, ports)| rule(validated, direction, peer, (*ports, has_names))).collect()
    };
    dynamic(&json!({
        "apiVersion": Neighbour::CiliumNetworkPolicies.api_version(),
        "kind": Neighbour::CiliumNetworkPolicies.kind(),
        "metadata": validated.metadata(traffic.name.clone(), traffic.component),
        "spec": {
            "endpointSelector": { "matchLabels": validated.selector(traffic.component) },
            "ingress": rules(Direction::From, &traffic.incoming),
            "egress": rules(Direction::To, &traffic.outgoing),
        },
    }))
}

#[derive(Clone, Copy)]
enum Direction {
    From,
    To,
}

fn rule(
    validated: &Validated<'_>,
    direction: Direction,
    peer: &Peer,
    (ports, has_names): (Ports, bool),
) -> Value {
    let (field, value) = match peer {
        Peer::Everybody => ("Entities", json!(["all"])),
        Peer::Pods => {
            ("Endpoints", json!([{ "matchExpressions": [{ "key": NAMESPACE, "operator": "Exists" }] }]))
        }
        Peer::Managers(namespace) => {
            let mut labels = manager_labels();
            labels.insert(NAMESPACE.to_owned(), namespace.clone());
            ("Endpoints", json!([{ "matchLabels": labels }]))
        }
        Peer::Own(component) => ("Endpoints", json!([{ "matchLabels": validated.selector(*component) }])),
        Peer::Namespace(name) => ("Endpoints", json!([{ "matchLabels": { NAMESPACE: name } }])),
        Peer::Address(address) => ("CIDR", json!([alone(*address)])),
        Peer::Name(name) => ("FQDNs", json!([{ "matchName": name }])),
    };
    let begins = match direction {
        Direction::From => "from",
        Direction::To => "to",
    };
    let mut rule = json!({ format!("{begins}{field}"): value });
    let port = |number: u16, protocol: &str| json!([{ "port": number.to_string(), "protocol": protocol }]);
    match ports {
        Ports::Names if has_names => {
            let seen = json!({ "dns": [{ "matchPattern": "*" }] });
            rule["toPorts"] = json!([{ "ports": port(DNS_PORT, "ANY"), "rules": seen }]);
        }
        Ports::Names => rule["toPorts"] = json!([{ "ports": port(DNS_PORT, "ANY") }]),
        Ports::One(number) => rule["toPorts"] = json!([{ "ports": port(number, "TCP") }]),
        Ports::All => {}
    }
    rule
}
