//! Findings that several controllers share: about a pause, an object that cannot be read, a read that failed, an object
//! behind a reference, and the same condition of several objects.

use hangar_api::cluster::condition_gate::{ConditionGate, ConditionPolarity};
use hangar_api::conditions::{
    self, Actor, Bad, Finding, HasConditions, Polarity, Source, Term, Waiting, aggregate, mirror,
};
use hangar_api::reference::ContractVersionedObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Resource;
use kube::core::object::HasStatus;

use super::conditions;
use crate::flow::{Read, Target, Unknown};
use crate::referred::Referred;

/// Names that are listed in a message; the rest is counted.
const SHOWN: usize = 3;

conditions! {
    /// Whether reconciliation is paused.
    paused = "Paused", Negative, Own {
        good NOT_PAUSED = "NotPaused": "The object is reconciled.";
        bad PAUSED = "Paused" [OWNER]: "The Cluster or the object is paused: nothing is changed or deleted.";
    }

    /// Whether Hangar can read the object. Exists only if it cannot.
    readable = "Readable", Positive, Own {
        bad FIELD_NOT_READABLE = "FieldNotReadable" [OWNER]: "A field has a value that Hangar cannot read, such as a number of more than 32 bits, or a reference names another namespace; the message names it. Until it is corrected, Hangar does nothing with the object, and does not release it either.";
    }
}

/// Reasons of any condition that rests on a read.
pub(crate) mod reads {
    super::super::reasons! {
        "", Positive;
        unknown NOT_READABLE = "NotReadable" [OPERATOR, HANGAR]:
            "An object, a list or a CRD could not be read; the message says why. Until it can be read, nothing is created or deleted.";
    }
}

/// Reasons of conditions about the object behind a reference.
pub(crate) mod references {
    super::super::reasons! {
        "", Positive;
        good READY = "Ready": "The object reports that it is ready.";
        bad NOT_READY = "NotReady" [ITS_CONTROLLER]: "The object is not ready and does not report why.";
        bad DOES_NOT_EXIST = "DoesNotExist" [OWNER, HANGAR]: "The referenced object does not exist.";
        bad DELETED = "Deleted" [OWNER, HANGAR]: "The referenced object existed and was deleted.";
        bad OWNED_BY_ANOTHER = "OwnedByAnother" [OWNER]:
            "Another owner, such as another Cluster or Machine, has the object; it is neither used nor deleted.";
    }
}

/// Something could not be read.
pub(crate) fn unread(type_: &'static str, what: &str, unknown: &Unknown) -> Finding {
    reads::NOT_READABLE.about(type_).waiting(unreadable(what, unknown))
}

/// The finding while objects of this kind cannot be listed.
pub(crate) fn unlisted<T>(type_: &'static str, kind: &str, read: &Read<T>) -> Option<Finding> {
    let Read::Unknown(unknown) = read else { return None };
    Some(unread(type_, &format!("the {kind}s"), unknown))
}

/// What is waited for while something in the management cluster cannot be read: a CRD, rights, or its API server.
pub(crate) fn unreadable(what: &str, unknown: &Unknown) -> Waiting {
    Waiting::new(Actor::Operator, format!("{what} to be readable")).because(&unknown.why)
}

/// Why an object behind a reference may be absent.
pub(crate) enum Absence {
    /// Its owner is being deleted; this is waited for.
    Deleting(&'static str),
    /// It existed before; this repairs it.
    Lost(&'static str),
    /// It was not created yet; this one creates it.
    NotCreated(Actor),
}

/// The finding while the object behind a reference cannot be read, does not exist, or belongs to another owner.
pub(crate) fn absent(
    type_: &'static str,
    reference: &ContractVersionedObjectReference,
    read: &Read<Referred>,
    absence: Absence,
    owner: impl FnOnce(&Referred) -> Option<String>,
) -> Option<Finding> {
    let what = format!("{} {}", reference.kind, reference.name);
    let finding = match (read, absence) {
        (Read::Unknown(unknown), _) => unread("", &what, unknown),
        (Read::Absent, Absence::Deleting(on)) => references::DELETED.by(Actor::Hangar, on),
        (Read::Absent, Absence::Lost(repair)) => {
            references::DELETED.waits(repair).because(format!("{what} was deleted"))
        }
        (Read::Absent, Absence::NotCreated(actor)) => {
            references::DOES_NOT_EXIST.by(actor, format!("{what} to be created"))
        }
        (Read::One(object), _) => {
            let why = format!("{what} belongs to {}", owner(object)?);
            references::OWNED_BY_ANOTHER.waits(format!("another {}", reference.kind)).because(why)
        }
        (Read::Many(_), _) => return None,
    };
    Some(finding.about(type_))
}

/// The finding until the object behind a reference is gone, and what to delete for it now; nothing when it is gone, or
/// was never ours.
pub(crate) fn leaving(
    (reason, unknown_reason): (Bad, Bad),
    reference: &ContractVersionedObjectReference,
    read: &Read<Referred>,
    is_anothers: impl Fn(&Referred) -> bool,
) -> Option<(Finding, Option<Target>)> {
    let what = format!("{} {}", reference.kind, reference.name);
    match read {
        Read::Absent | Read::Many(_) => None,
        Read::Unknown(unknown) => Some((unknown_reason.waiting(unreadable(&what, unknown)), None)),
        Read::One(object) if is_anothers(object) => None,
        Read::One(object) => {
            let finalizers = object.metadata.finalizers.as_deref().unwrap_or_default();
            let is_held = object.is_terminating() && !finalizers.is_empty();
            let held = || format!("{what} has the finalizers {}", finalizers.join(", "));
            let finding = reason.by(Actor::controller_of(&reference.kind), format!("{what} to be gone"));
            let target = || Target::referred(reference, object.uid());
            Some((finding.because_of(is_held.then(held)), (!object.is_terminating()).then(target)))
        }
    }
}

/// The condition of an object of this kind, or one made from a flag where it has none.
pub(crate) fn mirrored(
    type_: &'static str,
    reference: Option<&ContractVersionedObjectReference>,
    (source, flag): (Option<&Condition>, bool),
    on: &str,
) -> Finding {
    let kind = reference.map(|reference| reference.kind.as_str()).unwrap_or_default();
    let not_ready = references::NOT_READY.about(type_).by(Actor::controller_of(kind), on);
    match (source, flag) {
        (None, true) => references::READY.about(type_).into(),
        (source, _) => mirror(type_, source, not_ready),
    }
}

/// The same condition of several objects, as one; unless they could not be listed, or there are none.
pub(crate) fn merged<K, T>(
    type_: &'static str,
    read: &Read<T>,
    objects: &[&K],
    source: &str,
    none: impl Into<Finding>,
) -> Finding
where
    K: Resource<DynamicType = ()> + HasStatus<Status: HasConditions>,
{
    let kind = K::kind(&());
    if let Some(finding) = unlisted(type_, &kind, read) {
        return finding;
    }
    if objects.is_empty() {
        return none.into();
    }
    let sources: Vec<Source<'_>> = objects
        .iter()
        .map(|object| Source {
            kind: &kind,
            name: object.meta().name.as_deref().unwrap_or_default(),
            condition: object.status().and_then(|status| conditions::get(status, source)),
        })
        .collect();
    aggregate(type_, Polarity::Positive, &sources)
}

/// The first of these by name, and how many more there are.
pub(crate) fn listed(mut names: Vec<String>) -> String {
    let hidden = names.len().saturating_sub(SHOWN);
    names.truncate(SHOWN);
    let more = if hidden > 0 { format!(" and {hidden} more") } else { String::new() };
    names.join(", ") + &more
}

/// Conditions that people want to be part of a summary.
pub(crate) fn gates(gates: Option<&Vec<ConditionGate>>) -> impl Iterator<Item = Term<'_>> {
    gates.into_iter().flatten().map(|gate| match gate.polarity {
        Some(ConditionPolarity::Negative) => Term::negative(&gate.condition_type),
        _ => Term::positive(&gate.condition_type),
    })
}
