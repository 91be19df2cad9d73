//! Describes one cluster as a tree: what is ready, what is not, what is waited for, since when, and who must act.
//!
//! Everything is read from conditions, because controllers report there. So objects of other providers are included if
//! they have conditions. A parent repeats the conditions of its children; therefore a wait is shown once, at the lowest
//! object that has it.

mod objects;
mod render;
mod wait;

use jiff::Timestamp;
use serde::Serialize;

pub use objects::Objects;
pub use render::render;
pub use wait::Waited;

/// How an object is, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// All is as it should be.
    Ready,
    NotReady,
    /// It has said nothing yet.
    Unknown,
    /// It is on its way out.
    Deleting,
    /// It is referred to and does not exist.
    Missing,
}

impl Verdict {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::NotReady => "not ready",
            Self::Unknown => "unknown",
            Self::Deleting => "deleting",
            Self::Missing => "missing",
        }
    }
}

/// An object in the tree, with what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// What it is to its parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<&'static str>,
    pub kind: String,
    pub name: String,
    pub verdict: Verdict,
    /// A few words more: versions, counts, addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<String>,
    /// Since when it is so, where it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Waited>,
    /// What belongs to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Node>,
}

impl Node {
    /// Every wait in the tree, with the object that has it, from the top.
    pub fn all_waits(&self) -> Vec<(&Self, &Waited)> {
        let own = self.waits.iter().map(|wait| (self, wait));
        own.chain(self.children.iter().flat_map(Self::all_waits)).collect()
    }

    /// True when nothing in the tree is missing.
    pub fn is_ready(&self) -> bool {
        self.verdict == Verdict::Ready && self.children.iter().all(Self::is_ready)
    }
}

/// The tree of a cluster.
pub fn tree(objects: &Objects) -> Node {
    let cluster = &objects.cluster;
    let is_deleted = cluster.pointer("/metadata/deletionTimestamp").is_some();
    let mut children = Vec::new();
    for (role, path) in
        [("control plane", "/spec/controlPlaneRef"), ("infrastructure", "/spec/infrastructureRef")]
    {
        let found = objects.referred(cluster, path);
        // What a deletion has removed already is not missed.
        let found = found.filter(|found| !(is_deleted && found.is_missing()));
        children.extend(found.map(|found| leaf(role, found)));
    }
    for deployment in objects.children("MachineDeployment", cluster) {
        let sets = objects.children("MachineSet", deployment).map(|set| machines(objects, set, None));
        children.push(object(Some("workers"), deployment, sets.collect()));
    }
    for set in objects.children("MachineSet", cluster) {
        children.push(machines(objects, set, Some("workers")));
    }
    for machine in objects.children("Machine", cluster) {
        children.push(machine_node(objects, machine));
    }
    object(None, cluster, children)
}

fn machines(objects: &Objects, set: &serde_json::Value, role: Option<&'static str>) -> Node {
    let children = objects.children("Machine", set).map(|machine| machine_node(objects, machine));
    object(role, set, children.collect())
}

fn machine_node(objects: &Objects, machine: &serde_json::Value) -> Node {
    let parts = [("bootstrap", "/spec/bootstrap/configRef"), ("infrastructure", "/spec/infrastructureRef")];
    let children = parts
        .into_iter()
        .filter_map(|(role, path)| objects.referred(machine, path).map(|found| leaf(role, found)));
    object(None, machine, children.collect())
}

fn leaf(role: &'static str, found: objects::Found<'_>) -> Node {
    match found {
        objects::Found::Object(value) => object(Some(role), value, Vec::new()),
        objects::Found::Missing { kind, name } => Node {
            role: Some(role),
            kind: kind.to_owned(),
            name: name.to_owned(),
            verdict: Verdict::Missing,
            facts: Vec::new(),
            since: None,
            waits: vec![Waited::missing(kind, name)],
            children: Vec::new(),
        },
    }
}

fn object(role: Option<&'static str>, value: &serde_json::Value, children: Vec<Node>) -> Node {
    let (verdict, since) = wait::verdict(value);
    let has_waiting_children = children.iter().any(|child| !child.all_waits().is_empty());
    Node {
        role,
        kind: objects::text(value, "/kind").to_owned(),
        name: objects::text(value, "/metadata/name").to_owned(),
        verdict,
        facts: objects::facts(value),
        since,
        waits: wait::waits(value, verdict, has_waiting_children),
        children,
    }
}

#[cfg(test)]
mod tests;
