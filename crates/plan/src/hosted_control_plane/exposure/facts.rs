//! What plans know of Gateways, routes, Nodes and names: small facts, made from objects that others write.
//!
//! What is read here was written by whoever may write Gateways, Namespaces and Nodes, and by their controllers: texts are
//! cut and made one line, lists have an end, and a host name is one or is left out.

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::DynamicObject;
use serde::Deserialize as _;
use serde_json::Value;

use super::route::{GATEWAY_GROUP, ROUTE_KIND};
use crate::flow::Read;
use crate::hosted_control_plane::tenants_words;
use crate::label::is_label;

/// Why something is unknown to a manager without rights on what has no namespace.
pub const SOME_NAMESPACES: &str = "this manager looks after some namespaces only";

/// As many listeners, parents of a route, and conditions as the Gateway API allows.
const MOST_ITEMS: usize = 64;
/// As many addresses of one kind as are kept of a Node.
const MOST_ADDRESSES: usize = 8;
const LONGEST_NAME: usize = 253;
const LONGEST_LABEL: usize = 63;

/// What some ways in need beyond Services. What no way of this control plane needs was not read.
#[derive(Clone, Debug, PartialEq)]
pub struct Ways {
    /// How routes are written. Absent: the management cluster has no routes.
    pub route_api: Read<RouteApi>,
    /// The Gateway of the settings.
    pub gateway: Read<GatewayFacts>,
    /// The Gateway's class.
    pub class: Read<ClassFacts>,
    /// The control plane's own namespace.
    pub namespace: Read<NamespaceFacts>,
    /// The route to the API server.
    pub route: Read<RouteFacts>,
    /// The route to the tunnel's server.
    pub tunnel_route: Read<RouteFacts>,
    /// The management cluster's Nodes.
    pub nodes: Read<NodeFacts>,
    /// The addresses that the load balancer's name leads to.
    pub resolved: Read<IpAddr>,
}

#[cfg(test)]
crate::flow::doubt::reads! {
    Ways { route_api, gateway, class, namespace, route, tunnel_route, nodes, resolved };
    RouteApi, GatewayFacts, ClassFacts, NamespaceFacts, RouteFacts, NodeFacts, IpAddr,
}

impl Ways {
    /// Nothing is known, for this reason.
    pub fn unknown(why: &str) -> Self {
        Self {
            route_api: Read::unknown(why),
            gateway: Read::unknown(why),
            class: Read::unknown(why),
            namespace: Read::unknown(why),
            route: Read::unknown(why),
            tunnel_route: Read::unknown(why),
            nodes: Read::unknown(why),
            resolved: Read::unknown(why),
        }
    }
}

/// How routes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteApi {
    /// The version; nothing while none that is known is served.
    pub version: Option<RouteVersion>,
}

/// A version of TLSRoute. All of them have the few fields that we write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteVersion {
    V1,
    V1Alpha3,
    V1Alpha2,
}

impl RouteVersion {
    /// The best of those that are served.
    pub fn best(served: &[String]) -> Option<Self> {
        let known = [Self::V1, Self::V1Alpha3, Self::V1Alpha2];
        known.into_iter().find(|version| served.iter().any(|served| served == version.as_str()))
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V1Alpha3 => "v1alpha3",
            Self::V1Alpha2 => "v1alpha2",
        }
    }
}

/// What a plan needs of a Gateway.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GatewayFacts {
    /// The name of its class.
    pub class: String,
    pub listeners: Vec<ListenerFacts>,
    pub has_address: bool,
    /// What its controller says of it, where it says something.
    pub accepted: Option<Verdict>,
    pub programmed: Option<Verdict>,
}

impl GatewayFacts {
    pub fn of(gateway: &DynamicObject) -> Self {
        let data = &gateway.data;
        Self {
            class: name(data.pointer("/spec/gatewayClassName")),
            listeners: items(data.pointer("/spec/listeners")).map(ListenerFacts::of).collect(),
            has_address: items(data.pointer("/status/addresses")).next().is_some(),
            accepted: Verdict::of(data.pointer("/status/conditions"), "Accepted", gateway),
            programmed: Verdict::of(data.pointer("/status/conditions"), "Programmed", gateway),
        }
    }
}

/// What a plan needs of a listener.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListenerFacts {
    pub name: String,
    pub port: u16,
    pub protocol: String,
    pub is_passthrough: bool,
    /// What its wildcard is of: all names in this domain are its.
    pub domain: Option<String>,
    pub allowed: Allowed,
    /// Whether routes of our kind may be attached.
    pub allows_kind: bool,
}

/// The namespaces whose routes a listener takes.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Allowed {
    /// The Gateway's own.
    #[default]
    Same,
    All,
    /// Those with these labels.
    Selected(LabelSelector),
    Nobody,
}

impl ListenerFacts {
    fn of(listener: &Value) -> Self {
        let namespaces = listener.pointer("/allowedRoutes/namespaces");
        let selector = namespaces.and_then(|namespaces| namespaces.get("selector"));
        let allowed = match namespaces.and_then(|namespaces| namespaces.get("from")).and_then(Value::as_str) {
            None | Some("Same") => Allowed::Same,
            Some("All") => Allowed::All,
            Some("Selector") => selector
                .and_then(|selector| LabelSelector::deserialize(selector).ok())
                .map_or(Allowed::Nobody, Allowed::Selected),
            Some(_) => Allowed::Nobody,
        };
        let is_route = |kind: &Value| {
            let group = kind.get("group").and_then(Value::as_str).unwrap_or(GATEWAY_GROUP);
            group == GATEWAY_GROUP && kind.get("kind").and_then(Value::as_str) == Some(ROUTE_KIND)
        };
        let mut kinds = items(listener.pointer("/allowedRoutes/kinds")).peekable();
        let hostname = listener.get("hostname").and_then(Value::as_str);
        let domain = hostname.and_then(|hostname| hostname.strip_prefix("*."));
        Self {
            name: name(listener.get("name")),
            port: listener
                .get("port")
                .and_then(Value::as_u64)
                .and_then(|port| port.try_into().ok())
                .unwrap_or(0),
            protocol: name(listener.get("protocol")),
            is_passthrough: listener.pointer("/tls/mode").and_then(Value::as_str) == Some("Passthrough"),
            domain: domain.filter(|domain| is_host_name(domain)).map(str::to_owned),
            allowed,
            allows_kind: kinds.peek().is_none() || kinds.any(is_route),
        }
    }
}

/// What a plan needs of a GatewayClass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassFacts {
    /// What a controller says of it, where one does.
    pub accepted: Option<Verdict>,
}

impl ClassFacts {
    pub fn of(class: &DynamicObject) -> Self {
        Self { accepted: Verdict::of(class.data.pointer("/status/conditions"), "Accepted", class) }
    }
}

/// What a plan needs of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceFacts {
    pub labels: BTreeMap<String, String>,
}

impl NamespaceFacts {
    /// Whether a selector selects it.
    pub(super) fn is_selected(&self, selector: &LabelSelector) -> bool {
        let is_as = |(key, value): (&String, &String)| self.labels.get(key) == Some(value);
        let all = selector.match_labels.iter().flatten().all(is_as);
        all && selector.match_expressions.iter().flatten().all(|expression| {
            let present = self.labels.get(&expression.key);
            let is_listed =
                present.is_some_and(|present| expression.values.iter().flatten().any(|one| one == present));
            match expression.operator.as_str() {
                "In" => is_listed,
                "NotIn" => !is_listed,
                "Exists" => present.is_some(),
                "DoesNotExist" => present.is_none(),
                _ => false,
            }
        })
    }
}

/// What a plan needs of a route of ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteFacts {
    pub uid: String,
    pub is_deleting: bool,
    pub parents: Vec<ParentFacts>,
}

impl RouteFacts {
    pub fn of(route: &DynamicObject) -> Self {
        let metadata = &route.metadata;
        let parents = items(route.data.pointer("/status/parents"));
        Self {
            uid: metadata.uid.clone().unwrap_or_default(),
            is_deleting: metadata.deletion_timestamp.is_some(),
            parents: parents.map(|parent| ParentFacts::of(parent, route)).collect(),
        }
    }
}

/// What the controller of a Gateway says of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParentFacts {
    /// The Gateway; its namespace is the route's where it is not given.
    pub namespace: Option<String>,
    pub name: String,
    pub section: Option<String>,
    pub accepted: Option<Verdict>,
    pub resolved: Option<Verdict>,
}

impl ParentFacts {
    fn of(parent: &Value, route: &DynamicObject) -> Self {
        let named = |pointer: &str| parent.pointer(pointer).map(|value| name(Some(value)));
        Self {
            namespace: named("/parentRef/namespace"),
            name: named("/parentRef/name").unwrap_or_default(),
            section: named("/parentRef/sectionName"),
            accepted: Verdict::of(parent.get("conditions"), "Accepted", route),
            resolved: Verdict::of(parent.get("conditions"), "ResolvedRefs", route),
        }
    }
}

/// A condition that another controller wrote about an object: about its present generation, or a good one about an older
/// generation. What is good holds until the controller has answered: whoever edits a Gateway that many share, or its
/// class, takes nobody's way in for that moment, and the controller serves what it has meanwhile. What an edit takes away
/// is seen in the specification at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Nothing while it does not know.
    pub is_true: Option<bool>,
    /// Its reason and its message.
    pub words: String,
}

impl Verdict {
    fn of(conditions: Option<&Value>, type_: &str, object: &DynamicObject) -> Option<Self> {
        let found = items(conditions).find(|condition| condition["type"] == type_)?;
        let text = |field: &str| found.get(field).and_then(Value::as_str).unwrap_or_default();
        let about = found.get("observedGeneration").and_then(Value::as_i64).filter(|about| *about > 0);
        let is_old = about.zip(object.metadata.generation).is_some_and(|(about, present)| about < present);
        let is_true = match text("status") {
            "True" => Some(true),
            _ if is_old => return None,
            "False" => Some(false),
            _ => None,
        };
        let words = [text("reason"), text("message")].into_iter().filter(|words| !words.is_empty());
        Some(Self { is_true, words: tenants_words(&words.collect::<Vec<_>>().join(": ")) })
    }
}

/// What a plan needs of a Node of the management cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeFacts {
    pub is_ready: bool,
    pub internal: Vec<IpAddr>,
    pub external: Vec<IpAddr>,
}

impl NodeFacts {
    pub fn of(node: &Node) -> Self {
        let status = node.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
        let mut ready = conditions.filter(|condition| condition.type_ == "Ready");
        let of = |type_: &str| -> Vec<IpAddr> {
            let addresses = status.and_then(|status| status.addresses.as_ref()).into_iter().flatten();
            let of_type = addresses.filter(|address| address.type_ == type_);
            let parsed = of_type.filter_map(|address| address.address.parse().ok());
            parsed.filter(is_target).take(MOST_ADDRESSES).collect()
        };
        Self {
            is_ready: ready.any(|condition| condition.status == "True"),
            internal: of("InternalIP"),
            external: of("ExternalIP"),
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = IpAddr> {
        self.internal.iter().chain(&self.external).copied()
    }
}

/// Whether an address may stand behind a Service: one of a host, and not only of the host itself or of its link.
pub fn is_target(address: &IpAddr) -> bool {
    let is_of_link = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !(is_of_link || address.is_loopback() || address.is_unspecified() || address.is_multicast())
}

/// Whether a text is a host name, as certificates and routes have them.
pub(super) fn is_host_name(text: &str) -> bool {
    let is_short = |label: &str| label.len() <= LONGEST_LABEL;
    text.len() <= LONGEST_NAME && text.split('.').all(|label| is_short(label) && is_label(label))
}

fn items(list: Option<&Value>) -> impl Iterator<Item = &Value> {
    list.and_then(Value::as_array).into_iter().flatten().take(MOST_ITEMS)
}

/// A name, which an API server has checked, or what is left of something else.
fn name(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().chars().take(LONGEST_NAME).collect()
}
