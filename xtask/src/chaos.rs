//! `cargo xtask chaos`: for as long as you like what CI does for a minute. The order comes from a seed, which is printed.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};

/// Disturb something while it is used.
#[derive(Debug, Args)]
pub(crate) struct Chaos {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Members of etcd are killed, restarted, replaced, added and removed while somebody writes; needs root
    Etcd {
        /// For how long
        #[arg(long, default_value_t = 10)]
        minutes: u64,
        /// The order of another run
        #[arg(long)]
        seed: Option<u64>,
    },
}

const TEST: &str = "hosted_control_plane::healing::chaos::etcd_survives_chaos_while_somebody_writes";

impl Chaos {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let What::Etcd { minutes, seed } = &self.what;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock")?;
        let seed = seed.unwrap_or(now.as_secs());
        println!("seed {seed}");
        // A test that was renamed would otherwise pass without a run.
        let listed = cargo("--list").output().context("cargo test")?;
        if !String::from_utf8_lossy(&listed.stdout).contains(TEST) {
            bail!("there is no test {TEST}: {}", String::from_utf8_lossy(&listed.stderr).trim());
        }
        let mut command = cargo("--nocapture");
        command.env("HANGAR_CHAOS_MINUTES", minutes.to_string()).env("HANGAR_CHAOS_SEED", seed.to_string());
        if !command.status().context("cargo test")?.success() {
            bail!("etcd did not survive; again with --minutes {minutes} --seed {seed}");
        }
        Ok(())
    }
}

fn cargo(argument: &str) -> Command {
    let mut command = Command::new("cargo");
    command.args(["test", "--locked", "--package=hangar-operator", "--test=operator"]);
    command.args(["--", "--exact", TEST, argument]);
    command
}
