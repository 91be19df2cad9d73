//! Prints the tables of results.

use std::collections::BTreeMap;

use anyhow::Context;

use super::Run;
use super::timeline::{ETCD_READY, NODE_READY, SERVING};
use crate::median;

/// Prints medians, ratios and where the time goes.
pub(super) fn print(ours: &[Run], floors: &[Run]) -> anyhow::Result<()> {
    println!("| measure | Hangar | by hand | ratio |\n|---|---|---|---|");
    let measures = [
        ("apply to etcd Ready", ETCD_READY),
        ("apply to an API server that answers", SERVING),
        ("apply to a Ready worker", NODE_READY),
    ];
    for (title, name) in measures {
        let (own, floor) = (median_of(ours, name)?, median_of(floors, name)?);
        println!("| {title} | {own:.1} s | {floor:.1} s | {:.2} |", own / floor);
    }
    let between = |runs: &[Run]| {
        median(
            runs.iter()
                .filter_map(|run| Some(run.timeline.seconds(NODE_READY)? - run.timeline.seconds(SERVING)?)),
        )
    };
    let (own, floor) = (between(ours)?, between(floors)?);
    println!("| from there to a Ready worker | {own:.1} s | {floor:.1} s | {:.2} |", own / floor);

    for (title, runs) in [("Hangar", ours), ("by hand", floors)] {
        println!("\n| {title} | seconds since apply | seconds since the line before |\n|---|---|---|");
        let mut before = 0.0;
        for (name, seconds) in moments(runs)? {
            println!("| {name} | {seconds:.1} | {:.1} |", seconds - before);
            before = seconds;
        }
    }
    println!("\n| run | load | Hangar | load | by hand | ratio |\n|---|---|---|---|---|---|");
    for (number, (own, floor)) in ours.iter().zip(floors).enumerate() {
        let times = |run: &Run| Some((run.timeline.seconds(SERVING)?, run.timeline.seconds(NODE_READY)?));
        let (own_times, floor_times) = times(own).zip(times(floor)).context("a run has no end")?;
        println!(
            "| {} | {:.0} | {:.1} / {:.1} | {:.0} | {:.1} / {:.1} | {:.2} / {:.2} |",
            number + 1,
            own.load,
            own_times.0,
            own_times.1,
            floor.load,
            floor_times.0,
            floor_times.1,
            own_times.0 / floor_times.0,
            own_times.1 / floor_times.1,
        );
    }
    Ok(())
}

/// Medians of all moments, in the order of time.
fn moments(runs: &[Run]) -> anyhow::Result<Vec<(&'static str, f64)>> {
    let mut times = BTreeMap::<&'static str, Vec<f64>>::new();
    for (name, seconds) in runs.iter().flat_map(|run| run.timeline.in_order()) {
        times.entry(name).or_default().push(seconds);
    }
    let mut moments = Vec::new();
    for (name, seconds) in times {
        moments.push((name, median(seconds.into_iter())?));
    }
    moments.sort_by(|left, right| left.1.total_cmp(&right.1));
    Ok(moments)
}

fn median_of(runs: &[Run], name: &str) -> anyhow::Result<f64> {
    median(runs.iter().filter_map(|run| run.timeline.seconds(name)))
}
