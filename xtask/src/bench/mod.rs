//! `cargo xtask bench`: measurements as ratios within one run, against a floor or a peer on the same machine.
//!
//! Absolute numbers are shown for orientation; only ratios are worth comparing between machines and days. Nothing here
//! fails because something was slow.

mod cluster;
mod process;
mod shell;
mod up;

use clap::{Args, Subcommand};

/// Measure.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The manager without work: size of the binary, time to ready, memory at rest
    Shell(shell::Shell),
    /// A warm `hangar up` beside the same programs started one after another; needs root
    Up(up::Up),
    /// A cluster from apply to a Ready worker, beside the same objects and server made by hand; needs root
    Cluster(cluster::Cluster),
}

impl Bench {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match &self.what {
            What::Shell(shell) => shell.run(),
            What::Up(up) => up.run(),
            What::Cluster(cluster) => cluster.run(),
        }
    }
}
