//! The output of `hangar plan`: for each object its steps, what it would write, and what it waits for.
//!
//! The preview itself runs the controllers over a cluster whose writes stay in memory (`hangar_operator::preview`).
//! This module decides which writes are shown, how, and what of a Secret may be shown.

mod difference;
mod matters;
mod render;
pub mod schema;
mod secret;

use hangar_api::conditions::Waiting;
use serde::Serialize;
use serde_json::Value;

pub use difference::{Difference, between};
pub use render::{render, to_yaml};
pub use secret::shown;

use crate::flow::Decision;

/// Everything that was planned.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Preview {
    /// What people should know of the objects that they gave.
    pub warnings: Vec<String>,
    /// Objects with a plan that have something to tell.
    pub plans: Vec<Planned>,
    /// What people's own objects change in the cluster; empty offline.
    pub given: Vec<Change>,
}

/// The plan of one object.
#[derive(Clone, Debug, Serialize)]
pub struct Planned {
    pub kind: String,
    pub namespace: String,
    pub name: String,
    /// Calls in their order, in words.
    pub steps: Vec<String>,
    pub changes: Vec<Change>,
    pub decisions: Vec<Decision>,
    pub waits: Vec<Waiting>,
}

/// One object that would be made, changed or deleted.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    pub kind: String,
    pub namespace: String,
    pub name: String,
    pub action: Action,
    /// What matters of it, in one line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub summary: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Difference>,
    /// Whether its pods start again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub restarts: bool,
    /// The object as it would be; keys are never in it.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub object: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    Create,
    Change,
    Delete,
}

/// Kinds whose pods follow their template.
const WORKLOADS: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

/// An object before and after one write.
#[derive(Clone, Debug, PartialEq)]
pub struct Sides {
    pub before: Option<Value>,
    pub after: Option<Value>,
}

impl Change {
    /// What writes to one object mean; none where only a status, or what the API server keeps, is different. `latest` is
    /// the object after the writes of everybody.
    pub fn of(writes: &[Sides], latest: Option<&Value>) -> Option<Self> {
        let (first, last) = (writes.first()?, writes.last()?);
        let present = last.after.as_ref().or(first.before.as_ref())?;
        let text = |pointer: &str| present.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let is_leaving = |object: &Value| object.pointer("/metadata/deletionTimestamp").is_some();
        let differences = secret::told(text("/kind"), difference::over(writes));
        let action = match (&first.before, &last.after) {
            (None, None) => return None,
            (Some(_), None) => Action::Delete,
            (Some(before), Some(after)) if is_leaving(after) && !is_leaving(before) => Action::Delete,
            (Some(_), Some(_)) if differences.is_empty() => return None,
            (Some(_), Some(_)) => Action::Change,
            (None, Some(_)) => Action::Create,
        };
        let is_of_pods = |difference: &Difference| difference.path.starts_with("spec.template");
        let latest = latest.map(shown);
        Some(Self {
            kind: text("/kind").to_owned(),
            namespace: text("/metadata/namespace").to_owned(),
            name: text("/metadata/name").to_owned(),
            action,
            summary: latest.as_ref().map(matters::of).unwrap_or_default(),
            restarts: action == Action::Change
                && WORKLOADS.contains(&text("/kind"))
                && differences.iter().any(is_of_pods),
            differences: if action == Action::Change { differences } else { Vec::new() },
            object: latest.map(presentable).unwrap_or_default(),
        })
    }
}

/// The object without what the API server would add.
fn presentable(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in ["managedFields", "resourceVersion", "generation", "creationTimestamp", "uid"] {
            metadata.remove(field);
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.retain(|name, _| !difference::NOTES.iter().any(|note| name.starts_with(note)));
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
    }
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    object
}
