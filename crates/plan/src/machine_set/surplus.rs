//! Decides which Machines are deleted when there are too many.
//!
//! The order: those that are being deleted already, those that somebody marked, those that do not work, those that are
//! not available for another reason, because a rollout counts on the others; then by age, if the set asks for an order.
//! Among equals names decide, so that the same Machines are chosen in every pass.

use hangar_api::cluster::rollout::DeletionOrder;
use hangar_api::cluster::v1beta2::Machine;
use hangar_api::conditions::{get, get::status, is_true};
use hangar_api::names;
use jiff::Timestamp;

const ALREADY_GOING: f64 = 100.0;
const MARKED: f64 = 80.0;
const BROKEN: f64 = 60.0;
const UNAVAILABLE: f64 = 50.0;
/// Of age alone, at most.
const AGED: f64 = 40.0;
const RANDOM: f64 = 20.0;
/// An age at which the wish to go has risen by 63 %.
const AGE_SECONDS: f64 = 10.0 * 24.0 * 3600.0;

/// What decides how soon a Machine goes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traits {
    pub is_going: bool,
    pub is_marked: bool,
    pub is_broken: bool,
    pub is_available: bool,
    pub age_seconds: f64,
}

impl Traits {
    fn of(machine: &Machine, now: Timestamp) -> Self {
        let metadata = &machine.metadata;
        let created = metadata.creation_timestamp.as_ref();
        let mut annotations = metadata.annotations.iter().flatten();
        Self {
            is_going: metadata.deletion_timestamp.is_some(),
            is_marked: annotations.any(|(name, _)| name == names::DELETE_MACHINE_ANNOTATION),
            is_broken: is_broken(machine),
            is_available: machine.status.as_ref().is_some_and(|status| is_true(status, "Available")),
            age_seconds: created.map_or(0.0, |created| now.duration_since(created.0).as_secs_f64().max(0.0)),
        }
    }

    /// Those with the highest go first.
    pub(crate) fn priority(self, order: DeletionOrder) -> f64 {
        let risen = 1.0 - (-self.age_seconds / AGE_SECONDS).exp();
        match (self.is_going, self.is_marked, self.is_broken, self.is_available, order) {
            (true, ..) => ALREADY_GOING,
            (_, true, ..) => MARKED,
            (_, _, true, ..) => BROKEN,
            (_, _, _, false, _) => UNAVAILABLE,
            (.., DeletionOrder::Random) => RANDOM,
            (.., DeletionOrder::Oldest) => AGED * risen,
            (.., DeletionOrder::Newest) => AGED * (1.0 - risen),
        }
    }
}

/// The Machines to be deleted, those that are already going among them.
pub(super) fn choose(
    mut members: Vec<&Machine>,
    count: usize,
    order: DeletionOrder,
    now: Timestamp,
) -> Vec<&Machine> {
    let priority = |machine: &Machine| Traits::of(machine, now).priority(order);
    members.sort_by(|left, right| {
        priority(right).total_cmp(&priority(left)).then_with(|| left.metadata.name.cmp(&right.metadata.name))
    });
    members.truncate(count);
    members
}

/// Without a Node, with one that does not work, or found unhealthy by a check.
fn is_broken(machine: &Machine) -> bool {
    use hangar_api::conditions::Status;
    let Some(known) = &machine.status else { return true };
    let is_bad = |type_: &str| status(known, type_) == Some(Status::False);
    let is_unhealthy = get(known, "NodeHealthy").is_some_and(|condition| condition.status != "True");
    known.node_ref.is_none() || is_unhealthy || is_bad("HealthCheckSucceeded") || is_bad("OwnerRemediated")
}
