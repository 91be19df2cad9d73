//! Compares an object before and after, field by field, for people to read.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::Sides;

/// Metadata that the API server, or only Hangar itself, reads.
const OWN: [&str; 6] = [
    "metadata.managedFields",
    "metadata.resourceVersion",
    "metadata.generation",
    "metadata.creationTimestamp",
    "metadata.uid",
    "metadata.selfLink",
];
/// Annotations in which Hangar notes what it applied last, and what another version of an object cannot say.
pub(super) const NOTES: [&str; 2] =
    ["applied.hangar.cluster.x-k8s.io/", "hangar.cluster.x-k8s.io/conversion-stash"];

/// One field that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// From the object's root; items of lists by their name.
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<Value>,
}

/// All differences, in the order of the fields; the status and what is no decision are left out.
pub fn between(before: &Value, after: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare("", Some(before), Some(after), &mut found);
    found.retain(|difference| {
        let is_own = OWN.iter().any(|own| difference.path.starts_with(own));
        let is_note = NOTES.iter().any(|note| difference.path.contains(note));
        !is_own && !is_note && !difference.path.starts_with("status")
    });
    found
}

/// The differences that several writes made together: of a field the first value and the last.
pub(super) fn over(writes: &[Sides]) -> Vec<Difference> {
    let mut all: Vec<Difference> = Vec::new();
    for write in writes {
        let (Some(before), Some(after)) = (&write.before, &write.after) else { continue };
        for found in between(before, after) {
            match all.iter_mut().find(|present| present.path == found.path && present.new == found.old) {
                Some(present) => present.new = found.new,
                None => all.push(found),
            }
        }
    }
    let is_empty = |value: &Option<Value>| match value {
        None => true,
        Some(Value::Object(fields)) => fields.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    };
    all.retain(|found| found.old != found.new && !(is_empty(&found.old) && is_empty(&found.new)));
    all
}

fn compare(path: &str, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<Difference>) {
    if before == after {
        return;
    }
    let below = |name: &str| match path {
        "" => name.to_owned(),
        path if name.contains(['.', '/']) => format!("{path}[{name}]"),
        path => format!("{path}.{name}"),
    };
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                compare(&below(name), before.get(name), after.get(name), found);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => lists(path, before, after, found),
        (before, after) => {
            found.push(Difference { path: path.to_owned(), old: before.cloned(), new: after.cloned() });
        }
    }
}

/// Items with a name are compared by it; of others, those that came and went are told.
fn lists(path: &str, before: &[Value], after: &[Value], found: &mut Vec<Difference>) {
    if let (Some(old), Some(new)) = (names(before), names(after)) {
        for name in old.iter().chain(new.difference(&old)) {
            let of = |items: &[Value]| items.iter().find(|item| item["name"] == **name).cloned();
            compare(&format!("{path}[{name}]"), of(before).as_ref(), of(after).as_ref(), found);
        }
        return;
    }
    let told = |old: Option<&Value>, new: Option<&Value>| Difference {
        path: path.to_owned(),
        old: old.cloned(),
        new: new.cloned(),
    };
    let gone = before.iter().filter(|item| !after.contains(item));
    let came = after.iter().filter(|item| !before.contains(item));
    let (gone, came): (Vec<_>, Vec<_>) = (gone.collect(), came.collect());
    if gone.is_empty() && came.is_empty() {
        // Only the order differs.
        let list = |items: &[Value]| Value::Array(items.to_vec());
        found.push(told(Some(&list(before)), Some(&list(after))));
    }
    let pairs = gone.len().max(came.len());
    found.extend((0..pairs).map(|index| told(gone.get(index).copied(), came.get(index).copied())));
}

/// The names of the items, if every item has one of its own.
fn names(items: &[Value]) -> Option<BTreeSet<&str>> {
    let names: BTreeSet<&str> =
        items.iter().map(|item| item.get("name").and_then(Value::as_str)).collect::<Option<_>>()?;
    (names.len() == items.len()).then_some(names)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_and_items_are_told_by_name_and_what_nobody_decided_is_not() {
        let before = json!({
            "metadata": { "resourceVersion": "1", "annotations": { "applied.hangar.cluster.x-k8s.io/x": "1" } },
            "spec": { "containers": [{ "name": "a", "args": ["--v=1", "--same"] }, { "name": "b" }], "gone": true },
            "status": { "ready": false },
        });
        let after = json!({
            "metadata": { "resourceVersion": "2", "labels": { "a.b/c": "d" },
                "annotations": { "applied.hangar.cluster.x-k8s.io/x": "2" } },
            "spec": { "containers": [{ "name": "a", "args": ["--v=2", "--same"] }, { "name": "b" }, { "name": "c" }] },
            "status": { "ready": true },
        });
        let found: Vec<(String, bool, bool)> = between(&before, &after)
            .into_iter()
            .map(|difference| (difference.path, difference.old.is_some(), difference.new.is_some()))
            .collect();
        let expected = [
            ("metadata.labels", false, true),
            ("spec.containers[a].args", true, true),
            ("spec.containers[c]", false, true),
            ("spec.gone", true, false),
        ];
        assert_eq!(found, expected.map(|(path, old, new)| (path.to_owned(), old, new)));
    }
}
