//! `cargo xtask bench`: measurements as ratios within one run, against a floor or a peer on the same machine.
//!
//! Absolute numbers are shown for orientation; only ratios are worth comparing between machines and days. Nothing here
//! fails because something was slow.

mod cluster;
mod control_plane;
mod kubectl;
mod memory;
mod place;
mod process;
mod recorded;
mod shell;
mod up;
mod watch;

use anyhow::Context;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

/// Measure.
#[derive(Debug, Args)]
pub struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The manager without work: size of the binary, time to ready, memory at rest
    Shell(shell::Shell),
    /// One idle control plane, all parts, as plain processes with what the plan renders; needs root
    Memory(memory::Memory),
    /// A warm `hangar up` beside the same programs started one after another; needs root
    Up(up::Up),
    /// A cluster from apply to a Ready worker, beside the same objects and server made by hand; needs root
    Cluster(cluster::Cluster),
    /// Control planes: from apply to Available beside the same by hand (needs root); memory and calls with many
    ControlPlane(control_plane::ControlPlane),
}

impl Bench {
    pub fn run(&self) -> anyhow::Result<()> {
        match &self.what {
            What::Shell(shell) => shell.run(),
            What::Memory(memory) => memory.run(),
            What::Up(up) => up.run(),
            What::Cluster(cluster) => cluster.run(),
            What::ControlPlane(control_plane) => control_plane.run(),
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> anyhow::Result<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().context("nothing was measured")
}

/// An object as it was applied: of its metadata only the name and what is named here, and no status.
fn as_applied(object: &Value, kept: &[&str]) -> Value {
    let mut bare = object.clone();
    let mut metadata = json!({"name": object["metadata"]["name"]});
    for field in kept.iter().filter(|field| !object["metadata"][field].is_null()) {
        metadata[field] = object["metadata"][field].clone();
    }
    bare["metadata"] = metadata;
    if let Some(fields) = bare.as_object_mut() {
        fields.remove("status");
    }
    bare
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert!((median([3.0, 1.0, 2.0].into_iter()).unwrap() - 2.0).abs() < f64::EPSILON);
        assert!(median(std::iter::empty()).is_err());
    }
}
