//! The inventory: which objects in a cluster that we do not watch are ours, and in which state they are.
//!
//! Each of our objects carries an annotation of its applier with the hash of what was desired. It shows that the object
//! is ours, and whether what was applied is still desired. An object that is no longer desired is found in the
//! [`Inventory`], too.

use std::collections::BTreeMap;

use kube::core::DynamicObject;
use serde_json::json;

use crate::hash;

/// Which object is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectIdentity {
    /// API version with group.
    pub api_version: String,
    pub kind: String,
    /// Namespace; empty for objects of the whole cluster.
    pub namespace: String,
    pub name: String,
}

impl ObjectIdentity {
    /// The identity of an object.
    pub fn of(object: &DynamicObject) -> Self {
        let types = object.types.clone().unwrap_or_default();
        Self {
            api_version: types.api_version,
            kind: types.kind,
            namespace: object.metadata.namespace.clone().unwrap_or_default(),
            name: object.metadata.name.clone().unwrap_or_default(),
        }
    }
}

impl std::fmt::Display for ObjectIdentity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.namespace.is_empty() {
            write!(formatter, "{} {}", self.kind, self.name)
        } else {
            write!(formatter, "{} {}/{}", self.kind, self.namespace, self.name)
        }
    }
}

/// What is there of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// It was looked for and does not exist.
    Absent,
    /// We made it.
    Ours {
        uid: String,
        /// The applier's annotation: the hash of what was applied last.
        applied: Option<String>,
        /// Whether somebody changed what we had set since: it differs from the object that was desired.
        is_drifted: bool,
    },
    /// Somebody else made it.
    Foreign,
}

/// The object with the hash of itself under an applier's annotation.
#[must_use]
pub fn marked(mut object: DynamicObject, annotation: &str) -> DynamicObject {
    let types = object.types.clone().unwrap_or_default();
    let metadata = &object.metadata;
    let hash = hash::value(&json!([
        types.api_version,
        types.kind,
        metadata.namespace,
        metadata.name,
        metadata.labels,
        object.data
    ]));
    object.metadata.annotations.get_or_insert_default().insert(annotation.to_owned(), hash);
    object
}

/// What one applier has put into a cluster: its objects, each with the hash of what was applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory(pub BTreeMap<ObjectIdentity, String>);

impl Inventory {
    /// The inventory of these objects, which are marked with the applier's annotation.
    pub fn of<'a>(objects: impl IntoIterator<Item = &'a DynamicObject>, annotation: &str) -> Self {
        let hash = |object: &DynamicObject| object.metadata.annotations.as_ref()?.get(annotation).cloned();
        let entries = objects.into_iter();
        Self(entries.map(|object| (ObjectIdentity::of(object), hash(object).unwrap_or_default())).collect())
    }

    /// What is in here and no longer desired.
    pub fn leftovers(&self, desired: &Self) -> Vec<ObjectIdentity> {
        self.0.keys().filter(|identity| !desired.0.contains_key(identity)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use kube::core::{ObjectMeta, TypeMeta};

    use super::*;

    const ANNOTATION: &str = "example.com/desired";

    fn object(name: &str, value: &str) -> DynamicObject {
        let types = TypeMeta { api_version: "v1".to_owned(), kind: "ConfigMap".to_owned() };
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let data = json!({"data": value});
        marked(DynamicObject { types: Some(types), metadata, data }, ANNOTATION)
    }

    #[test]
    fn an_inventory_knows_what_changed_and_what_is_no_longer_wanted() {
        let before = Inventory::of(&[object("a", "1"), object("b", "1"), object("c", "1")], ANNOTATION);
        let after = Inventory::of(&[object("a", "1"), object("b", "2")], ANNOTATION);
        let left: Vec<String> = before.leftovers(&after).iter().map(ToString::to_string).collect();
        assert_eq!(left, ["ConfigMap c"]);
        let changed = |name: &str| {
            let identity = ObjectIdentity::of(&object(name, ""));
            before.0[&identity] != after.0[&identity]
        };
        assert!(!changed("a") && changed("b"));
    }
}
