//! Decides how many Machines each MachineSet may have now.
//!
//! Invariants, whatever the counts are:
//! - There are never more Machines than desired plus surge, counting those that are being made and those that are being
//!   deleted. More can exist only if they did before.
//! - No set shrinks if fewer than `desired - max_unavailable` Machines would stay available. Machines that are being
//!   deleted count as gone, whether they still answer or not.
//! - The current set grows first. Old sets lose Machines that do not work first, beginning with the oldest set.

use hangar_api::cluster::v1beta2::MachineSet;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// What a rollout may do, in Machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Machines that are wanted.
    pub desired: i32,
    /// Machines that there may be beyond that.
    pub max_surge: i32,
    /// Machines that may be missing.
    pub max_unavailable: i32,
}

/// The Machines of one set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub wanted: i32,
    /// There, including those that are being deleted.
    pub existing: i32,
    pub available: i32,
}

/// What to ask of the sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intents {
    pub current: i32,
    /// Of the others, in their order.
    pub others: Vec<i32>,
}

impl Limits {
    /// Shares are of the desired number; surge is rounded up, what may be missing down. Both zero would never move.
    pub fn new(desired: i32, max_surge: Option<&IntOrString>, max_unavailable: Option<&IntOrString>) -> Self {
        let max_surge = resolved(max_surge, 1, desired, true);
        let mut max_unavailable = resolved(max_unavailable, 0, desired, false);
        if max_surge == 0 && max_unavailable == 0 {
            max_unavailable = 1;
        }
        Self { desired, max_surge, max_unavailable }
    }

    /// How many must stay available.
    pub fn min_available(&self) -> i32 {
        self.desired.saturating_sub(self.max_unavailable).max(0)
    }
}

fn resolved(value: Option<&IntOrString>, default: i32, desired: i32, is_rounded_up: bool) -> i32 {
    let Some(value) = value else { return default };
    match value {
        IntOrString::Int(number) => (*number).max(0),
        IntOrString::String(text) => {
            let Some(percent) = text.strip_suffix('%').and_then(|number| number.parse::<i64>().ok()) else {
                return default;
            };
            let product = i64::from(desired).saturating_mul(percent.max(0));
            let share = if is_rounded_up { product.saturating_add(99) / 100 } else { product / 100 };
            i32::try_from(share).unwrap_or(i32::MAX)
        }
    }
}

impl Counts {
    /// The counts of a set, from its spec and what its controller last said.
    pub fn of(set: &MachineSet) -> Self {
        let status = set.status.as_ref();
        Self {
            // A set that is being deleted wants none, whatever it says.
            wanted: if set.metadata.deletion_timestamp.is_some() {
                0
            } else {
                set.spec.replicas.unwrap_or(1)
            },
            existing: status.and_then(|status| status.replicas).unwrap_or_default(),
            available: status.and_then(|status| status.available_replicas).unwrap_or_default(),
        }
    }

    /// Machines that are there or come.
    fn total(self) -> i32 {
        self.wanted.max(self.existing)
    }

    /// Machines that go already.
    fn going(self) -> i32 {
        self.existing.saturating_sub(self.wanted).max(0)
    }

    /// Available Machines that certainly stay.
    fn staying(self) -> i32 {
        self.available.saturating_sub(self.going()).clamp(0, self.wanted.max(0))
    }

    /// Machines that may not be available once those that go are gone: at most.
    fn doubtful(self) -> i32 {
        self.wanted.saturating_sub(self.staying()).max(0)
    }

    /// Machines that are not available, whichever of the set's go: at least. To take more for broken would take ones
    /// that work.
    fn broken(self) -> i32 {
        self.wanted.saturating_sub(self.available).max(0)
    }
}

/// What to ask of each set now. The others come oldest first.
pub fn intents(limits: &Limits, current: Option<Counts>, others: &[Counts]) -> Intents {
    let new = current.unwrap_or_default();
    let total = sum(others.iter().map(|counts| counts.total()).chain([new.total()]));
    let room = limits.desired.saturating_add(limits.max_surge).saturating_sub(total).max(0);
    let grown =
        new.wanted.saturating_add(if new.wanted > limits.desired { 0 } else { room }).min(limits.desired);
    let mut intents = Intents { current: grown, others: others.iter().map(|counts| counts.wanted).collect() };
    shrink(limits, new, others, &mut intents);
    if is_stuck(new, others, &intents) && new.wanted < limits.desired {
        // Every place is taken by Machines that do not work: one of them gives way.
        if let Some(index) = others.iter().position(|counts| counts.broken() > 0) {
            intents.others[index] -= 1;
        }
    }
    intents
}

/// Numbers of replicas are people's, up to the largest there is: their sum is cut there.
fn sum(counts: impl Iterator<Item = i32>) -> i32 {
    counts.fold(0, i32::saturating_add)
}

fn shrink(limits: &Limits, new: Counts, others: &[Counts], intents: &mut Intents) {
    let staying =
        sum(others.iter().map(|counts| counts.staying()).chain([new.staying().min(intents.current)]));
    let wanted = sum(others.iter().map(|counts| counts.wanted).chain([new.wanted.min(intents.current)]));
    // What is asked for and not there yet in the current set may still come: it is not to be replaced twice.
    let kept = limits.min_available().saturating_add(new.doubtful().min(intents.current));
    let mut budget = wanted.saturating_sub(kept);
    for (counts, intent) in others.iter().zip(&mut intents.others) {
        let removed = counts.broken().min(budget).max(0);
        *intent -= removed;
        budget -= removed;
    }
    let mut spare = staying.saturating_sub(limits.min_available()).min(budget);
    for intent in &mut intents.others {
        let removed = (*intent).min(spare).max(0);
        *intent -= removed;
        spare -= removed;
    }
}

/// Nothing moves and nothing is on its way.
fn is_stuck(new: Counts, others: &[Counts], intents: &Intents) -> bool {
    let is_moving = new.going() > 0 || others.iter().any(|counts| counts.going() > 0) || new.broken() > 0;
    let is_changed = intents.current != new.wanted
        || others.iter().zip(&intents.others).any(|(counts, intent)| counts.wanted != *intent);
    !is_moving && !is_changed
}
