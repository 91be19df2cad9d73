//! The crash sweep: a whole manager is killed after every write it makes, and the next one must reach the same end.
//!
//! One run without faults records the identity of every write and the state at its end. Then, for each identity and
//! each [`Strike`] (the answer of that call was delivered, or lost), a fresh world is set up and a manager is killed
//! right after that call was committed; a second manager over what is left must come to rest in the same state.
//!
//! Invariants
//! - A kill leaves nothing behind: a manager has a runtime of its own that is torn down, so that no task survives
//!   through a forgotten token, and its client is dead before that.
//! - A run that compared nothing is a failure: an armed point that is never reached, a scenario without writes, a
//!   manager that never rests or ends by itself, a run without faults that does not reach its end. Only a write that
//!   repeats another may be missing, and the report says so: two writes become one when a manager sees more changes
//!   together.
//! - Which cases a sample contains depends on their names and the seed alone, not on time or on the other cases. A time
//!   budget only cuts the end of that list off, and the report says how much was left out.
//!
//! Worlds do not share anything, so their random parts (namespaces) differ; points name them by alias, and a snapshot
//! must leave them out.

mod choice;
mod process;
mod report;

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use hangar_kit::call::Call;
use hangar_kit::call::fault::{CallPoint, Faults, Strike};
use kube::{Client, Config};
use tokio::time::Instant;

pub use choice::Extent;
pub use process::Manager;
pub use report::{Case, Failure, SweepReport};

use choice::choose;
use process::Process;

/// Nothing takes this long; it only keeps a manager that never rests, or never ends, from hanging the sweep. A disruption
/// budget takes a pod for the one of its name that was evicted for two minutes, if it is there at once.
const PATIENCE: Duration = Duration::from_mins(5);

/// A manager that only pauses between two of its own events is not at rest: rest is believed after this long without
/// a call.
const REST: Duration = Duration::from_secs(1);

/// A difference, or a point that was missed, is believed after this long at an end: a busy machine may be late with an
/// event. Where the manager must not end it waits for somebody, and is given all the patience.
const LONG_REST: Duration = Duration::from_secs(5);

/// What is swept: a world, a manager over it, and how to compare.
pub trait Scenario: Send + Sync {
    /// What one run needs to know about its world: a namespace, usually.
    type World: Send + Sync;
    /// What is compared. Leaves out what differs from run to run: uids, times, random names.
    type State: PartialEq + Debug + Send;

    /// Sets up a world of its own in which the manager has not been yet.
    fn prepare(&self) -> impl Future<Output = Self::World> + Send;

    /// Names of this world, as they are called in every world. Points are named with these.
    fn aliases(&self, world: &Self::World) -> Vec<(String, String)>;

    /// The whole manager, with every call through `client`. Called inside the runtime it will run in.
    fn manager(&self, world: &Self::World, client: Client) -> Manager;

    /// The state of the world, read with a client of one's own.
    fn snapshot(&self, world: &Self::World) -> impl Future<Output = Self::State> + Send;

    /// Whether a run may end here. A manager that waits for others (controllers of the cluster, kubelets) rests too, and
    /// a busy machine makes them late.
    fn is_end(&self, state: &Self::State) -> bool;
}

/// A sweep to be run.
#[derive(Clone)]
pub struct Sweep {
    config: Config,
    extent: Extent,
    counts: Option<fn(&Call) -> bool>,
    patience: Duration,
}

impl Debug for Sweep {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Sweep").field("extent", &self.extent).finish_non_exhaustive()
    }
}

/// A fault-free run: every case of the sweep comes from its points, every comparison is with its end.
#[derive(Debug)]
pub struct Recording<S> {
    /// The writes in the order they were committed.
    pub points: Vec<CallPoint>,
    /// The state at rest.
    pub end: S,
}

impl Sweep {
    /// A sweep whose managers reach the API server by this configuration.
    pub fn new(config: Config, extent: Extent) -> Self {
        Self { config, extent, counts: None, patience: PATIENCE }
    }

    /// Chooses which calls are points; see [`Faults::counting`].
    #[must_use]
    pub fn counting(mut self, counts: fn(&Call) -> bool) -> Self {
        self.counts = Some(counts);
        self
    }

    /// Gives up on a manager that never rests, or never ends, after this long.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Records, then strikes every chosen case. An error if there is nothing to strike; failed cases are in the
    /// report.
    pub async fn run<S: Scenario>(&self, scenario: &S) -> Result<SweepReport, Failure> {
        let started = Instant::now();
        let recording = self.record(scenario).await?;
        if recording.points.is_empty() {
            return Err(Failure::NothingToStrike);
        }
        let chosen = choose(&recording.points, &self.extent);
        let mut report = SweepReport::new(&recording.points, chosen.len());
        for case in chosen {
            let is_over = self.extent.budget().is_some_and(|budget| started.elapsed() >= budget);
            // However slow the machine is, something is compared.
            if is_over && !report.tried.is_empty() {
                break;
            }
            match self.strike(scenario, &case, &recording.end).await {
                Err(Failure::NeverFired(never)) if never.point.occurrence > 1 => report.unreached.push(case),
                result => report.add(case, result),
            }
        }
        Ok(report)
    }

    /// The run without faults.
    pub async fn record<S: Scenario>(&self, scenario: &S) -> Result<Recording<S::State>, Failure> {
        let world = scenario.prepare().await;
        let faults = self.faults(Faults::recording(scenario.aliases(&world)));
        let mut manager = Process::start(&self.config, &faults, |client| scenario.manager(&world, client))?;
        let deadline = Instant::now() + self.patience;
        let end = finish(scenario, &world, &mut manager, ("the run without faults", REST), deadline).await;
        manager.kill().await;
        Ok(Recording { points: faults.points(), end: end? })
    }

    /// One case: kill a manager there, let another one finish, compare.
    pub async fn strike<S: Scenario>(
        &self,
        scenario: &S,
        case: &Case,
        expected: &S::State,
    ) -> Result<(), Failure> {
        let world = scenario.prepare().await;
        self.kill_at(scenario, &world, &case.point, case.strike).await?;
        let faults = self.faults(Faults::recording(scenario.aliases(&world)));
        let mut second = Process::start(&self.config, &faults, |client| scenario.manager(&world, client))?;
        let compared =
            settle(scenario, &world, &mut second, case, expected, Instant::now() + self.patience).await;
        second.kill().await;
        compared
    }

    async fn kill_at<S: Scenario>(
        &self,
        scenario: &S,
        world: &S::World,
        point: &CallPoint,
        strike: Strike,
    ) -> Result<(), Failure> {
        let faults = self.faults(Faults::armed(scenario.aliases(world), point.clone(), strike));
        let mut first = Process::start(&self.config, &faults, |client| scenario.manager(world, client))?;
        let deadline = Instant::now() + self.patience;
        let unstruck = tokio::select! {
            biased;
            () = faults.died() => Ok(()),
            end = finish(scenario, world, &mut first, ("the run to be struck", LONG_REST), deadline) => end.map(drop),
        };
        first.kill().await;
        unstruck?;
        Ok(faults.verdict()?)
    }

    fn faults(&self, faults: Faults) -> Faults {
        match self.counts {
            Some(counts) => faults.counting(counts),
            None => faults,
        }
    }
}

/// The state in which a manager that is not struck has rested for that long and may end.
async fn finish<S: Scenario>(
    scenario: &S,
    world: &S::World,
    manager: &mut Process,
    (during, length): (&str, Duration),
    deadline: Instant,
) -> Result<S::State, Failure> {
    loop {
        manager.rest(during, length, deadline).await?;
        let found = scenario.snapshot(world).await;
        if scenario.is_end(&found) {
            return Ok(found);
        }
        if Instant::now() >= deadline {
            return Err(Failure::Unfinished { found: format!("{found:#?}") });
        }
    }
}

/// Success when the manager rests in the expected state; failure when it rests for long in another that may be its end,
/// or has not come there in time.
async fn settle<S: Scenario>(
    scenario: &S,
    world: &S::World,
    manager: &mut Process,
    case: &Case,
    expected: &S::State,
    deadline: Instant,
) -> Result<(), Failure> {
    let during = format!("the run after {case}");
    loop {
        let Some(rested) = manager.look(&during, deadline).await? else {
            continue;
        };
        if rested < REST {
            continue;
        }
        let found = scenario.snapshot(world).await;
        if found == *expected {
            return Ok(());
        }
        if rested >= LONG_REST && scenario.is_end(&found) || Instant::now() >= deadline {
            return Err(Failure::Differs {
                case: Box::new(case.clone()),
                expected: format!("{expected:#?}"),
                found: format!("{found:#?}"),
            });
        }
    }
}
