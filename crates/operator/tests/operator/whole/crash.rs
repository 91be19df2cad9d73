//! The crash sweep over a whole Cluster: the manager with all its controllers is dropped right after one of its writes
//! was committed, in the management cluster, in the tenant or in the cloud, with and without the answer, and a new
//! manager must reach the same end.
//!
//! A run without faults records every write by name. Each further run (a story) creates and deletes a Cluster in a
//! world of its own, and managers are killed in both halves. The result is compared at rest, at the end of each half;
//! objects that exist twice show as a difference. A point that is never reached fails the test; the points that are
//! reached only by chance are named in `choice::by_chance` with the reason.
//!
//! `HANGAR_SWEEP=all` tries every case, one kill in each half of a story, which takes an hour. Without it a time budget
//! cuts the list, which has the same order every time, and several managers are killed in one story, each at a later
//! point.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::choice::{by_chance, cases, chain};
use super::manager::Manager;
use super::stage::{Ground, Half, Stage, clear};
use super::strikes::{Case, Point, Strikes};
use crate::hosted_control_plane::world::{SWEPT, turn_to_sweep};
use crate::rights::none_is_too_many;

/// No story begins after this long, recording included.
const BUDGET: Duration = Duration::from_secs(75);

/// Nothing takes a manager this long. Only then a difference or a point that was missed is believed: a busy machine is
/// late, and so are others whom a manager waits for. The garbage collector, for one, looks for new kinds twice a minute,
/// and collects nothing of a kind that it has not found.
const PATIENCE: Duration = Duration::from_mins(4);

/// A manager that only pauses between two of its own events is not at rest.
const REST: Duration = Duration::from_secs(1);

/// The end that all others are compared with is believed after this long: a busy machine may be late with an event.
const LONG_REST: Duration = Duration::from_secs(6);

/// Only what is the person's own.
const NOTHING: &str = "Secret demo-cloud-config, owners []";

/// Kills in each half of a story where time is short.
const KILLS: usize = 6;

/// What became of half a life.
struct Lived {
    points: Vec<Point>,
    end: Vec<String>,
    /// Strikes for which it was too late when their turn came: what runs side by side has no order.
    passed: Vec<Case>,
}

/// One half: a manager, another one after each strike, and a comparison at rest.
async fn live(
    stage: &Stage<'_>,
    half: Half,
    cases: &[Case],
    expected: Option<&[String]>,
) -> Result<Lived, String> {
    let mut cases = cases.iter();
    let mut passed = Vec::new();
    let mut strikes = Strikes::new(&stage.world.namespace, cases.next());
    let mut manager = Manager::start(&strikes, &stage.ground.calls);
    let mut deadline = Instant::now() + PATIENCE;
    loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        if strikes.has_fired() {
            manager.kill().await;
            let mut next = cases.next();
            while let Some(case) = next.filter(|case| strikes.may_have_passed(&case.point)) {
                passed.push(case.clone());
                next = cases.next();
            }
            strikes = strikes.next(next);
            manager = Manager::start(&strikes, &stage.ground.calls);
            deadline = Instant::now() + PATIENCE;
            continue;
        }
        let is_late = Instant::now() >= deadline;
        // After the last write of a life there is nothing left to look at.
        let is_ready = half == Half::Death || manager.has_looked();
        let rest = if expected.is_some() { REST } else { LONG_REST };
        let is_done = is_ready && manager.has_rested(rest) && stage.is_at(half).await;
        if !is_done && !is_late {
            continue;
        }
        let end = stage.described(half).await;
        let is_as_expected = expected.is_none_or(|expected| end == expected);
        if is_done && is_as_expected && strikes.missed().is_none() {
            manager.kill().await;
            return Ok(Lived { points: strikes.seen(), end, passed });
        }
        if is_late {
            manager.kill().await;
            return Err(failure(&strikes, is_done, &difference(expected.unwrap_or_default(), &end)));
        }
    }
}

fn failure(strikes: &Strikes, is_done: bool, difference: &str) -> String {
    let missed = strikes.missed().map(|case| {
        let seen: Vec<String> = strikes.seen().iter().map(ToString::to_string).collect();
        format!("never reached: {case}; seen: {seen:#?}\n")
    });
    format!("{}at rest and at the goal: {is_done}\n{difference}", missed.unwrap_or_default())
}

fn difference(expected: &[String], found: &[String]) -> String {
    let mut lines = Vec::new();
    let all: BTreeSet<&String> = expected.iter().chain(found).collect();
    for line in all {
        let count = |lines: &[String]| lines.iter().filter(|other| *other == line).count();
        let (before, after) = (count(expected), count(found));
        if before != after {
            lines.push(format!("{before} expected, {after} found: {line}"));
        }
    }
    lines.join("\n")
}

/// Both halves of a life, with strikes in each.
async fn story(
    ground: &Ground,
    strikes: (&[Case], &[Case]),
    expected: Option<&[String]>,
) -> Result<(Lived, Lived), String> {
    let stage = Stage::new(ground).await;
    let lived = async {
        let birth = live(&stage, Half::Birth, strikes.0, expected).await;
        let birth = birth.map_err(|failure| format!("birth with {}: {failure}", shown(strikes.0)))?;
        stage.delete().await;
        let death = live(&stage, Half::Death, strikes.1, Some(&[NOTHING.to_owned()])).await;
        let death = death.map_err(|failure| format!("death with {}: {failure}", shown(strikes.1)))?;
        Ok((birth, death))
    };
    let lived = tokio::select! {
        lived = lived => lived,
        () = stage.play() => unreachable!("it is played without end"),
    };
    stage.end().await;
    lived
}

fn shown(cases: &[Case]) -> String {
    let cases: Vec<String> = cases.iter().map(ToString::to_string).collect();
    format!("[{}]", cases.join(", "))
}

/// Stories until every case was struck, or the time is over. Says how many cases were.
async fn stories(
    ground: &Ground,
    (birth, death): &(Lived, Lived),
    kills: usize,
    until: Option<Instant>,
) -> Result<usize, String> {
    let (mut births, mut deaths) = (cases(&birth.points), cases(&death.points));
    let started = Instant::now();
    let (mut struck, mut failures) = (0, Vec::new());
    while !(births.is_empty() && deaths.is_empty()) {
        let strikes = (chain(&mut births, &birth.points, kills), chain(&mut deaths, &death.points, kills));
        let outcome = story(ground, (&strikes.0, &strikes.1), Some(&birth.end)).await;
        struck += strikes.0.len() + strikes.1.len();
        eprintln!("{:?}: birth {} death {}", started.elapsed(), shown(&strikes.0), shown(&strikes.1));
        match outcome {
            Ok((birth, death)) => {
                struck -= birth.passed.len() + death.passed.len();
                eprintln!("passed: birth {} death {}", shown(&birth.passed), shown(&death.passed));
                births.extend(birth.passed);
                deaths.extend(death.passed);
            }
            Err(failure) => {
                eprintln!("failed: {failure}");
                failures.push(failure);
            }
        }
        // However slow the machine is, something is compared.
        if until.is_some_and(|until| Instant::now() >= until) {
            break;
        }
    }
    eprintln!("{} cases of birth and {} of death are left out for time", births.len(), deaths.len());
    if failures.is_empty() { Ok(struck) } else { Err(failures.join("\n\n")) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manager_that_dies_after_any_write_leaves_nothing_twice_and_nothing_behind() {
    let _turn = turn_to_sweep().await;
    let started = Instant::now();
    let ground = Ground::new();
    let recorded = story(&ground, (&[], &[]), None).await.unwrap();
    eprintln!("{:?}: recorded", started.elapsed());
    let (birth, death) = &recorded;
    for point in birth.points.iter().chain(&death.points) {
        eprintln!("{point}{}", by_chance(point).map(|why| format!(": {why}")).unwrap_or_default());
    }
    for transport in ["management:", "tenant:", "cloud:"] {
        assert!(birth.points.iter().any(|point| point.name.starts_with(transport)), "{transport}");
    }
    none_is_too_many(&ground.calls);
    let is_whole = std::env::var("HANGAR_SWEEP").is_ok_and(|value| value == "all");
    let (kills, until) = if is_whole { (1, None) } else { (KILLS, Some(started + BUDGET)) };
    let struck = stories(&ground, &recorded, kills, until).await;
    clear(&SWEPT.client()).await;
    let struck = struck.unwrap_or_else(|failures| panic!("{failures}"));
    eprintln!("{:?}: {struck} cases", started.elapsed());
    assert!(struck > 0);
}
