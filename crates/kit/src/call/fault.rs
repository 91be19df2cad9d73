//! Faults at chosen calls, for crash sweeps against a real API server.
//!
//! A run without faults *records* the identities of its calls. Then, in one run per identity and [`Strike`], a client
//! is *armed* with it: once the server has committed that call, every later call of the client fails at once and open
//! watches end at their next frame. The driver of the sweep drops the manager and starts a new one over the same world.
//! If an armed point is never reached, the run compared nothing: [`Faults::verdict`] reports that, and the sweep must
//! fail.
//!
//! Namespaces are random in tests, so points name them by alias. Calls in namespaces without one are no points.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use super::{Answer, Call, CallGate, Delivery};

/// A call in the course of a run, with its occurrence number among equal calls, from 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallPoint {
    /// The call, its namespace replaced by its alias.
    pub call: Call,
    /// Counts equal calls, from 1.
    pub occurrence: usize,
}

impl fmt::Display for CallPoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} #{}", self.call, self.occurrence)
    }
}

/// What the caller of the struck call sees before its client is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strike {
    /// The answer: it dies with the knowledge, before it can act on it.
    AfterAnswer,
    /// No answer: the server committed and the caller does not know it.
    BeforeAnswer,
}

/// Both strikes, in the order tried.
pub const STRIKES: [Strike; 2] = [Strike::AfterAnswer, Strike::BeforeAnswer];

/// An armed point was not reached: the run tested nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("armed at \"{point}\" ({strike:?}), which never happened; seen: {seen}")]
pub struct NeverFired {
    pub point: CallPoint,
    /// How it would have struck.
    pub strike: Strike,
    /// The calls that did happen.
    pub seen: String,
}

/// The gate. Cloning shares it.
#[derive(Clone)]
pub struct Faults {
    state: Arc<Mutex<State>>,
    aliases: Arc<BTreeMap<String, String>>,
    counts: fn(&Call) -> bool,
    dead: CancellationToken,
}

#[derive(Default)]
struct State {
    armed: Option<(CallPoint, Strike)>,
    has_fired: bool,
    occurrences: BTreeMap<Call, usize>,
    seen: Vec<CallPoint>,
}

impl Faults {
    /// Records and never strikes. `aliases` maps namespaces of this run to names that are the same in every run.
    pub fn recording(aliases: impl IntoIterator<Item = (String, String)>) -> Self {
        Self {
            state: Arc::default(),
            aliases: Arc::new(aliases.into_iter().collect()),
            counts: counts_by_default,
            dead: CancellationToken::new(),
        }
    }

    /// Strikes once, at that point.
    pub fn armed(
        aliases: impl IntoIterator<Item = (String, String)>,
        point: CallPoint,
        strike: Strike,
    ) -> Self {
        let faults = Self::recording(aliases);
        faults.state().armed = Some((point, strike));
        faults
    }

    /// Chooses which calls are points: by default all writes but events and leases, whose names or times are random.
    #[must_use]
    pub fn counting(mut self, counts: fn(&Call) -> bool) -> Self {
        self.counts = counts;
        self
    }

    /// The points seen so far, in order.
    pub fn points(&self) -> Vec<CallPoint> {
        self.state().seen.clone()
    }

    /// True once it has struck.
    pub fn has_fired(&self) -> bool {
        self.state().has_fired
    }

    /// Ready when the client is dead: time to drop the manager.
    pub async fn died(&self) {
        self.dead.cancelled().await;
    }

    /// Kills the client now.
    pub fn kill(&self) {
        self.dead.cancel();
    }

    /// An error if a point was armed and never reached.
    pub fn verdict(&self) -> Result<(), NeverFired> {
        let state = self.state();
        match &state.armed {
            Some((point, strike)) if !state.has_fired => {
                let seen: Vec<String> = state.seen.iter().map(ToString::to_string).collect();
                Err(NeverFired { point: point.clone(), strike: *strike, seen: seen.join(", ") })
            }
            _ => Ok(()),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is done in another namespace than the run's own is left over from another run, and does not come again.
    fn is_elsewhere(&self, call: &Call) -> bool {
        let is_own = |namespace| self.aliases.is_empty() || self.aliases.contains_key(namespace);
        !call.namespace.as_ref().is_none_or(is_own)
    }

    fn aliased(&self, call: &Call) -> Call {
        let mut call = call.clone();
        for part in [&mut call.namespace, &mut call.name] {
            if let Some(alias) = part.as_ref().and_then(|name| self.aliases.get(name)) {
                *part = Some(alias.clone());
            }
        }
        call
    }
}

/// Reads change nothing: dying after one is dying before the next write.
fn counts_by_default(call: &Call) -> bool {
    let is_random = call.resource.starts_with("events") || call.resource.starts_with("leases.");
    call.verb.is_write() && !call.is_dry_run && !is_random
}

impl CallGate for Faults {
    fn before(&self, _call: &Call) -> Result<(), &'static str> {
        if self.dead.is_cancelled() { Err("this client is dead") } else { Ok(()) }
    }

    fn after(&self, call: &Call, answer: Answer, _took: Duration) -> Delivery {
        if self.dead.is_cancelled() {
            // In flight when the client died: committed or not, nobody is there to hear.
            return Delivery::Withhold("this client is dead");
        }
        // A refused write committed nothing, and how often one is refused (a conflict) differs from run to run.
        if !(self.counts)(call) || self.is_elsewhere(call) || !answer.is_success() {
            return Delivery::Deliver;
        }
        let call = self.aliased(call);
        let mut state = self.state();
        let occurrence = state.occurrences.entry(call.clone()).or_default();
        *occurrence += 1;
        let point = CallPoint { occurrence: *occurrence, call };
        let strike = match &state.armed {
            Some((armed, strike)) if *armed == point && !state.has_fired => Some(*strike),
            _ => None,
        };
        state.seen.push(point);
        state.has_fired |= strike.is_some();
        drop(state);
        match strike {
            None => Delivery::Deliver,
            Some(strike) => {
                self.dead.cancel();
                match strike {
                    Strike::AfterAnswer => Delivery::Deliver,
                    Strike::BeforeAnswer => Delivery::Withhold("the answer was lost"),
                }
            }
        }
    }

    fn is_severed(&self) -> bool {
        self.dead.is_cancelled()
    }
}
