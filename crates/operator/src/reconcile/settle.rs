//! Decides after a pass when the next one comes, and remembers until then which steps did not work.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hangar_kit::ObjectKey;
use hangar_kit::controller::Settled;
use hangar_kit::execute::Pass;
use hangar_plan::flow::{Ending, NotYet, Planner, Setbacks, Wake};
use jiff::Timestamp;

use super::Root;

/// What was planned from has changed, or the lease runs out: its events are on their way.
const SOON: Duration = Duration::from_millis(500);

/// Longer than lists of large projects take.
const PUT_OFF: Duration = Duration::from_mins(1);

/// Steps that did not work, by object. A process that dies forgets them: the first try of the next one is free.
#[derive(Default)]
pub(super) struct Memory(Mutex<BTreeMap<ObjectKey, Remembered>>);

struct Remembered {
    of: Version,
    setbacks: Setbacks,
}

/// The specification that the steps were planned from: another one starts afresh.
type Version = (Option<String>, Option<i64>);

fn version(root: &impl Root) -> Version {
    (root.meta().uid.clone(), root.meta().generation)
}

impl Memory {
    fn all(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Remembered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take(&self, key: &ObjectKey, root: &impl Root) -> Setbacks {
        let remembered = self.all().remove(key).filter(|remembered| remembered.of == version(root));
        remembered.map(|remembered| remembered.setbacks).unwrap_or_default()
    }

    pub(super) fn put(&self, key: &ObjectKey, root: &impl Root, setbacks: Setbacks) {
        if !setbacks.is_empty() {
            self.all().insert(key.clone(), Remembered { of: version(root), setbacks });
        }
    }

    pub(super) fn forget(&self, key: &ObjectKey) {
        self.all().remove(key);
    }
}

/// Comes back when the stores have been listed.
pub(super) fn starting() -> Settled {
    Settled::waits(NotYet::new("a store is being listed", Duration::from_millis(100)))
}

/// Comes back when what has to be read is there; the time is for a wake that is lost.
pub(super) fn put_off() -> Settled {
    Settled::put_off(Wake::after(Timestamp::now(), PUT_OFF))
}

/// Comes back soon: the object changed under us.
pub(super) fn outdated(settled: &Settled) -> Settled {
    let wait = NotYet::new("the object has changed", SOON);
    Settled::waits(wait).progressed(settled.has_progressed)
}

/// What to tell the queue after a pass.
pub(super) fn settled<P: Planner>(pass: &Pass<P>, unapplied: Option<String>) -> Settled {
    let has_progressed = pass.ran.iter().any(|ran| ran.outcome.is_success());
    let waits = match pass.ending {
        Ending::OutOfRounds => Some(NotYet::new("more steps are left", Duration::ZERO)),
        Ending::Outdated => Some(NotYet::new("what was planned from has changed", SOON)),
        Ending::Fenced => Some(NotYet::new("the lease ends before a call would", SOON)),
        Ending::AtRest => pass.waits.clone().or_else(|| unapplied.map(|why| NotYet::new(why, SOON))),
    };
    Settled { has_progressed, waits, wake: pass.plan.wake, is_put_off: false }
}
