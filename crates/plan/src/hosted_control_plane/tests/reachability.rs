//! Who reaches whom: what NetworkPolicies mean, worked out over the pods and policies of plans. Nothing here enforces
//! policies, so this stands for a cluster that does.

use std::collections::BTreeMap;

use k8s_openapi::api::networking::v1::{NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};

use super::super::*;
use super::checker::checked;
use super::fixture::all_ready;
use crate::pieces::pairs;

/// Every port that something of a control plane listens on, whether it is declared or not, and two that others have.
const PORTS: [u16; 12] = [53, 443, 2379, 2380, 2381, 2382, 6443, 8132, 8133, 8134, 10257, 10259];

/// Whose table it is.
const OWN: &str = "team/demo-";

type Labels = BTreeMap<String, String>;

struct Party {
    name: String,
    /// Namespace and labels of a pod; the rest of the world has none.
    pod: Option<(String, Labels)>,
    is_of_control_plane: bool,
}

struct World {
    parties: Vec<Party>,
    policies: Vec<NetworkPolicy>,
}

impl World {
    /// The pods and policies of these objects, beside pods of others and the outside.
    fn new(objects: &[Value]) -> Self {
        let other = |name: &str, namespace: &str, labels: Labels| Party {
            name: name.to_owned(),
            pod: Some((namespace.to_owned(), labels)),
            is_of_control_plane: false,
        };
        let manager =
            || pairs([("app.kubernetes.io/name", "hangar"), ("app.kubernetes.io/component", "manager")]);
        let others = [
            other("monitoring", "monitoring", Labels::new()),
            other("the name server", "kube-system", pairs([("k8s-app", "kube-dns")])),
            other("the manager", "hangar-system", manager()),
            other("a pod with the manager's labels", "team", manager()),
        ];
        let outside = Party { name: "outside".to_owned(), pod: None, is_of_control_plane: false };
        let of_kinds = |kinds: &'static [&str]| {
            objects.iter().filter(|one| kinds.contains(&one["kind"].as_str().unwrap()))
        };
        let pods = of_kinds(&["Deployment", "StatefulSet"]).map(|object| {
            let labels = object.pointer("/spec/template/metadata/labels").unwrap().clone();
            let metadata = &object["metadata"];
            let (namespace, name) =
                (metadata["namespace"].as_str().unwrap(), metadata["name"].as_str().unwrap());
            Party {
                name: format!("{namespace}/{name}"),
                pod: Some((namespace.to_owned(), serde_json::from_value(labels).unwrap())),
                is_of_control_plane: true,
            }
        });
        Self {
            parties: pods.chain(others).chain([outside]).collect(),
            policies: of_kinds(&["NetworkPolicy"])
                .map(|object| serde_json::from_value(object.clone()).unwrap())
                .collect(),
        }
    }

    fn allows(&self, from: &Party, to: &Party, port: u16) -> bool {
        self.lets(from, to, port, Direction::Egress) && self.lets(to, from, port, Direction::Ingress)
    }

    /// Whether the policies of one end let it talk to the other: all do where none is about this direction, else one must.
    fn lets(&self, end: &Party, other: &Party, port: u16, direction: Direction) -> bool {
        let mut about = self.policies.iter().filter(|policy| is_about(policy, end, direction)).peekable();
        about.peek().is_none() || about.any(|policy| has_rule(policy, other, port, direction))
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

fn is_about(policy: &NetworkPolicy, party: &Party, direction: Direction) -> bool {
    let spec = policy.spec.as_ref().unwrap();
    let name = if direction == Direction::Ingress { "Ingress" } else { "Egress" };
    let types = spec.policy_types.as_ref().expect("it says which directions it is about");
    let Some((namespace, labels)) = &party.pod else { return false };
    policy.metadata.namespace.as_ref() == Some(namespace)
        && types.iter().any(|one| one == name)
        && selects(spec.pod_selector.as_ref().unwrap(), labels)
}

fn has_rule(policy: &NetworkPolicy, other: &Party, port: u16, direction: Direction) -> bool {
    let spec = policy.spec.as_ref().unwrap();
    let fits = |peers: Option<&Vec<NetworkPolicyPeer>>, ports: Option<&Vec<NetworkPolicyPort>>| {
        peers.is_none_or(|peers| peers.iter().any(|peer| is_peer(policy, peer, other)))
            && ports.is_none_or(|ports| ports.iter().any(|one| is_port(one, port)))
    };
    match direction {
        Direction::Ingress => {
            spec.ingress.iter().flatten().any(|rule| fits(rule.from.as_ref(), rule.ports.as_ref()))
        }
        Direction::Egress => {
            spec.egress.iter().flatten().any(|rule| fits(rule.to.as_ref(), rule.ports.as_ref()))
        }
    }
}

/// Without a selector of namespaces a peer is in the policy's own.
fn is_peer(policy: &NetworkPolicy, peer: &NetworkPolicyPeer, party: &Party) -> bool {
    assert!(peer.ip_block.is_none(), "addresses are not worked out here: {peer:?}");
    let Some((namespace, labels)) = &party.pod else { return false };
    let in_namespace = match &peer.namespace_selector {
        Some(selector) => {
            selects(selector, &[("kubernetes.io/metadata.name".to_owned(), namespace.clone())].into())
        }
        None => policy.metadata.namespace.as_ref() == Some(namespace),
    };
    in_namespace && peer.pod_selector.as_ref().is_none_or(|selector| selects(selector, labels))
}

fn is_port(allowed: &NetworkPolicyPort, port: u16) -> bool {
    assert!(allowed.end_port.is_none(), "ranges are not worked out here: {allowed:?}");
    allowed.protocol.as_deref() == Some("TCP") && allowed.port == Some(IntOrString::Int(port.into()))
}

fn selects(selector: &LabelSelector, labels: &Labels) -> bool {
    assert!(selector.match_expressions.is_none(), "expressions are not worked out here: {selector:?}");
    selector.match_labels.iter().flatten().all(|(name, value)| labels.get(name) == Some(value))
}

/// A control plane, a neighbour in its namespace, and one of its name in another namespace.
fn three() -> Vec<Value> {
    let plan = checked(&all_ready(&json!({})));
    let text = serde_json::to_string(&plan.objects).unwrap();
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
    insta::assert_snapshot!(World::new(&three()).table(OWN));
}

/// Those of neighbours as well: they say that neighbours do not come.
#[test]
fn the_table_shows_that_a_policy_is_missing() {
    let world = || World::new(&three());
    let table = world().table(OWN);
    let policies = world().policies.len();
    assert_eq!(policies, 12, "one for each component of each");
    for missing in 0..policies {
        let mut world = world();
        let policy = world.policies.remove(missing);
        assert_ne!(world.table(OWN), table, "{:?}", policy.metadata.name);
    }
}

/// Every pod of the plan has policies in both directions.
pub(super) fn check_isolation(plan: &Plan) {
    let is_part = |object: &&DynamicObject| {
        let kind = object.types.as_ref().map(|types| types.kind.as_str());
        matches!(kind, Some("Deployment" | "StatefulSet" | "NetworkPolicy"))
    };
    let parts = plan.objects.iter().filter(is_part).map(|object| serde_json::to_value(object).unwrap());
    let world = World::new(&parts.collect::<Vec<_>>());
    for pod in world.parties.iter().filter(|party| party.is_of_control_plane) {
        for direction in [Direction::Ingress, Direction::Egress] {
            let is_limited = world.policies.iter().any(|policy| is_about(policy, pod, direction));
            assert!(is_limited, "no policy limits {direction:?} of {}", pod.name);
        }
    }
}
