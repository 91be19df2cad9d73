//! Writes to the management cluster, as data: the runtime makes the call, and planners fold its outcome.
//!
//! Every write is tied to what was seen: a change carries the uid of its object, and the runtime adds the version it
//! knows. If the object changed in between, the outcome is [`Outcome::Stale`](super::Outcome::Stale), and nothing is
//! overwritten.

use hangar_api::reference::ContractVersionedObjectReference;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Resource;
use kube::core::DynamicObject;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Read, StepId};
use crate::machine_set::Template;
use crate::referred::{Claim, Referred};

/// One write to the management cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// What it is called.
    pub id: StepId,
    pub action: Action,
}

/// What a write does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Merges fields into the object that the plan is about.
    Itself(Value),
    /// Merges fields into another object of the same namespace.
    Change { target: Target, fields: Value },
    /// Makes an object that was not there. One that the same owner manages counts as made.
    Create {
        object: Box<DynamicObject>,
        /// Whether the controller keeps it as desired from now on: it is then applied with its field manager.
        is_kept: bool,
    },
    /// Ends exactly the pod that was seen, if its disruption budget allows it.
    Evict { target: Target },
    /// Deletes exactly the object that was seen.
    Delete {
        target: Target,
        /// Whether it stays until what it owns is gone.
        is_foreground: bool,
    },
}

/// An object of the management cluster that was seen, in the namespace of the object that the plan is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its API group, empty for the core group.
    pub group: String,
    pub kind: String,
    pub name: String,
    /// The one that was seen.
    pub uid: String,
}

impl Target {
    /// An object of a kind that is known here.
    pub fn of<K: Resource<DynamicType = ()>>(metadata: &ObjectMeta) -> Self {
        Self {
            group: K::group(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
        }
    }

    /// The object behind a reference.
    pub fn referred(reference: &ContractVersionedObjectReference, uid: impl Into<String>) -> Self {
        Self {
            group: reference.api_group.clone(),
            kind: reference.kind.clone(),
            name: reference.name.clone(),
            uid: uid.into(),
        }
    }
}

impl Write {
    /// Merges fields into the object that the plan is about.
    pub fn itself(id: StepId, fields: Value) -> Self {
        Self { id, action: Action::Itself(fields) }
    }

    /// Puts a finalizer on the object that the plan is about. `name` is what the object is called in step names.
    pub fn add_finalizer(metadata: &ObjectMeta, finalizer: &str, name: &str) -> Self {
        let mut finalizers = metadata.finalizers.clone().unwrap_or_default();
        finalizers.push(finalizer.to_owned());
        let fields = json!({ "metadata": { "finalizers": finalizers } });
        Self::itself(StepId::new("add", "finalizer", name), fields)
    }

    /// Lets the object that the plan is about go.
    pub fn remove_finalizer(metadata: &ObjectMeta, finalizer: &str, name: &str) -> Self {
        let mut finalizers = metadata.finalizers.clone().unwrap_or_default();
        finalizers.retain(|present| present != finalizer);
        let fields = json!({ "metadata": { "finalizers": finalizers } });
        Self::itself(StepId::new("remove", "finalizer", name), fields)
    }

    /// Owner references and labels onto another object.
    pub fn claim(id: StepId, target: Target, claim: &Claim) -> Self {
        Self { id, action: Action::Change { target, fields: claim.fields() } }
    }

    /// Deletes an object; what it owns goes after it.
    pub fn delete(id: StepId, target: Target) -> Self {
        Self { id, action: Action::Delete { target, is_foreground: false } }
    }

    /// Makes an object; see [`Action::Create`].
    pub fn create(id: StepId, object: &impl Serialize, is_kept: bool) -> Self {
        let object = Box::new(dynamic(object));
        Self { id, action: Action::Create { object, is_kept } }
    }

    /// What this write made of the object that the plan is about.
    pub fn on_itself<T: Seen>(&self, object: &mut T) {
        if let Action::Itself(fields) = &self.action {
            object.merge(fields);
        }
    }

    /// What this write made of objects that were read. Those with finalizers stay until their controllers let them go.
    pub fn on<T: Seen>(&self, seen: &mut Read<T>, now: Timestamp) {
        let is = |item: &T, target: &Target| item.metadata().uid.as_ref() == Some(&target.uid);
        match &self.action {
            Action::Change { target, fields } => {
                for item in seen.iter_mut().filter(|item| is(item, target)) {
                    item.merge(fields);
                }
            }
            Action::Delete { target, is_foreground } => {
                let stays =
                    |item: &T| *is_foreground || item.metadata().finalizers.iter().flatten().count() > 0;
                let all = std::mem::replace(seen, Read::Absent);
                *seen = all.filter(|item| !is(item, target) || stays(item));
                for item in seen.iter_mut().filter(|item| is(item, target)) {
                    item.metadata_mut().deletion_timestamp.get_or_insert(Time(now));
                }
            }
            Action::Itself(_) | Action::Create { .. } | Action::Evict { .. } => {}
        }
    }
}

impl Claim {
    /// As fields to merge.
    pub fn fields(&self) -> Value {
        json!({ "metadata": { "ownerReferences": self.owner_references, "labels": self.labels } })
    }
}

/// An object in an observation.
pub trait Seen {
    fn metadata(&self) -> &ObjectMeta;
    /// The same, to be changed.
    fn metadata_mut(&mut self) -> &mut ObjectMeta;
    /// Merges fields into it, as the API server does.
    fn merge(&mut self, fields: &Value);
}

impl<K: Resource + Serialize + DeserializeOwned> Seen for K {
    fn metadata(&self) -> &ObjectMeta {
        self.meta()
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        self.meta_mut()
    }

    fn merge(&mut self, fields: &Value) {
        merge(self, fields);
    }
}

impl Seen for Referred {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }

    /// Only its metadata is ever written.
    fn merge(&mut self, fields: &Value) {
        merge(&mut self.metadata, fields.get("metadata").unwrap_or(&Value::Null));
    }
}

impl Seen for Template {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }

    /// Only its metadata is ever written.
    fn merge(&mut self, fields: &Value) {
        merge(&mut self.metadata, fields.get("metadata").unwrap_or(&Value::Null));
    }
}

/// Merges fields into something. What is then no longer of its type stays as it was.
fn merge<T: Serialize + DeserializeOwned>(into: &mut T, fields: &Value) {
    let Ok(mut value) = serde_json::to_value(&*into) else { return };
    json_patch::merge(&mut value, fields);
    if let Ok(merged) = serde_json::from_value(value) {
        *into = merged;
    }
}

/// An object of a known kind as one of any kind.
pub fn dynamic(object: &impl Serialize) -> DynamicObject {
    let parsed = serde_json::to_value(object).and_then(serde_json::from_value);
    // Proved by the types: whatever is a Kubernetes object has this shape.
    parsed.unwrap_or_else(|_| DynamicObject {
        types: None,
        metadata: ObjectMeta::default(),
        data: Value::Null,
    })
}
