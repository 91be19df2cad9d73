//! The objects of a cluster, and how one leads to the next: by reference or by owner.

use hangar_api::cluster::v1beta2::Cluster;
use hangar_api::reference;
use serde_json::Value;

/// What was read: the Cluster and everything around it, in any order and version.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    pub cluster: Value,
    /// Its control plane, infrastructure, deployments, sets, machines and theirs.
    pub others: Vec<Value>,
}

/// What a reference leads to.
#[derive(Clone, Copy)]
pub(super) enum Found<'objects> {
    Object(&'objects Value),
    Missing { kind: &'objects str, name: &'objects str },
}

impl Found<'_> {
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Missing { .. })
    }
}

impl Objects {
    /// What the reference at `path` leads to, if there is one.
    pub(super) fn referred<'a>(&'a self, from: &'a Value, path: &str) -> Option<Found<'a>> {
        let reference = from.pointer(path)?;
        let (kind, name) = (text(reference, "/kind"), text(reference, "/name"));
        if kind.is_empty() || name.is_empty() {
            return None;
        }
        let found = self
            .others
            .iter()
            .find(|other| text(other, "/kind") == kind && text(other, "/metadata/name") == name);
        Some(found.map_or(Found::Missing { kind, name }, Found::Object))
    }

    /// Objects of a kind that the parent manages, by name.
    pub(super) fn children<'a>(
        &'a self,
        kind: &'a str,
        parent: &'a Value,
    ) -> impl Iterator<Item = &'a Value> {
        let uid = text(parent, "/metadata/uid");
        let mut found: Vec<&Value> = self
            .others
            .iter()
            .filter(|other| text(other, "/kind") == kind && is_managed_by(other, uid))
            .collect();
        found.sort_by_key(|value| text(value, "/metadata/name"));
        found.into_iter()
    }
}

/// The managing owner, or the only one where none manages.
fn is_managed_by(object: &Value, uid: &str) -> bool {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let owners = owners.map(Vec::as_slice).unwrap_or_default();
    let managing = owners.iter().find(|owner| owner["controller"] == true).or_else(|| owners.first());
    !uid.is_empty() && managing.is_some_and(|owner| owner["uid"] == uid)
}

pub(super) fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// What people look for beside the verdict.
pub(super) fn facts(value: &Value) -> Vec<String> {
    let mut facts = Vec::new();
    if let Some(wanted) = value.pointer("/spec/replicas").and_then(Value::as_i64) {
        let ready = value.pointer("/status/readyReplicas").and_then(Value::as_i64).unwrap_or_default();
        facts.push(format!("{ready}/{wanted}"));
    }
    let version = text(value, "/status/version");
    let version = if version.is_empty() { text(value, "/spec/version") } else { version };
    let endpoint =
        (text(value, "/spec/controlPlaneEndpoint/host"), value.pointer("/spec/controlPlaneEndpoint/port"));
    if let (host, Some(port)) = endpoint
        && !host.is_empty()
        && reference::is_kind::<Cluster>(text(value, "/apiVersion"), text(value, "/kind"))
    {
        facts.push(format!("{host}:{port}"));
    }
    for text in [version, text(value, "/status/nodeRef/name"), text(value, "/status/phase")] {
        if !text.is_empty() {
            facts.push(text.to_owned());
        }
    }
    facts
}
