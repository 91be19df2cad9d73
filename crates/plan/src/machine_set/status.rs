//! The status of a MachineSet.

use std::fmt::Display;

use hangar_api::cluster::v1beta2::machine_set::MachineSetStatusV1Beta1;
use hangar_api::cluster::v1beta2::{Machine, MachineSetStatus};
use hangar_api::conditions::{Actor, Finding, is_true};
use kube::ResourceExt as _;
use kube::core::Selector;

use super::conditions::{deleting, machines_ready, machines_up_to_date, replicas, scaling_down, scaling_up};
use super::{Draft, NamingError, Observed, is_up_to_date, next_name, obstacle};
use crate::conditions::shared::{listed, merged, unlisted};
use crate::flow::StepId;

pub(super) fn draft(draft: &mut Draft<'_>) {
    let observed = draft.observed;
    let members = observed.members();
    if !observed.machines.is_unknown() {
        counts(&mut draft.status, observed, &members);
    }
    let is_deleting = draft.is_deleting();
    draft.say(deleting(is_deleting, "Machine", members.iter().map(|machine| machine.name_any()).collect()));
    draft.say(scaling_up(observed, &members));
    let going = members.iter().filter(|machine| machine.metadata.deletion_timestamp.is_some());
    let going = going.map(|machine| machine.name_any()).collect();
    let wanted = if is_deleting { 0 } else { observed.set.spec.replicas.unwrap_or(1) };
    let existing = i32::try_from(members.len()).unwrap_or(i32::MAX);
    let unlisted = unlisted(scaling_down::TYPE, "Machine", &observed.machines);
    draft.say(unlisted.unwrap_or_else(|| scaling_down(existing, wanted, going)));
    for (type_, source) in [(machines_ready::TYPE, "Ready"), (machines_up_to_date::TYPE, "UpToDate")] {
        draft.say(merged(type_, &observed.machines, &members, source, replicas::NO_REPLICAS.about(type_)));
    }
}

fn counts(status: &mut MachineSetStatus, observed: &Observed, members: &[&Machine]) {
    let count = |claim: &dyn Fn(&Machine) -> bool| {
        Some(i32::try_from(members.iter().filter(|machine| claim(machine)).count()).unwrap_or(i32::MAX))
    };
    let holds = |machine: &Machine, type_: &str| {
        machine.metadata.deletion_timestamp.is_none()
            && machine.status.as_ref().is_some_and(|status| is_true(status, type_))
    };
    status.replicas = count(&|_| true);
    status.ready_replicas = count(&|machine| holds(machine, "Ready"));
    status.available_replicas = count(&|machine| holds(machine, "Available"));
    status.up_to_date_replicas =
        count(&|machine| is_up_to_date(machine, &observed.set, observed.deployment.as_ref(), observed.now));
    status.selector = Selector::try_from(observed.set.spec.selector.clone())
        .ok()
        .map(|selector| selector.to_string())
        .filter(|text| !text.is_empty());
    let wanted = observed.set.spec.template.metadata.clone().unwrap_or_default().labels.unwrap_or_default();
    let old = MachineSetStatusV1Beta1 {
        ready_replicas: status.ready_replicas,
        available_replicas: status.available_replicas,
        fully_labeled_replicas: count(&|machine| {
            wanted.iter().all(|(name, value)| machine.labels().get(name) == Some(value))
        }),
        ..status.deprecated.clone().and_then(|old| old.v1beta1).unwrap_or_default()
    };
    status.deprecated.get_or_insert_default().v1beta1 = Some(old);
}

/// What is said about the deletion of something that owns others.
pub(crate) fn deleting(is_deleting: bool, kind: &str, left: Vec<String>) -> Finding {
    match (is_deleting, left.is_empty()) {
        (false, _) => deleting::NOT_DELETING.into(),
        (true, true) => deleting::DELETING.waits("the finalizer to be removed"),
        (true, false) => deleting::DELETING.waits(format!("{kind} {} to be gone", listed(left))),
    }
}

fn scaling_up(observed: &Observed, members: &[&Machine]) -> Finding {
    if let Some(finding) = unlisted(scaling_up::TYPE, "Machine", &observed.machines) {
        return finding;
    }
    let wanted = observed.replicas();
    if observed.is_deleting() || members.len() >= wanted {
        return scaling_up::NOT_SCALING_UP.into();
    }
    if let Some(obstacle) = obstacle(observed) {
        return scaling_up::SCALING_UP.waiting(obstacle);
    }
    if let Err(error) = next_name(observed, members) {
        let on = match error {
            NamingError::UnknownValue(_) | NamingError::NotUnique => "a naming template that can be followed",
            NamingError::Record(_) | NamingError::Exhausted => "another MachineSet",
        };
        return scaling_up::SCALING_UP.by(Actor::ClusterOwner, on).because(error.to_string());
    }
    growing(members.len(), wanted, observed.refusals.iter().next())
}

/// What is said while Machines are missing and nothing but a refusal may keep them from being made.
pub(crate) fn growing(
    existing: impl Display,
    wanted: impl Display,
    refused: Option<(&StepId, &String)>,
) -> Finding {
    let missing = scaling_up::SCALING_UP;
    match refused {
        Some((step, why)) => missing.by(Actor::ClusterOwner, format!("{step} to be allowed")).because(why),
        None => missing.waits("the other Machines").because(format!("{existing} of {wanted} Machines exist")),
    }
}

/// What is said about Machines that are too many, of which some are known to be going.
pub(crate) fn scaling_down(existing: i32, wanted: i32, going: Vec<String>) -> Finding {
    if existing <= wanted {
        return scaling_down::NOT_SCALING_DOWN.into();
    }
    let on =
        if going.is_empty() { "surplus Machines".to_owned() } else { format!("Machine {}", listed(going)) };
    scaling_down::SCALING_DOWN
        .waits(format!("{on} to be gone"))
        .because(format!("{existing} Machines exist, {wanted} are wanted"))
}
