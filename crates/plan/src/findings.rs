//! Findings that the controllers of the core kinds make alike: about a pause, an object behind a reference, the same
//! condition of several objects, and conditions in the older contract's shape.

use hangar_api::cluster::condition_gate::{ConditionGate, ConditionPolarity};
use hangar_api::cluster::legacy_condition::LegacyCondition;
use hangar_api::conditions::{
    self, Actor, Finding, HasConditions, Part, Polarity, Severity, Source, Waiting, aggregate, mirror,
};
use hangar_api::reference::ContractVersionedObjectReference;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Resource;
use kube::core::object::HasStatus;

use crate::flow::Read;
use crate::referred::Referred;

pub(crate) const PAUSED: &str = "Paused";

/// Nothing is done until somebody ends the pause.
pub(crate) fn paused(until: &str) -> Finding {
    Finding::raised(PAUSED, PAUSED, &Waiting::new(Actor::ClusterOwner, until))
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
pub(crate) fn unread(
    type_: &str,
    reference: &ContractVersionedObjectReference,
    read: &Read<Referred>,
    absence: Absence,
    owner: impl FnOnce(&Referred) -> Option<String>,
) -> Option<Finding> {
    let what = format!("{} {}", reference.kind, reference.name);
    let (reason, waiting) = match (read, absence) {
        (Read::Unknown(unknown), _) => {
            let waiting = Waiting::new(Actor::Operator, format!("a look at {what}"));
            return Some(Finding::unknown(type_, "NotReadable", &waiting.because(unknown.why.clone())));
        }
        (Read::Absent, Absence::Deleting(on)) => ("Deleted", Waiting::new(Actor::Hangar, on)),
        (Read::Absent, Absence::Lost(repair)) => {
            let waiting = Waiting::new(Actor::ClusterOwner, repair);
            ("Deleted", waiting.because(format!("{what} was deleted")))
        }
        (Read::Absent, Absence::NotCreated(actor)) => {
            ("DoesNotExist", Waiting::new(actor, format!("{what} to be created")))
        }
        (Read::One(object), _) => {
            let owner = owner(object)?;
            let waiting = Waiting::new(Actor::ClusterOwner, format!("another {}", reference.kind));
            ("OwnedByAnother", waiting.because(format!("{what} belongs to {owner}")))
        }
        (Read::Many(_), _) => return None,
    };
    Some(Finding::fails(type_, reason, &waiting))
}

/// The condition of an object of this kind, or one made from a flag where it has none.
pub(crate) fn mirrored(
    type_: &str,
    reference: Option<&ContractVersionedObjectReference>,
    (source, flag): (Option<&Condition>, bool),
    on: &str,
) -> Finding {
    let kind = reference.map(|reference| reference.kind.as_str()).unwrap_or_default();
    let waiting = Waiting::new(Actor::Controller(format!("the controller of {kind}")), on);
    match (source, flag) {
        (Some(source), _) => mirror(Some(source), type_, &waiting),
        (None, true) => Finding::holds(type_, "Ready"),
        (None, false) => Finding::fails(type_, "NotReady", &waiting),
    }
}

/// The finding while objects of this kind cannot be listed.
pub(crate) fn unlisted<T>(type_: &str, kinds: &str, read: &Read<T>) -> Option<Finding> {
    let Read::Unknown(unknown) = read else { return None };
    let waiting = Waiting::new(Actor::Operator, format!("a list of the {kinds}"));
    Some(Finding::unknown(type_, "NotReadable", &waiting.because(unknown.why.clone())))
}

/// The same condition of several objects, as one.
pub(crate) fn merged<K>(type_: &str, objects: &[&K], source: &str) -> Finding
where
    K: Resource<DynamicType = ()> + HasStatus<Status: HasConditions>,
{
    let kind = K::kind(&());
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

/// Conditions that people want to be part of a summary.
pub(crate) fn gates(gates: Option<&Vec<ConditionGate>>) -> impl Iterator<Item = Part<'_>> {
    gates.into_iter().flatten().map(|gate| match gate.polarity {
        Some(ConditionPolarity::Negative) => Part::negative(&gate.condition_type),
        _ => Part::positive(&gate.condition_type),
    })
}

/// Writes conditions in the older contract's shape, under the names it has for them.
pub(crate) fn older<S: HasConditions>(
    status: &mut S,
    names: &[(&str, &str)],
    now: Timestamp,
    list: fn(&mut S) -> &mut Vec<LegacyCondition>,
) {
    for (from, to) in names {
        let Some(condition) = conditions::get(status, from) else { continue };
        let finding = mirror(Some(condition), to, &Waiting::new(Actor::Hangar, "its report"));
        conditions::set_severity(list(status), finding, Severity::Info, now);
    }
}
