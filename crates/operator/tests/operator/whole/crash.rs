//! The crash sweep over a whole Cluster: the manager with all its controllers is dropped right after any of its writes
//! was committed, in the management cluster, in the tenant or in the cloud, with and without the answer, and a new one
//! must come to the same end.
//!
//! A run without faults records every write by name. Then, story by story, a Cluster is made and deleted in a world of
//! its own, and one manager dies in each half. Comparisons are made at rest, at the end of each half, and tell objects
//! that are there twice. A point that is never reached fails the test; those that are reached by chance are named in
//! `strikes::by_chance` with the reason. All cases take an hour or so; a time budget cuts the list here, which is in the
//! same order every time, and `HANGAR_SWEEP=all` takes every one.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::manager::Manager;
use super::stage::{Ground, Half, Stage, clear};
use super::strikes::{Case, Point, Strikes, cases};
use crate::hosted_control_plane::world::turn;

/// No story begins after this long, recording included.
const BUDGET: Duration = Duration::from_secs(75);

/// Nothing takes this long; it only keeps a manager that never rests from hanging the sweep.
const PATIENCE: Duration = Duration::from_secs(180);

/// A manager that only pauses between two of its own events is not at rest.
const REST: Duration = Duration::from_secs(1);

/// A difference, or a point that was missed, is believed after this long: a busy machine may be late with an event.
const LONG_REST: Duration = Duration::from_secs(8);

/// What became of half a life.
struct Lived {
    points: Vec<Point>,
    end: Vec<String>,
}

/// One half: a manager, a second one if the first is struck, and a comparison at rest.
async fn live(
    stage: &Stage<'_>,
    half: Half,
    armed: Option<&Case>,
    expected: Option<&[String]>,
) -> Result<Lived, String> {
    let first = Strikes::new(&stage.world.namespace, armed);
    let mut manager = Manager::start(&first);
    let mut is_first = true;
    let deadline = Instant::now() + PATIENCE;
    loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        if is_first && first.has_fired() {
            manager.kill().await;
            manager = Manager::start(&Strikes::new(&stage.world.namespace, None));
            is_first = false;
            continue;
        }
        let is_late = Instant::now() >= deadline;
        let is_done = manager.has_rested(REST) && stage.is_at(half).await;
        if !is_done && !is_late {
            continue;
        }
        let end = stage.described(half).await;
        let is_missed = is_first && first.is_armed();
        let is_certain = is_late || manager.has_rested(LONG_REST);
        let is_as_expected = expected.is_none_or(|expected| end == expected);
        if is_done && is_as_expected && !is_missed && (expected.is_some() || is_certain) {
            manager.kill().await;
            return Ok(Lived { points: first.seen(), end });
        }
        if is_certain {
            manager.kill().await;
            let seen: Vec<String> =
                first.seen().iter().map(|point| format!("{} #{}", point.name, point.occurrence)).collect();
            return Err(match (is_as_expected, is_missed) {
                (true, true) => format!("never reached; seen: {seen:#?}"),
                _ => format!(
                    "at rest and at the goal: {is_done}\n{}",
                    difference(expected.unwrap_or_default(), &end)
                ),
            });
        }
    }
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

/// Both halves of a life, with a strike in each.
async fn story(
    ground: &Ground,
    strikes: (Option<&Case>, Option<&Case>),
    expected: Option<&(Lived, Lived)>,
) -> Result<(Lived, Lived), String> {
    let stage = Stage::new(ground).await;
    let lived = async {
        let of = |half: Half, case: Option<&Case>| {
            let case = case.map_or("nothing".to_owned(), ToString::to_string);
            move |failure: String| format!("{half:?}, struck at {case}: {failure}")
        };
        let end = expected.map(|(birth, _)| birth.end.as_slice());
        let birth = live(&stage, Half::Birth, strikes.0, end).await.map_err(of(Half::Birth, strikes.0))?;
        stage.delete().await;
        let end = expected.map(|(_, death)| death.end.as_slice());
        let death = live(&stage, Half::Death, strikes.1, end).await.map_err(of(Half::Death, strikes.1))?;
        Ok((birth, death))
    };
    let lived = tokio::select! {
        lived = lived => lived,
        () = stage.play() => unreachable!("it is played without end"),
    };
    stage.end().await;
    lived
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manager_that_dies_after_any_write_leaves_nothing_twice_and_nothing_behind() {
    let _turn = turn().await;
    let started = Instant::now();
    let ground = Ground::new();
    let recorded = story(&ground, (None, None), None).await.unwrap();
    let (birth, death) = &recorded;
    for (half, lived) in [("birth", birth), ("death", death)] {
        for point in &lived.points {
            eprintln!("{half}: {} #{}", point.name, point.occurrence);
        }
        eprintln!("{half} ends with {:#?}", lived.end);
    }
    assert_eq!(death.end, ["Secret demo-cloud-config, owners []"], "only what is the person's own is left");
    for transport in ["management:", "tenant:", "cloud:"] {
        assert!(birth.points.iter().any(|point| point.name.starts_with(transport)), "{transport}");
    }

    let is_whole = std::env::var("HANGAR_SWEEP").is_ok_and(|value| value == "all");
    let (births, deaths) = (cases(&birth.points), cases(&death.points));
    let stories = births.len().max(deaths.len());
    let (mut told, mut failures) = (0, Vec::new());
    for index in 0..stories {
        // However slow the machine is, something is compared.
        if !is_whole && told > 0 && started.elapsed() >= BUDGET {
            break;
        }
        let strikes = (births.get(index), deaths.get(index));
        let result = story(&ground, strikes, Some(&recorded)).await;
        let shown = |case: Option<&Case>| case.map_or("nothing".to_owned(), ToString::to_string);
        let outcome = if result.is_ok() { "ok" } else { "FAILED" };
        eprintln!("{:?} {outcome}: {} | {}", started.elapsed(), shown(strikes.0), shown(strikes.1));
        failures.extend(result.err().inspect(|failure| eprintln!("{failure}")));
        told += 1;
    }
    eprintln!(
        "{told} of {stories} stories; {} cases at {} writes of birth, {} at {} of death",
        births.len(),
        birth.points.len(),
        deaths.len(),
        death.points.len()
    );
    clear(&hangar_testbed::Testbed::client(&crate::hosted_control_plane::world::BED)).await;
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
