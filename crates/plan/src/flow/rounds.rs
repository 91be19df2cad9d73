//! One pass over one object, without I/O: which step comes next, and when the pass ends.
//!
//! Invariants
//! - A step is tried once per pass, by identity. If it does not work, the other steps of the frontier go on, because
//!   concerns are independent.
//! - A step that did not work in an earlier pass ([`Setbacks`]) is not tried before its time. Its last outcome is
//!   recalled instead, so that conditions keep saying why. A wake never shortens that wait; a changed specification
//!   does.
//! - Among steps that may run, those that never failed come first, so a step that never works holds up no other.
//! - The number of rounds is limited, so one object never keeps a worker.
//! - After a stale or lost answer the observation is no longer true, and only a new read helps; so the pass ends.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::{Frontier, Identified, NotYet, Outcome, StepId};

/// A bound that no healthy pass reaches: the longest chain known mints some twenty Secrets and gives the tenant some
/// thirty objects.
pub const ROUNDS: usize = 64;

/// The wait after the first failure; each further one doubles it.
const FIRST: Duration = Duration::from_secs(1);
/// No wait of ours is longer: people who mended something should not wait for long.
const LONGEST: Duration = Duration::from_secs(60);
/// What others ask for is believed up to here.
const LONGEST_ASKED: Duration = Duration::from_mins(10);

/// Why a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The last plan has nothing left that may be tried now.
    AtRest,
    /// The bound was reached.
    OutOfRounds,
    /// What was planned from may no longer be so: read again.
    Outdated,
    /// We no longer lead, or not for long enough.
    Fenced,
}

/// A step that was run, with its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    pub step: StepId,
    /// What became of it.
    pub outcome: Outcome,
}

impl fmt::Display for Ran {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.step, self.outcome)
    }
}

/// What to do next in a pass.
#[derive(Debug, PartialEq)]
pub enum Next<'a, S> {
    Run(&'a S),
    /// Do not run this step: fold what became of it the last time.
    Recall(&'a S, Outcome),
    /// Nothing more in this pass.
    End(Ending),
}

/// The state of one pass.
#[derive(Debug, Default)]
pub struct Rounds {
    tried: BTreeSet<StepId>,
    ran: Vec<Ran>,
    is_outdated: bool,
}

impl Rounds {
    /// What comes next.
    pub fn next<'a, S: Identified>(
        &mut self,
        steps: &'a Frontier<S>,
        setbacks: &Setbacks,
        now: Timestamp,
    ) -> Next<'a, S> {
        if self.is_outdated {
            return Next::End(Ending::Outdated);
        }
        let untried = || steps.iter().filter(|step| !self.tried.contains(&step.id()));
        let held = untried().find_map(|step| Some((step, setbacks.held(&step.id(), now)?.clone())));
        if let Some((step, outcome)) = held {
            self.tried.insert(step.id());
            return Next::Recall(step, outcome);
        }
        let fresh = untried().find(|step| !setbacks.0.contains_key(&step.id()));
        match fresh.or_else(|| untried().next()) {
            None => Next::End(Ending::AtRest),
            Some(_) if self.ran.len() >= ROUNDS => Next::End(Ending::OutOfRounds),
            Some(step) => Next::Run(step),
        }
    }

    /// A step was run.
    pub fn ran(&mut self, step: StepId, outcome: Outcome) {
        self.is_outdated |= outcome.ends_the_pass();
        self.tried.insert(step.clone());
        self.ran.push(Ran { step, outcome });
    }

    /// The steps in the order run.
    pub fn into_ran(self) -> Vec<Ran> {
        self.ran
    }
}

/// Steps of one object that did not work, and when each may be tried again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setbacks(BTreeMap<StepId, Setback>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Setback {
    outcome: Outcome,
    failures: u32,
    until: Timestamp,
}

impl Setbacks {
    /// Notes what became of a step. `spread` varies the wait, from -1 to 1: objects that failed together come back one
    /// after the other.
    pub fn note(&mut self, step: &StepId, outcome: &Outcome, now: Timestamp, spread: f64) {
        if outcome.is_success() {
            self.0.remove(step);
            return;
        }
        let failures = self.0.get(step).map_or(0, |setback| setback.failures).saturating_add(1);
        let until = later(now, wait(outcome, failures, spread));
        self.0.insert(step.clone(), Setback { outcome: outcome.clone(), failures, until });
    }

    /// Forgets what is long over: steps that nobody plans any more.
    pub fn tidy(&mut self, now: Timestamp) {
        self.0.retain(|_, setback| later(setback.until, LONGEST_ASKED) > now);
    }

    /// The outcome of a step that may not be tried yet.
    fn held(&self, step: &StepId, now: Timestamp) -> Option<&Outcome> {
        self.0.get(step).filter(|setback| setback.until > now).map(|setback| &setback.outcome)
    }

    /// What is waited for: of the steps that this pass planned and that did not work, the one that may be tried next.
    pub fn wait(&self, rounds: &Rounds, now: Timestamp) -> Option<NotYet> {
        let planned = self.0.iter().filter(|(step, _)| rounds.tried.contains(step));
        let (step, setback) = planned.min_by_key(|(_, setback)| setback.until)?;
        let left = Duration::try_from(setback.until.duration_since(now)).unwrap_or_default();
        Some(NotYet::new(format!("{step}: {}", setback.outcome), left))
    }

    /// True when every step worked.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn later(moment: Timestamp, length: Duration) -> Timestamp {
    let length = SignedDuration::try_from(length).unwrap_or_default();
    moment.checked_add(length).unwrap_or(Timestamp::MAX)
}

fn wait(outcome: &Outcome, failures: u32, spread: f64) -> Duration {
    // A conflict is the ordinary case of two writers: the next pass plans from what is there by then.
    let counted = if *outcome == Outcome::Stale { failures.saturating_sub(1) } else { failures };
    let Some(exponent) = counted.checked_sub(1) else { return Duration::ZERO };
    let nominal = FIRST.saturating_mul(2_u32.saturating_pow(exponent.min(16))).min(LONGEST);
    let own = nominal.mul_f64(1.0 + spread.clamp(-1.0, 1.0) / 5.0);
    own.max(outcome.retry_after().unwrap_or_default().min(LONGEST_ASKED))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Named(&'static str);

    impl Identified for Named {
        fn id(&self) -> StepId {
            StepId::new("do", "thing", self.0)
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn frontier(names: &[&'static str]) -> Frontier<Named> {
        names.iter().copied().map(Named).collect()
    }

    fn held_for(outcome: &Outcome, times: u32) -> i64 {
        let (mut setbacks, mut rounds, id) = (Setbacks::default(), Rounds::default(), Named("a").id());
        for _ in 0..times {
            setbacks.note(&id, outcome, at(0), 0.0);
        }
        rounds.ran(id, outcome.clone());
        i64::try_from(setbacks.wait(&rounds, at(0)).unwrap().after.as_secs()).unwrap()
    }

    #[test]
    fn a_refusal_waits_longer_each_time_and_never_for_ever() {
        let refused = Outcome::refused("quota");
        let waits: Vec<i64> = (1..=9).map(|times| held_for(&refused, times)).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }

    #[test]
    fn the_first_conflict_costs_nothing() {
        assert_eq!((held_for(&Outcome::Stale, 1), held_for(&Outcome::Stale, 3)), (0, 2));
    }

    #[test]
    fn who_asks_for_time_gets_it_within_reason() {
        let asks = |seconds| {
            let retry_after = Some(Duration::from_secs(seconds));
            held_for(&Outcome::Refused(super::super::Refusal { message: "busy".to_owned(), retry_after }), 1)
        };
        assert_eq!((asks(30), asks(1_000_000)), (30, 600));
    }

    #[test]
    fn what_is_held_is_recalled_once_and_the_rest_goes_on() {
        let (mut setbacks, mut rounds) = (Setbacks::default(), Rounds::default());
        setbacks.note(&Named("a").id(), &Outcome::refused("no"), at(0), 0.0);
        let steps = frontier(&["a", "b"]);
        let Next::Recall(step, outcome) = rounds.next(&steps, &setbacks, at(0)) else {
            panic!("not recalled")
        };
        assert_eq!((step.0, outcome), ("a", Outcome::refused("no")));
        let Next::Run(step) = rounds.next(&steps, &setbacks, at(0)) else { panic!("not run") };
        assert_eq!(step.0, "b");
        rounds.ran(step.id(), Outcome::Done);
        assert!(matches!(rounds.next(&steps, &setbacks, at(0)), Next::End(Ending::AtRest)));
    }

    #[test]
    fn what_failed_before_comes_after_what_never_did() {
        let (mut setbacks, mut rounds) = (Setbacks::default(), Rounds::default());
        setbacks.note(&Named("a").id(), &Outcome::refused("no"), at(0), 0.0);
        let steps = frontier(&["a", "b"]);
        let Next::Run(step) = rounds.next(&steps, &setbacks, at(100)) else { panic!("not run") };
        assert_eq!(step.0, "b");
    }

    #[test]
    fn a_lost_answer_ends_the_pass() {
        let (setbacks, mut rounds) = (Setbacks::default(), Rounds::default());
        rounds.ran(Named("a").id(), Outcome::Lost);
        let steps = frontier(&["b"]);
        assert!(matches!(rounds.next(&steps, &setbacks, at(0)), Next::End(Ending::Outdated)));
    }

    #[test]
    fn what_is_no_longer_planned_is_not_waited_for() {
        let mut setbacks = Setbacks::default();
        setbacks.note(&Named("a").id(), &Outcome::Lost, at(0), 0.0);
        assert_eq!(setbacks.wait(&Rounds::default(), at(0)), None);
    }

    #[test]
    fn success_forgets() {
        let mut setbacks = Setbacks::default();
        setbacks.note(&Named("a").id(), &Outcome::Lost, at(0), 0.0);
        setbacks.note(&Named("a").id(), &Outcome::Done, at(0), 0.0);
        assert!(setbacks.is_empty());
    }
}
