//! `cargo xtask sweep`: every point of a sweep of which CI runs a sample.

use std::process::Command;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};

/// Kill it everywhere.
#[derive(Debug, Args)]
pub(crate) struct Sweep {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Kill -9 of `hangar up` in each of its steps, then `down` or `up`; needs root
    Up,
}

impl Sweep {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let filter = match self.what {
            What::Up => "a_killed_up_is_repaired_or_removed",
        };
        let status = Command::new("cargo")
            .args([
                "test",
                "--locked",
                "--package=hangar",
                "--test=hangar",
                filter,
                "--",
                "--exact",
                "--nocapture",
            ])
            .env("HANGAR_SWEEP", "all")
            .status()
            .context("cargo test")?;
        if !status.success() {
            bail!("the sweep failed");
        }
        Ok(())
    }
}
