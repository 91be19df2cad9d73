//! Who reaches whom: what policies mean, worked out over the pods and policies of plans. Nothing here enforces policies,
//! so this stands for a cluster that does, with NetworkPolicies or with CiliumNetworkPolicies.

use std::collections::BTreeMap;

use k8s_openapi::api::networking::v1::{NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};

use super::super::*;
use super::checker::checked;
use super::fixture::all_ready;
use crate::flow::Read;
use crate::pieces::pairs;

/// Every port that something of a control plane listens on, whether it is declared or not, and some that others have.
const PORTS: [u16; 14] = [53, 443, 2379, 2380, 2381, 2382, 6443, 8132, 8133, 8134, 8443, 9443, 10257, 10259];

/// Whose table it is.
const OWN: &str = "team/demo-";

/// What a pod's namespace is called in selectors here, whatever a dialect calls it.
const NAMESPACE: &str = "namespace";

const KINDS: [&str; 2] = ["NetworkPolicy", "CiliumNetworkPolicy"];

type Labels = BTreeMap<String, String>;

struct Party {
    name: String,
    /// Labels of a pod, its namespace among them; the rest of the world has none.
    pod: Option<Labels>,
    address: Option<&'static str>,
    is_of_control_plane: bool,
}

/// A policy of either dialect.
struct Policy {
    name: String,
    /// The pods that it is about.
    about: LabelSelector,
    incoming: Vec<Rule>,
    outgoing: Vec<Rule>,
}

/// Somebody of these at one of these ports; everybody, or every port, where there is none.
struct Rule {
    peers: Option<Vec<Peer>>,
    ports: Option<Vec<u16>>,
}

enum Peer {
    Pods(LabelSelector),
    Range(String),
    Name(String),
}

struct World {
    parties: Vec<Party>,
    policies: Vec<Policy>,
}

fn pod(name: &str, namespace: &str, mut labels: Labels) -> Party {
    labels.insert(NAMESPACE.to_owned(), namespace.to_owned());
    Party { name: name.to_owned(), pod: Some(labels), address: None, is_of_control_plane: false }
}

fn outside(name: &str, address: Option<&'static str>) -> Party {
    Party { name: name.to_owned(), pod: None, address, is_of_control_plane: false }
}

impl World {
    /// The pods and policies of these objects, beside pods of others and the outside.
    fn new(objects: &[Value]) -> Self {
        let manager =
            || pairs([("app.kubernetes.io/name", "hangar"), ("app.kubernetes.io/component", "manager")]);
        let others = [
            pod("monitoring", "monitoring", Labels::new()),
            pod("the name server", "kube-system", pairs([("k8s-app", "kube-dns")])),
            pod("the manager", "hangar-system", manager()),
            pod("a pod with the manager's labels", "team", manager()),
            outside("outside", None),
        ];
        let of_kinds = |kinds: &'static [&str]| {
            objects.iter().filter(|one| kinds.contains(&one["kind"].as_str().unwrap()))
        };
        let pods = of_kinds(&["Deployment", "StatefulSet"]).map(|object| {
            let labels = object.pointer("/spec/template/metadata/labels").unwrap().clone();
            let metadata = &object["metadata"];
            let (namespace, name) =
                (metadata["namespace"].as_str().unwrap(), metadata["name"].as_str().unwrap());
            let labels = serde_json::from_value(labels).unwrap();
            Party { is_of_control_plane: true, ..pod(&format!("{namespace}/{name}"), namespace, labels) }
        });
        Self { parties: pods.chain(others).collect(), policies: of_kinds(&KINDS).map(policy).collect() }
    }

    fn allows(&self, from: &Party, to: &Party, port: u16) -> bool {
        self.lets(from, to, port, Direction::Egress) && self.lets(to, from, port, Direction::Ingress)
    }

    /// Whether the policies of one end let it talk to the other: all do where none is about it, else one must.
    fn lets(&self, end: &Party, other: &Party, port: u16, direction: Direction) -> bool {
        let mut about = self.policies.iter().filter(|policy| is_about(policy, end)).peekable();
        about.peek().is_none()
            || about.any(|policy| rules(policy, direction).iter().any(|rule| fits(rule, other, port)))
    }

    /// Who reaches which port, where the control plane whose pods have this prefix is one of the two.
    fn table(&self, prefix: &str) -> String {
        let is_own = |party: &Party| party.name.starts_with(prefix);
        let mut lines = Vec::new();
        for to in &self.parties {
            for port in PORTS {
                let reaches = |from: &&Party| (is_own(to) || is_own(from)) && self.allows(from, to, port);
                let from: Vec<&str> =
                    self.parties.iter().filter(reaches).map(|from| from.name.as_str()).collect();
                if !from.is_empty() {
                    lines.push(format!("{}:{port}\n    {}", to.name, from.join("\n    ")));
                }
            }
        }
        lines.join("\n")
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Direction {
    Ingress,
    Egress,
}

fn rules(policy: &Policy, direction: Direction) -> &[Rule] {
    match direction {
        Direction::Ingress => &policy.incoming,
        Direction::Egress => &policy.outgoing,
    }
}

fn is_about(policy: &Policy, party: &Party) -> bool {
    party.pod.as_ref().is_some_and(|labels| selects(&policy.about, labels))
}

fn fits(rule: &Rule, other: &Party, port: u16) -> bool {
    let is_peer = |peer: &Peer| match peer {
        Peer::Pods(selector) => other.pod.as_ref().is_some_and(|labels| selects(selector, labels)),
        Peer::Range(range) => other.address.is_some_and(|address| *range == format!("{address}/32")),
        // Cilium knows pods by their labels, and only others by name.
        Peer::Name(name) => other.pod.is_none() && other.name == *name,
    };
    rule.peers.as_ref().is_none_or(|peers| peers.iter().any(is_peer))
        && rule.ports.as_ref().is_none_or(|ports| ports.contains(&port))
}

fn selects(selector: &LabelSelector, labels: &Labels) -> bool {
    let exists = |asked: &LabelSelectorRequirement| {
        assert_eq!(asked.operator, "Exists", "others are not worked out here");
        labels.contains_key(&asked.key)
    };
    selector.match_labels.iter().flatten().all(|(name, value)| labels.get(name) == Some(value))
        && selector.match_expressions.iter().flatten().all(exists)
}

fn policy(object: &Value) -> Policy {
    let metadata = &object["metadata"];
    let (namespace, name) = (metadata["namespace"].as_str().unwrap(), metadata["name"].as_str().unwrap());
    let policy = if object["kind"] == KINDS[0] {
        of_network_policy(serde_json::from_value(object.clone()).unwrap(), namespace)
    } else {
        of_cilium_policy(&object["spec"], namespace)
    };
    Policy { name: name.to_owned(), ..policy }
}

fn within(mut selector: LabelSelector, namespace: &str) -> LabelSelector {
    selector.match_labels.get_or_insert_default().insert(NAMESPACE.to_owned(), namespace.to_owned());
    selector
}

fn of_network_policy(policy: NetworkPolicy, namespace: &str) -> Policy {
    let spec = policy.spec.unwrap();
    assert_eq!(spec.policy_types, Some(vec!["Ingress".to_owned(), "Egress".to_owned()]));
    let rule = |peers: Option<Vec<NetworkPolicyPeer>>, ports: Option<Vec<NetworkPolicyPort>>| Rule {
        peers: peers.map(|peers| peers.into_iter().map(|peer| network_peer(peer, namespace)).collect()),
        ports: ports.map(|ports| ports.iter().filter_map(tcp_port).collect()),
    };
    Policy {
        name: String::new(),
        about: within(spec.pod_selector.unwrap(), namespace),
        incoming: spec.ingress.unwrap_or_default().into_iter().map(|one| rule(one.from, one.ports)).collect(),
        outgoing: spec.egress.unwrap_or_default().into_iter().map(|one| rule(one.to, one.ports)).collect(),
    }
}

/// Without a selector of namespaces a peer is in the policy's own.
fn network_peer(peer: NetworkPolicyPeer, namespace: &str) -> Peer {
    if let Some(block) = peer.ip_block {
        assert_eq!(block.except, None);
        return Peer::Range(block.cidr);
    }
    let pods = peer.pod_selector.unwrap_or_default();
    let Some(namespaces) = peer.namespace_selector else { return Peer::Pods(within(pods, namespace)) };
    assert_eq!(namespaces.match_expressions, None);
    match namespaces.match_labels.unwrap_or_default().first_key_value() {
        None => Peer::Pods(pods),
        Some((key, name)) => {
            assert_eq!(key, "kubernetes.io/metadata.name");
            Peer::Pods(within(pods, name))
        }
    }
}

fn tcp_port(allowed: &NetworkPolicyPort) -> Option<u16> {
    assert!(allowed.end_port.is_none(), "ranges are not worked out here: {allowed:?}");
    let Some(IntOrString::Int(port)) = allowed.port else { panic!("names are not worked out here") };
    (allowed.protocol.as_deref() == Some("TCP")).then(|| u16::try_from(port).unwrap())
}

fn of_cilium_policy(spec: &Value, namespace: &str) -> Policy {
    let rules = |field: &str, begins: &str| -> Vec<Rule> {
        let rules = spec[field].as_array().unwrap();
        // A direction without rules would be open.
        assert!(!rules.is_empty(), "{field}");
        rules.iter().map(|rule| cilium_rule(rule, begins, namespace)).collect()
    };
    assert_eq!(spec.as_object().unwrap().len(), 3, "{spec}");
    Policy {
        name: String::new(),
        about: within(cilium_selector(&spec["endpointSelector"]), namespace),
        incoming: rules("ingress", "from"),
        outgoing: rules("egress", "to"),
    }
}

fn cilium_rule(rule: &Value, begins: &str, namespace: &str) -> Rule {
    let mut found = Rule { peers: Some(Vec::new()), ports: None };
    for (field, value) in rule.as_object().unwrap() {
        let values = value.as_array().unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        if field == "toPorts" {
            found.ports = Some(values.iter().flat_map(cilium_ports).collect());
            continue;
        }
        let mut peers = Vec::new();
        for value in values {
            match field.strip_prefix(begins).unwrap() {
                "Entities" if value == "all" => found.peers = None,
                "Endpoints" => {
                    let selector = cilium_selector(value);
                    let is_wide = serde_json::to_string(&selector).unwrap().contains(NAMESPACE);
                    // Where it does not say, a peer is in the policy's own namespace.
                    peers.push(Peer::Pods(if is_wide { selector } else { within(selector, namespace) }));
                }
                "CIDR" => peers.push(Peer::Range(text(value))),
                "FQDNs" => peers.push(Peer::Name(text(&value["matchName"]))),
                other => panic!("not worked out here: {other} {value}"),
            }
        }
        if let Some(found) = &mut found.peers {
            found.extend(peers);
        }
    }
    found
}

fn cilium_ports(ports: &Value) -> Vec<u16> {
    let port = |port: &Value| {
        assert!(port["protocol"] == "TCP" || port["protocol"] == "ANY", "{port}");
        port["port"].as_str().unwrap().parse().unwrap()
    };
    ports["ports"].as_array().unwrap().iter().map(port).collect()
}

fn cilium_selector(selector: &Value) -> LabelSelector {
    let text = selector.to_string().replace("k8s:io.kubernetes.pod.namespace", NAMESPACE);
    serde_json::from_str(&text).unwrap()
}

/// A management cluster with Cilium, or without.
fn planned(spec: &Value, has_cilium: bool) -> Plan {
    let mut observed = all_ready(spec);
    if has_cilium {
        observed.cilium_policies = Read::One(BTreeMap::new());
    }
    checked(&observed)
}

/// A control plane, a neighbour in its namespace, and one of its name in another namespace.
fn three(has_cilium: bool) -> Vec<Value> {
    let text = serde_json::to_string(&planned(&json!({}), has_cilium).objects).unwrap();
    [("demo", "team"), ("neighbour", "team"), ("demo", "elsewhere")]
        .into_iter()
        .flat_map(|(cluster, namespace)| {
            let text = text.replace("demo", cluster).replace("\"team\"", &format!("\"{namespace}\""));
            serde_json::from_str::<Vec<Value>>(&text).unwrap()
        })
        .collect()
}

#[test]
fn who_reaches_whom() {
    insta::assert_snapshot!(World::new(&three(false)).table(OWN));
}

#[test]
fn both_dialects_say_the_same() {
    assert_eq!(World::new(&three(true)).table(OWN), World::new(&three(false)).table(OWN));
}

/// Only one of the two knows names.
#[test]
fn who_reaches_whom_where_servers_are_named() {
    let provider = json!({"audiences": ["a"], "claimMappings": {"username": "claims.sub"}});
    let target = |server: &str| json!({"server": server});
    let spec = json!({
        "oidcProviders": {"https://issuer.example.org/realm": provider, "https://203.0.113.6:9443": provider},
        "deployment": {"apiServer": {"audit": {
            "policy": {"rules": [{"level": "Metadata"}]},
            "webhook": {"targets": [
                target("https://audit.example.org"),
                target("https://audit.logging.svc:443/in"),
            ]},
        }}},
    });
    for (name, has_cilium) in [("network_policies", false), ("cilium", true)] {
        let objects: Vec<Value> = planned(&spec, has_cilium)
            .objects
            .iter()
            .map(|object| serde_json::to_value(object).unwrap())
            .collect();
        let mut world = World::new(&objects);
        world.parties.extend([
            outside("issuer.example.org", Some("203.0.113.5")),
            outside("audit.example.org", Some("203.0.113.7")),
            outside("an issuer by address", Some("203.0.113.6")),
            pod("a receiver of audit records", "logging", Labels::new()),
        ]);
        let policies = objects.iter().filter(|object| object["metadata"]["name"] == "demo-apiserver");
        let policies = policies.filter(|object| KINDS.contains(&object["kind"].as_str().unwrap()));
        let rules: Vec<String> =
            policies.map(|policy| serde_saphyr::to_string(&policy["spec"]).unwrap()).collect();
        let table = world.table(OWN);
        insta::assert_snapshot!(
            format!("servers_are_named_{name}"),
            format!("{table}\n\n{}", rules.concat())
        );
    }
}

/// Those of neighbours as well: they say that neighbours do not come.
#[test]
fn the_table_shows_that_a_policy_is_missing() {
    for has_cilium in [false, true] {
        let world = || World::new(&three(has_cilium));
        let table = world().table(OWN);
        let policies = world().policies.len();
        assert_eq!(policies, 12, "one for each component of each");
        for missing in 0..policies {
            let mut world = world();
            let policy = world.policies.remove(missing);
            assert_ne!(world.table(OWN), table, "{}", policy.name);
        }
    }
}

fn there(names: &[&str]) -> BTreeMap<String, OwnedObject> {
    let object = |name: &str| OwnedObject { uid: format!("uid of {name}"), ..OwnedObject::default() };
    names.iter().map(|name| ((*name).to_owned(), object(name))).collect()
}

const NAMES: [&str; 4] = ["demo-apiserver", "demo-controller-manager", "demo-etcd", "demo-scheduler"];

fn deleted(plan: &Plan) -> Vec<String> {
    let ids = plan.steps.iter().map(flow::Identified::id);
    ids.filter(|id| id.verb == "delete").map(|id| id.name).collect()
}

fn kinds(plan: &Plan) -> Vec<&str> {
    let kinds = plan.objects.iter().filter_map(|object| Some(object.types.as_ref()?.kind.as_str()));
    kinds.filter(|kind| KINDS.contains(kind)).collect()
}

#[test]
fn policies_of_the_other_dialect_go_when_all_of_the_new_one_are_there() {
    let mut observed = all_ready(&json!({}));
    observed.network_policies = Read::One(there(&NAMES));
    observed.cilium_policies = Read::One(there(&NAMES[1..]));
    let plan = checked(&observed);
    assert_eq!((kinds(&plan), deleted(&plan)), (vec![KINDS[1]; 4], Vec::new()), "one is missing");

    // One that Cilium refuses is no policy.
    let mut refused = there(&NAMES);
    refused.get_mut("demo-etcd").unwrap().problem = Some("invalid selector".to_owned());
    observed.cilium_policies = Read::One(refused);
    let plan = checked(&observed);
    assert_eq!(kinds(&plan).iter().filter(|kind| **kind == KINDS[0]).count(), 1);
    assert_eq!(deleted(&plan), Vec::<String>::new());

    observed.cilium_policies = Read::One(there(&NAMES));
    let plan = checked(&observed);
    let all: Vec<String> = NAMES.iter().map(|name| format!("NetworkPolicy team/{name}")).collect();
    assert_eq!((kinds(&plan), deleted(&plan)), (vec![KINDS[1]; 4], all));
    for step in &plan.steps {
        observed.fold(step, &flow::Outcome::Done);
    }
    assert_eq!(deleted(&checked(&observed)), Vec::<String>::new(), "once");

    // Cilium goes, and its policies with it.
    observed.cilium_policies = Read::Absent;
    assert_eq!(kinds(&checked(&observed)), vec![KINDS[0]; 4]);
}

#[test]
fn nothing_begins_while_it_is_not_known_which_policies_there_are() {
    let mut observed = super::fixture::created(&json!({}));
    super::fixture::settle(&mut observed);
    let is_begun = |plan: &Plan| {
        let kinds = plan.objects.iter().filter_map(|object| Some(object.types.as_ref()?.kind.clone()));
        kinds.into_iter().any(|kind| kind == "StatefulSet" || kind == "Deployment")
    };
    assert!(is_begun(&checked(&observed)));
    observed.cilium_policies = Read::unknown("ciliumnetworkpolicies: not listed yet");
    let plan = observed.plan();
    assert!(!is_begun(&plan) && kinds(&plan).is_empty());
    let said = plan.status.conditions.iter().find(|condition| condition.type_ == "EtcdClusterHealthy");
    assert!(said.unwrap().message.contains("CiliumNetworkPolicies"), "{said:?}");
    // What runs has its policies, and stays.
    let mut running = all_ready(&json!({}));
    running.cilium_policies = observed.cilium_policies.clone();
    assert!(is_begun(&running.plan()));
}

/// Every pod of the plan has policies in both directions, unless it is not known which there are.
pub(super) fn check_isolation(observed: &Observed, plan: &Plan) {
    if observed.cilium_policies.is_unknown() {
        return;
    }
    let is_part = |object: &&DynamicObject| {
        let kind = object.types.as_ref().map(|types| types.kind.as_str());
        kind.is_some_and(|kind| matches!(kind, "Deployment" | "StatefulSet") || KINDS.contains(&kind))
    };
    let parts = plan.objects.iter().filter(is_part).map(|object| serde_json::to_value(object).unwrap());
    let world = World::new(&parts.collect::<Vec<_>>());
    for pod in world.parties.iter().filter(|party| party.is_of_control_plane) {
        for direction in [Direction::Ingress, Direction::Egress] {
            let is_limited = |policy: &Policy| is_about(policy, pod) && !rules(policy, direction).is_empty();
            assert!(world.policies.iter().any(is_limited), "no policy limits {direction:?} of {}", pod.name);
        }
    }
}
