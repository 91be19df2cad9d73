//! A chain of switches: each can be turned on once the one before is on.

use std::{convert::Infallible, sync::Mutex};

use hangar_plan::flow::{Failure, Frontier};
use tokio::sync::watch;

use super::*;
use crate::leadership::Always;

struct Switches {
    on: Mutex<Vec<bool>>,
    /// What running a switch yields instead of turning it on.
    script: fn(usize) -> Option<Outcome>,
}

struct TurnOn(usize);

impl Step for TurnOn {
    fn id(&self) -> StepId {
        StepId::new("turn-on", "switch", self.0.to_string())
    }
}

impl Workbench for Switches {
    type Observation = Vec<bool>;
    type Step = TurnOn;
    type Status = usize;
    type Object = ();
    type Error = Infallible;

    async fn observe(&self) -> Result<Vec<bool>, Infallible> {
        Ok(self.on.lock().unwrap().clone())
    }

    fn plan(&self, on: &Vec<bool>) -> Plan<TurnOn, usize, ()> {
        let ready = (0..on.len()).filter(|n| !on[*n] && (*n < 2 || on[n - 2]));
        let steps: Frontier<TurnOn> = ready.map(TurnOn).collect();
        Plan { steps, status: on.iter().filter(|on| **on).count(), ..Plan::default() }
    }

    async fn run(&self, step: &TurnOn, _limit: Duration) -> Outcome {
        if let Some(outcome) = (self.script)(step.0) {
            return outcome;
        }
        if step.0 == 99 {
            std::future::pending::<()>().await;
        }
        self.on.lock().unwrap()[step.0] = true;
        Outcome::Done
    }

    fn fold(&self, on: &mut Vec<bool>, step: &TurnOn, outcome: &Outcome) {
        on[step.0] |= outcome.is_success();
    }
}

fn switches(count: usize, script: fn(usize) -> Option<Outcome>) -> Switches {
    Switches { on: Mutex::new(vec![false; count]), script }
}

fn names(pass: &Pass<Switches>) -> Vec<String> {
    pass.ran.iter().map(|ran| ran.step.name.clone()).collect()
}

const LIMIT: Duration = Duration::from_mins(10);

#[tokio::test]
async fn a_pass_goes_from_frontier_to_frontier_until_rest() {
    let bench = switches(5, |_| None);
    let pass = execute(&bench, &Always, LIMIT, DEFAULT_ROUNDS).await.unwrap();
    assert_eq!((pass.ending, pass.plan.status), (Ending::AtRest, 5));
    assert_eq!(names(&pass), ["0", "1", "2", "3", "4"]);
}

#[tokio::test]
async fn a_failing_or_refused_step_is_tried_once_and_stops_only_its_own_chain() {
    let bench = switches(6, |n| match n {
        0 => Some(Outcome::Refused("quota".to_owned())),
        3 => Some(Outcome::Failed(Failure {
            category: "Broken",
            message: "stuck".to_owned(),
            is_retryable: true,
        })),
        _ => None,
    });
    let pass = execute(&bench, &Always, LIMIT, DEFAULT_ROUNDS).await.unwrap();
    assert_eq!((pass.ending, names(&pass)), (Ending::AtRest, vec!["0".into(), "1".into(), "3".into()]));
    assert_eq!(pass.ran[0].to_string(), "turn-on switch 0: refused: quota");
}

#[tokio::test]
async fn rounds_are_bounded() {
    let bench = switches(5, |_| None);
    let pass = execute(&bench, &Always, LIMIT, 2).await.unwrap();
    assert_eq!((pass.ending, pass.plan.status), (Ending::OutOfRounds, 2));
}

#[tokio::test]
async fn a_lost_answer_ends_the_pass() {
    let bench = switches(5, |n| (n == 1).then_some(Outcome::Lost));
    let pass = execute(&bench, &Always, LIMIT, DEFAULT_ROUNDS).await.unwrap();
    assert_eq!((pass.ending, names(&pass)), (Ending::AnswerLost, vec!["0".into(), "1".into()]));
}

#[tokio::test(start_paused = true)]
async fn a_step_that_never_ends_is_lost() {
    let bench = switches(100, |n| if n == 99 { None } else { Some(Outcome::Done) });
    let pass = execute(&bench, &Always, LIMIT, 200).await.unwrap();
    assert_eq!((pass.ending, pass.ran.len()), (Ending::AnswerLost, 100));
}

#[tokio::test]
async fn nothing_runs_without_leadership() {
    let bench = switches(5, |_| None);
    let (_lead, leadership) = watch::channel(false);
    let pass = execute(&bench, &leadership, LIMIT, DEFAULT_ROUNDS).await.unwrap();
    assert_eq!((pass.ending, pass.ran.len()), (Ending::Fenced, 0));
}
