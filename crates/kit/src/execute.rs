//! Runs plans: observe, plan, run one step, fold its outcome, plan again.
//!
//! Invariants
//! - Every step is fenced: it is asked before each whether we still lead for long enough.
//! - A step is tried once per pass, by identity: what failed or was refused waits for the next pass, and other steps
//!   of the frontier go on, because concerns progress independently.
//! - Rounds are bounded: one object never keeps a worker; the rest is done in the next pass, at once.
//! - A lost answer ends the pass: the observation it would be folded into is no longer true, only reading again helps.

use std::{collections::BTreeSet, fmt, future::Future, time::Duration};

use hangar_plan::flow::{Outcome, Plan, Report, Step, StepId};

use crate::leadership::Leadership;

/// A bound that no healthy pass reaches: the longest chain known (a server with its ports and volumes) has about ten.
pub const DEFAULT_ROUNDS: usize = 32;

/// The effects and reads behind one object's plans.
pub trait Workbench: Send + Sync {
    /// What the planner sees.
    type Observation: Send;
    /// What it does.
    type Step: Step + Send + Sync;
    /// What it says about the object.
    type Status: Send;
    /// What it wants to exist.
    type Object: Send;
    /// Why a read can fail as a whole. Single reads that fail are `Unknown` inside the observation instead.
    type Error: Send;

    /// Reads the world.
    fn observe(&self) -> impl Future<Output = Result<Self::Observation, Self::Error>> + Send;
    /// Decides, purely.
    fn plan(&self, observation: &Self::Observation) -> Plan<Self::Step, Self::Status, Self::Object>;
    /// Runs one step, within the given time.
    fn run(&self, step: &Self::Step, limit: Duration) -> impl Future<Output = Outcome> + Send;
    /// Makes the observation what it would be after that outcome.
    fn fold(&self, observation: &mut Self::Observation, step: &Self::Step, outcome: &Outcome);
}

/// Why a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The last plan has nothing left that was not tried.
    AtRest,
    /// The bound was reached: go on at once.
    OutOfRounds,
    /// An answer was lost: read again soon.
    AnswerLost,
    /// We no longer lead, or not for long enough.
    Fenced,
}

/// A step that was run, with its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// Which step.
    pub step: StepId,
    /// What became of it.
    pub outcome: Outcome,
}

impl fmt::Display for Ran {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.step, self.outcome)
    }
}

/// What one pass did, and the last plan: its objects, status, report and wake are what to act on.
pub struct Pass<W: Workbench> {
    /// The observation after all folds.
    pub observation: W::Observation,
    /// The plan made from it.
    pub plan: Plan<W::Step, W::Status, W::Object>,
    /// The steps in the order run.
    pub ran: Vec<Ran>,
    /// Why it ended.
    pub ending: Ending,
}

/// Runs plans to rest. `limit` is the longest any step may take; the lease must outlast it.
pub async fn execute<W: Workbench>(
    workbench: &W,
    leadership: &dyn Leadership,
    limit: Duration,
    rounds: usize,
) -> Result<Pass<W>, W::Error> {
    let mut observation = workbench.observe().await?;
    let mut tried = BTreeSet::new();
    let mut ran = Vec::new();
    loop {
        let plan = workbench.plan(&observation);
        let ending = match plan.steps.next_untried(&tried) {
            None => Ending::AtRest,
            Some(_) if ran.len() >= rounds => Ending::OutOfRounds,
            Some(_) if leadership.remaining().is_none_or(|remaining| remaining < limit) => Ending::Fenced,
            Some(step) => {
                let id = step.id();
                // The step's own limit is its caller's duty; this one holds if it is forgotten.
                let outcome =
                    tokio::time::timeout(limit, workbench.run(step, limit)).await.unwrap_or(Outcome::Lost);
                tracing::debug!(step = %id, %outcome, "step");
                workbench.fold(&mut observation, step, &outcome);
                tried.insert(id.clone());
                let is_lost = outcome.is_lost();
                ran.push(Ran { step: id, outcome });
                if !is_lost {
                    continue;
                }
                let plan = workbench.plan(&observation);
                tell(&plan.report);
                return Ok(Pass { observation, plan, ran, ending: Ending::AnswerLost });
            }
        };
        tell(&plan.report);
        return Ok(Pass { observation, plan, ran, ending });
    }
}

/// What the plan that a pass ends with decided and waits for, for who looks closely.
fn tell(report: &Report) {
    for decision in &report.decisions {
        tracing::debug!(what = decision.what, why = decision.why, "decided");
    }
    for wait in &report.waits {
        tracing::debug!(what = wait.what, who = %wait.who, "waiting");
    }
}

#[cfg(test)]
mod tests;
