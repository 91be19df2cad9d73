//! The Node of a Machine: which one it is, its state, and what the Machine writes to it.
//!
//! Provider ids are compared as a whole. Those of OpenStack end in the server's own id, which is unique, and providers and
//! cloud controllers do not agree on the region before it, so for them the server's id decides.
//!
//! The Machine's labels with three prefixes, which a kubelet may not set on itself, are copied to the Node. An
//! annotation lists them, so that a label that is removed from the Machine is removed from the Node too, and no other
//! is. The same patch removes the taint that keeps pods away until then.
//!
//! The content of a Node is written by its kubelet and by users of the tenant, and a watch keeps thousands of Nodes. So
//! everything that is kept is cut to a size that no real Node reaches. Labels and annotations of Cluster API are kept
//! first.

use std::collections::{BTreeMap, BTreeSet};

use hangar_api::cluster::v1beta2::Machine;
use hangar_api::conditions::shortened;
use hangar_api::names;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeAddress, NodeSystemInfo, Taint};

use crate::flow::Read;
use crate::referred;

/// Bytes of all labels, and of all annotations.
const MAP_BYTES: usize = 8 << 10;
/// Bytes of a condition's message.
const MESSAGE_BYTES: usize = 1 << 10;
/// Bytes of any other text.
const TEXT_BYTES: usize = 256;
/// Conditions, and addresses.
const ENTRIES: usize = 16;
/// Taints. All of them are written again when one is removed, so that no real Node may have more.
const TAINTS: usize = 64;
/// Bytes of a name: what Kubernetes allows.
const NAME_BYTES: usize = 253;
/// Bytes that an entry of a map or a list takes beside its texts.
const PART_BYTES: usize = 128;
/// How domains of Cluster API end.
const OUR_DOMAIN: &str = "cluster.x-k8s.io";

/// What is kept of a Node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeFacts {
    pub name: String,
    pub uid: String,
    /// Its version when it was read: patches of its taints depend on it.
    pub resource_version: String,
    pub provider_id: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
    /// Whether it takes no pods.
    pub is_cordoned: bool,
    /// Status, reason and message of its conditions, by type.
    pub conditions: BTreeMap<String, (String, String, String)>,
    /// When each condition's status last changed, by type.
    pub transitions: BTreeMap<String, Timestamp>,
    pub addresses: Vec<NodeAddress>,
    /// What it says about itself.
    pub info: Option<NodeSystemInfo>,
    /// When its deletion was asked for.
    pub deleted_at: Option<Timestamp>,
}

impl From<Node> for NodeFacts {
    fn from(node: Node) -> Self {
        let (metadata, spec) = (node.metadata, node.spec.unwrap_or_default());
        let status = node.status.unwrap_or_default();
        let (mut conditions, mut transitions) = (BTreeMap::new(), BTreeMap::new());
        for condition in status.conditions.into_iter().flatten().take(ENTRIES) {
            let type_ = shortened(condition.type_, TEXT_BYTES);
            let reason = shortened(condition.reason.unwrap_or_default(), TEXT_BYTES);
            let message = shortened(condition.message.unwrap_or_default(), MESSAGE_BYTES);
            transitions.extend(condition.last_transition_time.map(|time| (type_.clone(), time.0)));
            conditions.insert(type_, (shortened(condition.status, TEXT_BYTES), reason, message));
        }
        let addresses = status.addresses.into_iter().flatten().take(ENTRIES);
        Self {
            name: plain(metadata.name, NAME_BYTES),
            uid: plain(metadata.uid, TEXT_BYTES),
            resource_version: plain(metadata.resource_version, TEXT_BYTES),
            provider_id: plain(spec.provider_id, MESSAGE_BYTES),
            labels: bounded(metadata.labels.unwrap_or_default()),
            annotations: bounded(metadata.annotations.unwrap_or_default()),
            taints: spec.taints.into_iter().flatten().filter(is_real).take(TAINTS).collect(),
            is_cordoned: spec.unschedulable.unwrap_or_default(),
            conditions,
            transitions,
            addresses: addresses
                .map(|address| NodeAddress {
                    address: shortened(address.address, TEXT_BYTES),
                    type_: shortened(address.type_, TEXT_BYTES),
                })
                .collect(),
            info: status.node_info.map(short),
            deleted_at: metadata.deletion_timestamp.map(|time| time.0),
        }
    }
}

impl NodeFacts {
    /// About how many bytes its parts take.
    pub fn bytes(&self) -> usize {
        let maps = self.labels.iter().chain(&self.annotations).map(|(name, value)| name.len() + value.len());
        let taints = self
            .taints
            .iter()
            .map(|taint| taint.key.len() + taint.effect.len() + taint.value.as_ref().map_or(0, String::len));
        let conditions = self.conditions.iter().map(|(type_, (status, reason, message))| {
            2 * type_.len() + status.len() + reason.len() + message.len()
        });
        let addresses = self.addresses.iter().map(|address| address.address.len() + address.type_.len());
        let parts = maps.chain(taints).chain(conditions).chain(addresses).map(|length| length + PART_BYTES);
        // At most TEXT_BYTES of each text; usually a few dozen.
        let info = self.info.as_ref().map_or(0, |info| format!("{info:?}").len());
        parts.sum::<usize>() + info + self.name.len() + self.uid.len() + self.provider_id.len()
    }
}

/// An identity. One that is too long is none: a part of it could be another's.
fn plain(text: Option<String>, limit: usize) -> String {
    text.filter(|text| text.len() <= limit).unwrap_or_default()
}

/// A taint that an API server would let pass; only a server that is none sends others.
fn is_real(taint: &Taint) -> bool {
    let texts = [Some(&taint.key), taint.value.as_ref(), Some(&taint.effect)];
    texts.into_iter().flatten().all(|text| text.len() <= NAME_BYTES + TEXT_BYTES)
}

/// As many entries as there is room for, those of Cluster API first. None is cut: half a value is another value.
fn bounded(entries: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let size = |(name, value): (&String, &String)| name.len() + value.len();
    if entries.iter().map(size).sum::<usize>() <= MAP_BYTES {
        return entries;
    }
    let is_ours = |name: &str| name.split_once('/').is_some_and(|(domain, _)| domain.ends_with(OUR_DOMAIN));
    let (ours, others): (Vec<_>, Vec<_>) = entries.into_iter().partition(|(name, _)| is_ours(name));
    let mut room = MAP_BYTES;
    let fits = |(name, value): &(String, String)| {
        let left = room.checked_sub(name.len() + value.len());
        room = left.unwrap_or(room);
        left.is_some()
    };
    ours.into_iter().chain(others).filter(fits).collect()
}

fn short(info: NodeSystemInfo) -> NodeSystemInfo {
    let cut = |text| shortened(text, TEXT_BYTES);
    NodeSystemInfo {
        architecture: cut(info.architecture),
        boot_id: cut(info.boot_id),
        container_runtime_version: cut(info.container_runtime_version),
        kernel_version: cut(info.kernel_version),
        kube_proxy_version: cut(info.kube_proxy_version),
        kubelet_version: cut(info.kubelet_version),
        machine_id: cut(info.machine_id),
        operating_system: cut(info.operating_system),
        os_image: cut(info.os_image),
        system_uuid: cut(info.system_uuid),
        swap: info.swap,
    }
}

/// What the tenant says about a Machine's Node.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeView {
    /// It was not asked.
    NotLooked,
    /// It could not be asked: why.
    Unreachable(String),
    Absent,
    Found(Box<NodeFacts>),
    /// Several with the same server: their names.
    Several(Vec<String>),
}

#[cfg(test)]
impl crate::flow::doubt::Reads for NodeView {
    fn reads(&mut self, doubt: &mut crate::flow::doubt::Doubt) {
        if !matches!(self, Self::NotLooked | Self::Unreachable(_)) {
            let failed = Self::Unreachable(crate::flow::doubt::FAILED.to_owned());
            doubt.here(self, failed, Some(Self::Absent));
        }
    }
}

/// The server of one of OpenStack's provider ids.
fn openstack_server(provider_id: &str) -> Option<&str> {
    provider_id.strip_prefix("openstack://")?.rsplit('/').next().filter(|server| !server.is_empty())
}

/// Whether two provider ids mean the same server. Servers of other clouds may be called the same in each zone or group.
pub fn is_same_server(left: &str, right: &str) -> bool {
    let (one, other) = (openstack_server(left), openstack_server(right));
    !left.is_empty() && (left == right || (one.is_some() && one == other))
}

/// What was found of a Machine's Node.
pub fn view(found: Read<NodeFacts>) -> NodeView {
    match found {
        Read::Unknown(unknown) => NodeView::Unreachable(unknown.why),
        Read::Absent => NodeView::Absent,
        Read::One(node) => NodeView::Found(Box::new(node)),
        Read::Many(several) => NodeView::Several(several.into_iter().map(|node| node.name).collect()),
    }
}

/// Ready, and under no pressure.
pub fn is_healthy(node: &NodeFacts) -> bool {
    complaints(node).is_empty()
}

/// Whether the kubelet has not been heard of for long.
pub(super) fn is_silent(node: &NodeFacts) -> bool {
    node.conditions.get("Ready").is_some_and(|(status, ..)| status == "Unknown")
}

/// What is not as it should be, in the Node's words.
pub(super) fn complaints(node: &NodeFacts) -> Vec<String> {
    let mut complaints = Vec::new();
    match node.conditions.get("Ready") {
        Some((status, ..)) if status == "True" => {}
        Some((_, reason, message)) => complaints.push(format!("Node.Ready: {}", words(reason, message))),
        None => complaints.push("Node.Ready: not yet reported".to_owned()),
    }
    for type_ in ["MemoryPressure", "DiskPressure", "PIDPressure"] {
        if let Some((status, reason, message)) = node.conditions.get(type_)
            && status != "False"
        {
            complaints.push(format!("Node.{type_}: {}", words(reason, message)));
        }
    }
    complaints
}

fn words<'text>(reason: &'text str, message: &'text str) -> &'text str {
    if message.is_empty() { reason } else { message }
}

/// Whether pods are still kept away until the Machine's labels are there.
pub(super) fn is_uninitialized(node: &NodeFacts) -> bool {
    node.taints.iter().any(|taint| taint.key == names::UNINITIALIZED_TAINT)
}

/// What changes on a Node. Values of none remove.
#[derive(Clone, Debug, PartialEq)]
pub struct NodePatch {
    /// The version that this was decided from.
    pub resource_version: String,
    pub labels: BTreeMap<String, Option<String>>,
    pub annotations: BTreeMap<String, Option<String>>,
    /// All taints, where they change.
    pub taints: Option<Vec<Taint>>,
}

impl NodePatch {
    /// The Node as it is after this.
    pub(super) fn apply(&self, node: &mut NodeFacts) {
        for (change, map) in [(&self.labels, &mut node.labels), (&self.annotations, &mut node.annotations)] {
            for (name, value) in change {
                match value {
                    Some(value) => map.insert(name.clone(), value.clone()),
                    None => map.remove(name),
                };
            }
        }
        if let Some(taints) = &self.taints {
            node.taints.clone_from(taints);
        }
    }
}

/// Whether a label goes from Machines to Nodes.
pub fn is_for_nodes(label: &str) -> bool {
    let Some((domain, _)) = label.split_once('/') else { return false };
    let is_in = |base: &str| domain == base || domain.ends_with(&format!(".{base}"));
    domain == names::NODE_ROLE_PREFIX || is_in(names::NODE_RESTRICTION_DOMAIN) || is_in(names::NODE_PREFIX)
}

/// The difference between a Node and what its Machine wants of it; none if there is none.
pub(super) fn patch(node: &NodeFacts, machine: &Machine) -> Option<NodePatch> {
    let metadata = &machine.metadata;
    let wanted: BTreeMap<&String, &String> =
        metadata.labels.iter().flatten().filter(|(name, _)| is_for_nodes(name)).collect();
    let before: BTreeSet<&str> = node
        .annotations
        .get(names::NODE_LABELS_ANNOTATION)
        .map(|list| list.split(',').filter(|name| !name.is_empty()).collect())
        .unwrap_or_default();
    let mut labels: BTreeMap<String, Option<String>> = BTreeMap::new();
    for (name, value) in &wanted {
        if node.labels.get(*name) != Some(*value) {
            labels.insert((*name).clone(), Some((*value).clone()));
        }
    }
    for name in before {
        if !wanted.contains_key(&name.to_owned()) && node.labels.contains_key(name) {
            labels.insert(name.to_owned(), None);
        }
    }
    let list: Vec<&str> = wanted.keys().map(|name| name.as_str()).collect();
    let owner = referred::controller(metadata);
    let texts = [
        (names::NODE_CLUSTER_NAME_ANNOTATION, Some(machine.spec.cluster_name.clone())),
        (names::NODE_CLUSTER_NAMESPACE_ANNOTATION, metadata.namespace.clone()),
        (names::NODE_MACHINE_ANNOTATION, metadata.name.clone()),
        (names::NODE_OWNER_KIND_ANNOTATION, owner.map(|owner| owner.kind.clone())),
        (names::NODE_OWNER_NAME_ANNOTATION, owner.map(|owner| owner.name.clone())),
        (names::NODE_LABELS_ANNOTATION, Some(list.join(","))),
    ];
    let annotations: BTreeMap<String, Option<String>> = texts
        .into_iter()
        .filter(|(name, value)| value.is_some() && node.annotations.get(*name) != value.as_ref())
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    let kept: Vec<Taint> =
        node.taints.iter().filter(|taint| taint.key != names::UNINITIALIZED_TAINT).cloned().collect();
    // Where there may be more than are kept, writing these would take the rest away.
    let is_complete = node.taints.len() < TAINTS;
    let taints = (is_complete && kept.len() != node.taints.len()).then_some(kept);
    let is_same = labels.is_empty() && annotations.is_empty() && taints.is_none();
    (!is_same).then(|| NodePatch {
        resource_version: node.resource_version.clone(),
        labels,
        annotations,
        taints,
    })
}
