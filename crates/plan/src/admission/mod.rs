//! Decides what is changed, refused or warned about when a user writes or deletes an object.
//!
//! Most rules are in the schema and the CEL rules of the CRDs. Here are those that cannot be expressed there: defaults
//! that depend on the object's own name, rules that depend on other objects, on the user or on dry runs, and warnings.
//! The functions get the raw object in the version it was written in, because defaults are set before the schema is
//! checked: a MachineDeployment without a selector is not valid yet.
//!
//! Each rule decides what an unknown [`Lookup`] means. An object that is being deleted is never refused: it must be
//! possible to remove its finalizers, whatever else is wrong with it.
//!
//! The transport is the webhook server in `hangar-kit`; it knows nothing about kinds.

mod cluster;
mod cluster_resource_set;
mod elsewhere;
mod field;
mod hosted_control_plane;
mod machine;
mod machine_collection;
mod nesting;
mod network;
mod openstack_cluster;
mod rules;
mod template;

use serde_json::Value;

use crate::flow::Read;
use crate::limits::Limits;
pub(crate) use elsewhere::refusal as elsewhere_refusal;
pub use field::FieldError;
pub use rules::{RULES, Rules};

/// Who deletes in the name of Kubernetes: `kubectl delete namespace` and owners that are gone. Where controllers have no
/// credentials of their own, all are the last one.
pub const CLEANERS: [&str; 3] = [
    "system:serviceaccount:kube-system:namespace-controller",
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:kube-controller-manager",
];

/// What somebody wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Create,
    /// A change of an object.
    Update,
    /// The end of an object.
    Delete,
    /// Another number of replicas, by the scale subresource: the objects of the request are Scales.
    Scale,
}

/// Somebody wants to write or delete an object.
#[derive(Debug, Clone, Copy)]
pub struct Request<'request> {
    pub operation: Operation,
    pub group: &'request str,
    pub kind: &'request str,
    /// Namespace of the object.
    pub namespace: &'request str,
    /// The object as it would be written; on a delete, as it is.
    pub object: &'request Value,
    /// The object as it is, on an update.
    pub old: Option<&'request Value>,
    /// Whether nothing will be written, whatever the answer.
    pub is_dry_run: bool,
    /// Name of the user.
    pub user: &'request str,
}

impl Request<'_> {
    /// Whether this request brings the value: it is there, and was not the same before.
    fn is_new(&self, pointer: &str) -> bool {
        let value = self.object.pointer(pointer);
        value.is_some_and(is_given) && self.old.and_then(|old| old.pointer(pointer)) != value
    }
}

/// Whether a value says anything.
fn is_given(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    }
}

fn text<'value>(object: &'value Value, pointer: &str) -> &'value str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Whether the object carries an annotation, with any value.
fn has_annotation(object: &Value, name: &str) -> bool {
    object.pointer("/metadata/annotations").is_some_and(|annotations| annotations.get(name).is_some())
}

/// What rules look at besides the request: other objects, in a version of the lookup's choice, and the limits.
pub trait Lookup {
    /// As a store shows it: at once, and a moment old.
    fn seen(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Read<Value>;

    /// As it is now, by a call: for answers that must not come from an old view.
    fn now(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Read<Value>;

    /// The user that the manager itself is, where that is known.
    fn manager(&self) -> Option<String>;

    /// What control planes may ask for beyond their namespace.
    fn limits(&self) -> &Limits;
}

/// Whether an object certainly does not exist.
fn is_missing(lookup: &dyn Lookup, group: &str, kind: &str, namespace: &str, name: &str) -> bool {
    lookup.seen(group, kind, namespace, name).is_absent()
        && lookup.now(group, kind, namespace, name).is_absent()
}

/// Everything there is to say, all at once, so that people fix it in one go.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Why it is refused; none where it is not.
    pub errors: Vec<FieldError>,
    /// What people should know.
    pub warnings: Vec<String>,
}

impl Judgement {
    fn warn(&mut self, text: impl Into<String>) {
        self.warnings.push(text.into());
    }
}

impl From<Vec<FieldError>> for Judgement {
    fn from(errors: Vec<FieldError>) -> Self {
        Self { errors, warnings: Vec::new() }
    }
}

fn rules_of(request: &Request<'_>) -> Option<&'static Rules> {
    let is_leaving = request.object.pointer("/metadata/deletionTimestamp").is_some_and(is_given);
    RULES.iter().find(|rules| !is_leaving && rules.group == request.group && rules.kind == request.kind)
}

/// The object with its defaults. Applying it twice changes nothing more.
pub fn defaulted(request: &Request<'_>) -> Value {
    let mut object = request.object.clone();
    if let Some(default) = rules_of(request).and_then(|rules| rules.default) {
        default(&mut object);
    }
    object
}

/// What the rules of the kind say.
pub fn validate(request: &Request<'_>, lookup: &dyn Lookup) -> Judgement {
    let check = rules_of(request).and_then(|rules| match request.operation {
        Operation::Create | Operation::Update => rules.validate,
        Operation::Delete => rules.delete,
        Operation::Scale => rules.scale,
    });
    let Some(check) = check else { return Judgement::default() };
    if request.operation != Operation::Delete
        && let Some(error) = nesting::error(request.object)
    {
        return vec![error].into();
    }
    let mut judgement = check(request, lookup);
    if request.operation != Operation::Delete {
        judgement.errors.extend(elsewhere::errors(request));
    }
    judgement
}

#[cfg(test)]
mod tests;
