//! The crash sweep over an in-memory world.
//!
//! A plan promises that a crash at any moment does no harm. The sweep tries every moment: a run without faults counts
//! the steps; then, for each step and each [`Fault`], a fresh run is interrupted there once, plans again, and must
//! reach the same end state. The sweep is synchronous and generic over a small [`World`], so thousands of points take
//! milliseconds, and property tests can call it in their loop. `hangar-operator` has the same sweep against the real
//! API server.
//!
//! The world decides what counts as the same end state ([`World::end_state`]): it should leave out ids and times, and
//! keep counts, so that duplicates and leftovers show.

use std::fmt;

use jiff::Timestamp;

use super::{Frontier, Identified, Next, Outcome, Rounds, Setbacks, StepId};

/// A world small enough to live in memory, and the planner under test.
pub trait World: Clone {
    /// What the planner sees.
    type Observation;
    /// What it does.
    type Step: Identified + Clone;
    /// What is compared at the end.
    type EndState: PartialEq + fmt::Debug;

    /// Reads the world as a fresh process would.
    fn observe(&self) -> Self::Observation;
    /// The planner under test.
    fn plan(&self, observation: &Self::Observation) -> Frontier<Self::Step>;
    /// Runs a step for real.
    fn run(&mut self, step: &Self::Step) -> Outcome;
    /// Folds an outcome into the observation, as the executor does.
    fn fold(&self, observation: &mut Self::Observation, step: &Self::Step, outcome: &Outcome);
    /// Time passes between passes: whatever the outside does by itself. Nothing, unless overridden.
    fn settle(&mut self) {}
    /// What must be equal however the run was disturbed.
    fn end_state(&self) -> Self::EndState;
}

/// What happens at the chosen step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The process dies before the call is sent.
    DiesBefore,
    /// The call has its effect, the process dies before it sees the answer.
    DiesAfter,
    /// The process lives and gets no answer; the call had no effect.
    LostBefore,
    /// The process lives and gets no answer; the call had its effect.
    LostAfter,
}

/// All faults, in the order tried.
pub const FAULTS: [Fault; 4] = [Fault::DiesBefore, Fault::DiesAfter, Fault::LostBefore, Fault::LostAfter];

/// What a completed sweep covered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swept {
    /// The steps of the fault-free run, in order.
    pub trace: Vec<StepId>,
    /// How many disturbed runs reached the same end.
    pub points: usize,
}

/// Why a sweep failed.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// A run did not come to rest.
    #[error("{at} does not come to rest in {limit} steps; the last was {last}")]
    NeverRests {
        at: String,
        limit: usize,
        /// The last step run.
        last: StepId,
    },
    /// The struck step was not reached again: the harness compared nothing.
    #[error("{at} was never reached")]
    NeverFired { at: String },
    /// A disturbed run ended elsewhere.
    #[error("{at} ends differently\n  undisturbed: {expected}\n  disturbed:   {found}")]
    Differs {
        at: String,
        /// The fault-free end state.
        expected: String,
        found: String,
    },
}

/// Strikes every step of the fault-free run with every fault.
///
/// `limit` bounds the steps of one run; a plan that never rests fails.
pub fn sweep<W: World>(world: &W, limit: usize) -> Result<Swept, SweepError> {
    let undisturbed = run(world, None, limit)?;
    let expected = undisturbed.world.end_state();
    let mut points = 0;
    for (position, id) in undisturbed.trace.iter().enumerate() {
        for fault in FAULTS {
            let at = format!("{fault:?} at step {position} ({id})");
            let struck = run(world, Some((position, fault)), limit)?;
            if !struck.fired {
                return Err(SweepError::NeverFired { at });
            }
            let found = struck.world.end_state();
            if found != expected {
                let (expected, found) = (format!("{expected:?}"), format!("{found:?}"));
                return Err(SweepError::Differs { at, expected, found });
            }
            points += 1;
        }
    }
    Ok(Swept { trace: undisturbed.trace, points })
}

struct Run<W> {
    world: W,
    trace: Vec<StepId>,
    fired: bool,
}

/// Passes over a clone of the world until one pass runs nothing that succeeds.
fn run<W: World>(world: &W, strike: Option<(usize, Fault)>, limit: usize) -> Result<Run<W>, SweepError> {
    let mut run = Run { world: world.clone(), trace: Vec::new(), fired: false };
    loop {
        let progressed = pass(&mut run, strike, limit)?;
        run.world.settle();
        if !progressed {
            return Ok(run);
        }
    }
}

/// One reconcile, by the rules of the runtime ([`Rounds`]): observe, then run, fold and plan until nothing new can be
/// tried. True when the world moved, or when the pass was cut short and has to be made again.
fn pass<W: World>(
    run: &mut Run<W>,
    strike: Option<(usize, Fault)>,
    limit: usize,
) -> Result<bool, SweepError> {
    let mut observation = run.world.observe();
    // Time stands still within a run: nothing is held back.
    let (mut rounds, setbacks) = (Rounds::default(), Setbacks::default());
    let mut progressed = false;
    loop {
        let frontier = run.world.plan(&observation);
        let Next::Run(step) = rounds.next(&frontier, &setbacks, Timestamp::UNIX_EPOCH) else {
            return Ok(progressed);
        };
        let (step, id) = (step.clone(), step.id());
        let position = run.trace.len();
        if position >= limit {
            let at = strike.map_or_else(
                || "the undisturbed run".to_owned(),
                |(at, fault)| format!("{fault:?} at step {at}"),
            );
            return Err(SweepError::NeverRests { at, limit, last: id });
        }
        run.trace.push(id.clone());
        let fault = strike.filter(|(at, _)| *at == position).map(|(_, fault)| fault);
        run.fired |= fault.is_some();
        if fault == Some(Fault::DiesBefore) {
            return Ok(true);
        }
        let outcome = if fault == Some(Fault::LostBefore) { Outcome::Lost } else { run.world.run(&step) };
        let outcome = match fault {
            Some(Fault::DiesAfter) => return Ok(true),
            Some(Fault::LostAfter) => Outcome::Lost,
            _ => outcome,
        };
        run.world.fold(&mut observation, &step, &outcome);
        progressed |= outcome.is_success() || outcome.ends_the_pass();
        rounds.ran(id, outcome);
    }
}

#[cfg(test)]
mod tests;
