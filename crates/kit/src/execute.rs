//! Runs plans: it reads what the plan asks for, plans, runs one step, folds its outcome, and plans again.
//!
//! [`Rounds`] decides the order of steps and the end of a pass, here as in the crash sweep of plans. This module adds
//! the fence: a step runs only if the lease lasts as long as the step may take.

use std::{future::Future, time::Duration};

use hangar_plan::flow::{
    Ending, Identified as _, Next, NotYet, Outcome, PlanOf, Planner, Ran, Report, Rounds, Setbacks, StepOf,
};
use jiff::Timestamp;

use crate::leadership::Leadership;

/// How often a plan may ask for more to read: each planner has two or three turns.
const TURNS: usize = 8;

/// The effects and reads behind one object's plans.
pub trait Workbench: Send + Sync {
    type Observed: Planner;

    /// Reads what the stores show.
    fn observe(&self) -> Self::Observed;
    /// Reads what the plan asks for, and puts it into the observation.
    fn read(
        &self,
        observed: &mut Self::Observed,
        wanted: <Self::Observed as Planner>::Wanted,
    ) -> impl Future<Output = ()> + Send;
    /// Whether a read found that it would have to wait, so that nothing can be planned in this pass.
    fn is_put_off(&self) -> bool {
        false
    }
    /// How long a step may take at the most.
    fn limit(&self, step: &StepOf<Self::Observed>) -> Duration;
    /// Runs one step.
    fn run(
        &self,
        observed: &Self::Observed,
        step: &StepOf<Self::Observed>,
    ) -> impl Future<Output = Outcome> + Send;
}

/// What one pass did, and the last plan: its objects, status, report and wake are what to act on.
pub struct Pass<P: Planner> {
    /// The observation after all folds.
    pub observed: P,
    /// The plan made from it.
    pub plan: PlanOf<P>,
    /// The steps in the order run.
    pub ran: Vec<Ran>,
    pub ending: Ending,
    /// Which step that did not work may be tried next, and when.
    pub waits: Option<NotYet>,
}

/// Runs plans to rest; nothing where the pass is put off.
pub async fn execute<W: Workbench>(
    workbench: &W,
    leadership: &dyn Leadership,
    setbacks: &mut Setbacks,
) -> Option<Pass<W::Observed>> {
    let mut observed = workbench.observe();
    for _ in 0..TURNS {
        let Some(wanted) = observed.wanted() else { break };
        workbench.read(&mut observed, wanted).await;
        if workbench.is_put_off() {
            return None;
        }
    }
    let mut rounds = Rounds::default();
    loop {
        let plan = observed.plan();
        let now = Timestamp::now();
        let ending = match rounds.next(&plan.steps, setbacks, now) {
            Next::End(ending) => ending,
            Next::Recall(step, outcome) => {
                observed.fold(step, &outcome);
                continue;
            }
            Next::Run(step) => {
                let limit = workbench.limit(step);
                if leadership.remaining().is_none_or(|remaining| remaining < limit) {
                    Ending::Fenced
                } else {
                    let id = step.id();
                    // The step's own limit is its caller's duty; this one holds if it is forgotten.
                    let run = tokio::time::timeout(limit, workbench.run(&observed, step));
                    let outcome = run.await.unwrap_or(Outcome::Lost);
                    tracing::debug!(step = %id, %outcome, "step");
                    observed.fold(step, &outcome);
                    setbacks.note(&id, &outcome, Timestamp::now(), rand::random_range(-1.0..=1.0));
                    rounds.ran(id, outcome);
                    continue;
                }
            }
        };
        setbacks.tidy(now);
        tell(&plan.report);
        let waits = setbacks.wait(&rounds, now);
        return Some(Pass { observed, plan, ran: rounds.into_ran(), ending, waits });
    }
}

/// Logs what the last plan of a pass decided and waits for.
fn tell(report: &Report) {
    for decision in &report.decisions {
        tracing::debug!(what = decision.what, why = decision.why, "decided");
    }
    for wait in &report.waits {
        tracing::debug!(on = wait.on, detail = wait.detail, who = %wait.actor, "waiting");
    }
}

#[cfg(test)]
mod tests;
