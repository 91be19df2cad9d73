//! `cargo xtask bench control-plane`
//!
//! Two halves. `times` measures on one host, with real pods: from apply to Available, beside the same objects by hand.
//! `scale` measures without pods: the manager's memory with many control planes, and what it calls while nothing
//! changes.

mod counts;
mod namespace;
mod scale;
mod state;
mod times;

use std::path::PathBuf;

use clap::Args;

/// Control planes alone, without workers.
#[derive(Debug, Args)]
pub(crate) struct ControlPlane {
    /// Only times on one host, beside the same objects by hand
    #[arg(long, conflicts_with = "scale")]
    times: bool,
    /// Only memory and calls with many control planes, without a pod
    #[arg(long)]
    scale: bool,
    #[command(flatten)]
    of_times: times::Times,
    #[command(flatten)]
    of_scale: scale::Scale,
    /// The programs of the second half, which the bench starts again with inside a network namespace
    #[arg(long, hide = true, num_args = 2, value_names = ["HANGAR", "ACTOR"])]
    inside: Option<Vec<PathBuf>>,
}

impl ControlPlane {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        if let Some([hangar, actor]) = self.inside.as_deref() {
            return self.of_scale.run(hangar, actor);
        }
        if !self.scale {
            self.of_times.run()?;
        }
        if !self.times {
            scale::Scale::begin()?;
        }
        Ok(())
    }
}
