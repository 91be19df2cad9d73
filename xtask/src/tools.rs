//! `cargo xtask tools`: builds the pinned programs into the cache. All of the work is in `hangar_parts`.

use anyhow::Result;
use clap::Args;
use hangar_parts::{BuildResult, Parts, Set, State};

/// Build the pinned real programs (Kubernetes, etcd, …) into the cache, or do nothing if they are there.
#[derive(Debug, Args)]
pub(crate) struct Tools {
    /// Sets to build; those that a test run needs if none is named.
    sets: Vec<Set>,

    /// Show every set with its version, state and size, and build nothing.
    #[arg(long)]
    list: bool,

    /// Build every set except those that are only built when named.
    #[arg(long, conflicts_with = "sets")]
    all: bool,
}

impl Tools {
    pub(crate) fn run(&self) -> Result<()> {
        let parts = Parts::from_env()?;
        if self.list {
            list(&parts);
            return Ok(());
        }
        let outcomes = parts.ensure(&self.chosen())?;
        report(&parts, &outcomes);
        Ok(())
    }

    fn chosen(&self) -> Vec<Set> {
        if self.all {
            Set::ALL.iter().copied().filter(|set| !set.is_on_demand()).collect()
        } else if self.sets.is_empty() {
            Set::FOR_TESTS.to_vec()
        } else {
            self.sets.clone()
        }
    }
}

fn report(parts: &Parts, outcomes: &[BuildResult]) {
    for outcome in outcomes {
        match outcome {
            BuildResult::Built(..) => {}
            BuildResult::Present(set) if parts.is_overridden(*set) => {
                println!("{set} {}: overridden", set.version());
            }
            BuildResult::Present(set) => println!("{set} {}: up to date", set.version()),
        }
    }
    let built = outcomes.iter().filter(|outcome| matches!(outcome, BuildResult::Built(..))).count();
    let cache = parts.cache().root().display();
    match built {
        0 => println!("nothing to do, all is in {cache}"),
        count => println!("{count} built into {cache}"),
    }
}

fn list(parts: &Parts) {
    println!("{:<26} {:<10} {:<12} {:>9} {:>7}  programs", "set", "version", "state", "MiB", "built");
    for &set in Set::ALL {
        let (state, size, took) = match parts.state(set) {
            _ if parts.is_overridden(set) => ("overridden", String::new(), String::new()),
            State::Absent if set.is_on_demand() => ("on demand", String::new(), String::new()),
            State::Absent => ("absent", String::new(), String::new()),
            State::Unfinished => ("unfinished", String::new(), String::new()),
            State::Complete(stamp) => {
                let mebibytes = format!("{:.1}", mebibytes(stamp.bytes));
                ("complete", mebibytes, format!("{}:{:02}", stamp.seconds / 60, stamp.seconds % 60))
            }
        };
        let programs: Vec<_> = set.recipe().programs.iter().map(|program| program.name).collect();
        let programs = if programs.is_empty() { "(files)".to_owned() } else { programs.join(" ") };
        println!("{:<26} {:<10} {state:<12} {size:>9} {took:>7}  {programs}", set.name(), set.version());
    }
    println!("cache: {}", parts.cache().root().display());
}

#[allow(clippy::cast_precision_loss, reason = "shown with one decimal")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / (1024.0 * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(sets: &[Set], all: bool) -> Tools {
        Tools { sets: sets.to_vec(), list: false, all }
    }

    #[test]
    fn a_test_run_needs_few_sets_and_all_means_none_on_demand() {
        assert_eq!(tools(&[], false).chosen(), Set::FOR_TESTS);
        assert_eq!(tools(&[Set::Helm], false).chosen(), [Set::Helm]);
        let all = tools(&[], true).chosen();
        assert!(all.contains(&Set::Kubernetes133) && !all.contains(&Set::Kubernetes137));
    }
}
