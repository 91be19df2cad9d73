//! Decides which Machines are deleted when there are too many.
//!
//! The order: those that are being deleted already, those that somebody marked, those that do not work; then by age, if
//! the set asks for an order. Among equals those that are not available come first, because a rollout counts on the
//! others; then names decide, so that the same Machines are chosen in every pass.

use hangar_api::cluster::rollout::DeletionOrder;
use hangar_api::cluster::v1beta2::Machine;
use hangar_api::conditions::{get, get::status, is_true};
use hangar_api::names;
use jiff::Timestamp;

const ALREADY_GOING: f64 = 100.0;
const MARKED: f64 = 80.0;
const BROKEN: f64 = 50.0;
const RANDOM: f64 = 20.0;
/// An age at which the wish to go has risen by 63 %.
const AGE_SECONDS: f64 = 10.0 * 24.0 * 3600.0;

/// The Machines to be deleted, those that are already going among them.
pub(super) fn choose(
    mut members: Vec<&Machine>,
    count: usize,
    order: DeletionOrder,
    now: Timestamp,
) -> Vec<&Machine> {
    let is_available =
        |machine: &Machine| machine.status.as_ref().is_some_and(|status| is_true(status, "Available"));
    members.sort_by(|left, right| {
        priority(right, order, now)
            .total_cmp(&priority(left, order, now))
            .then_with(|| is_available(left).cmp(&is_available(right)))
            .then_with(|| left.metadata.name.cmp(&right.metadata.name))
    });
    members.truncate(count);
    members
}

fn priority(machine: &Machine, order: DeletionOrder, now: Timestamp) -> f64 {
    let metadata = &machine.metadata;
    if metadata.deletion_timestamp.is_some() {
        return ALREADY_GOING;
    }
    if metadata.annotations.iter().flatten().any(|(name, _)| name == names::DELETE_MACHINE_ANNOTATION) {
        return MARKED;
    }
    if is_broken(machine) {
        return BROKEN;
    }
    let age = metadata
        .creation_timestamp
        .as_ref()
        .map_or(0.0, |created| now.duration_since(created.0).as_secs_f64().max(0.0));
    let risen = 1.0 - (-age / AGE_SECONDS).exp();
    match order {
        DeletionOrder::Random => RANDOM,
        DeletionOrder::Oldest => BROKEN * risen,
        DeletionOrder::Newest => BROKEN * (1.0 - risen),
    }
}

/// Without a Node, with one that does not work, or found unhealthy by a check.
fn is_broken(machine: &Machine) -> bool {
    use hangar_api::conditions::Status;
    let Some(known) = &machine.status else { return true };
    let is_bad = |type_: &str| status(known, type_) == Some(Status::False);
    let is_unhealthy = get(known, "NodeHealthy").is_some_and(|condition| condition.status != "True");
    known.node_ref.is_none() || is_unhealthy || is_bad("HealthCheckSucceeded") || is_bad("OwnerRemediated")
}
