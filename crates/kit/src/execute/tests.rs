//! Tests with a chain of switches: each can be turned on once the one two before it is on.

use std::sync::Mutex;

use hangar_plan::flow::{Frontier, Identified, Never, Plan, ROUNDS, Refusal, Step, StepId};
use tokio::sync::watch;

use super::*;
use crate::leadership::Always;

struct Switches {
    on: Mutex<Vec<bool>>,
    /// What running a switch yields instead of turning it on.
    script: fn(usize) -> Option<Outcome>,
    /// The switch that takes for ever.
    stuck: Option<usize>,
    /// How often the plan asks for more to read.
    wants: usize,
}

/// What the planner sees.
struct Seen {
    on: Vec<bool>,
    refusals: Vec<String>,
    wants: usize,
    reads: Vec<usize>,
}

struct TurnOn(usize);

impl Identified for TurnOn {
    fn id(&self) -> StepId {
        StepId::new("turn-on", "switch", self.0.to_string())
    }
}

type Turn = Step<TurnOn>;

fn number(step: &Turn) -> usize {
    match step {
        Step::Own(TurnOn(number)) => *number,
        Step::Write(write) => panic!("{write:?}"),
        Step::Tenant(never) | Step::Cloud(never) => match *never {},
    }
}

impl Planner for Seen {
    type Wanted = usize;
    type Own = TurnOn;
    type Tenant = Never;
    type Cloud = Never;
    type Status = usize;
    type Object = ();

    fn wanted(&self) -> Option<usize> {
        (self.reads.len() < self.wants).then_some(self.reads.len())
    }

    fn plan(&self) -> Plan<Turn, usize, ()> {
        let on = &self.on;
        let ready = (0..on.len()).filter(|n| !on[*n] && (*n < 2 || on[n - 2]));
        let steps: Frontier<Turn> = ready.map(|n| Step::Own(TurnOn(n))).collect();
        Plan { steps, status: on.iter().filter(|on| **on).count(), ..Plan::default() }
    }

    fn fold(&mut self, step: &Turn, outcome: &Outcome) {
        self.on[number(step)] |= outcome.is_success();
        self.refusals.extend(outcome.trouble().map(str::to_owned));
    }
}

impl Workbench for Switches {
    type Observed = Seen;

    fn observe(&self) -> Seen {
        let on = self.on.lock().unwrap().clone();
        Seen { on, refusals: Vec::new(), wants: self.wants, reads: Vec::new() }
    }

    async fn read(&self, seen: &mut Seen, wanted: usize) {
        seen.reads.push(wanted);
    }

    fn limit(&self, _: &Turn) -> Duration {
        Duration::from_mins(10)
    }

    async fn run(&self, _: &Seen, step: &Turn) -> Outcome {
        let number = number(step);
        if let Some(outcome) = (self.script)(number) {
            return outcome;
        }
        if self.stuck == Some(number) {
            std::future::pending::<()>().await;
        }
        self.on.lock().unwrap()[number] = true;
        Outcome::Done
    }
}

fn switches(count: usize, script: fn(usize) -> Option<Outcome>) -> Switches {
    Switches { on: Mutex::new(vec![false; count]), script, stuck: None, wants: 0 }
}

async fn pass(bench: &Switches) -> Pass<Seen> {
    execute(bench, &Always, &mut Setbacks::default()).await.unwrap()
}

fn names(pass: &Pass<Seen>) -> Vec<String> {
    pass.ran.iter().map(|ran| ran.step.name.clone()).collect()
}

#[tokio::test]
async fn a_pass_goes_from_frontier_to_frontier_until_rest() {
    let pass = pass(&switches(5, |_| None)).await;
    assert_eq!((pass.ending, pass.plan.status), (Ending::AtRest, 5));
    assert_eq!(names(&pass), ["0", "1", "2", "3", "4"]);
}

#[tokio::test]
async fn a_failing_or_refused_step_is_tried_once_and_stops_only_its_own_chain() {
    let bench = switches(6, |n| match n {
        0 => Some(Outcome::refused("quota")),
        3 => Some(Outcome::failed("Broken", "stuck")),
        _ => None,
    });
    let pass = pass(&bench).await;
    assert_eq!((pass.ending, names(&pass)), (Ending::AtRest, vec!["0".into(), "1".into(), "3".into()]));
    assert_eq!(pass.ran[0].to_string(), "turn-on switch 0: refused: quota");
}

#[tokio::test]
async fn what_was_refused_is_recalled_and_not_run_before_its_time() {
    let busy = |n| {
        let retry_after = Some(Duration::from_mins(10));
        (n == 0).then(|| Outcome::Refused(Refusal { message: "quota".to_owned(), retry_after }))
    };
    let (bench, mut setbacks) = (switches(3, busy), Setbacks::default());
    let first = execute(&bench, &Always, &mut setbacks).await.unwrap();
    assert_eq!(
        (names(&first), first.observed.refusals),
        (vec!["0".into(), "1".into()], vec!["quota".into()])
    );
    let second = execute(&bench, &Always, &mut setbacks).await.unwrap();
    assert_eq!((second.ending, names(&second)), (Ending::AtRest, vec![]));
    assert_eq!(second.observed.refusals, ["quota"], "conditions keep saying why");
    // Its time has come, and it works now.
    let bench = switches(3, |_| None);
    let mut setbacks = Setbacks::default();
    setbacks.note(&TurnOn(0).id(), &Outcome::refused("quota"), Timestamp::UNIX_EPOCH, 0.0);
    let third = execute(&bench, &Always, &mut setbacks).await.unwrap();
    assert_eq!(names(&third), ["1", "0", "2"], "after what never failed");
    assert!(third.observed.refusals.is_empty() && setbacks.is_empty());
}

#[tokio::test]
async fn rounds_are_bounded() {
    let pass = pass(&switches(ROUNDS + 5, |_| None)).await;
    assert_eq!((pass.ending, pass.plan.status), (Ending::OutOfRounds, ROUNDS));
}

#[tokio::test]
async fn a_plan_reads_until_it_wants_nothing_more_and_not_for_ever() {
    let bench = Switches { wants: 3, ..switches(1, |_| None) };
    let enough = pass(&bench).await;
    assert_eq!((enough.observed.reads, enough.plan.status), (vec![0, 1, 2], 1));
    let bench = Switches { wants: usize::MAX, ..switches(1, |_| None) };
    assert_eq!(pass(&bench).await.observed.reads.len(), TURNS);
}

#[tokio::test]
async fn a_lost_or_stale_answer_ends_the_pass() {
    let scripts: [fn(usize) -> Option<Outcome>; 2] =
        [|n| (n == 1).then_some(Outcome::Lost), |n| (n == 1).then_some(Outcome::Stale)];
    for script in scripts {
        let pass = pass(&switches(5, script)).await;
        assert_eq!((pass.ending, names(&pass)), (Ending::Outdated, vec!["0".into(), "1".into()]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_that_never_ends_is_lost() {
    let bench = Switches { stuck: Some(9), ..switches(10, |_| None) };
    let pass = pass(&bench).await;
    assert_eq!((pass.ending, pass.ran.len()), (Ending::Outdated, 10));
    assert_eq!(pass.ran[9].outcome, Outcome::Lost);
}

#[tokio::test]
async fn nothing_runs_without_leadership() {
    let bench = switches(5, |_| None);
    let (_lead, leadership) = watch::channel(false);
    let pass = execute(&bench, &leadership, &mut Setbacks::default()).await.unwrap();
    assert_eq!((pass.ending, pass.ran.len()), (Ending::Fenced, 0));
}
