//! `cargo xtask bench up`
//!
//! Compares a warm `hangar up`, from nothing to an available manager, with its floor: the same programs as plain
//! processes of a machine, each awaited before the next (`up/bare.rs` lists them). Warm means that programs, packages
//! and shared images are in the cache. Both run in turn, so that other load of the host affects both.
//!
//! Certificates count on neither side: the floor finds them made, and the time that `up` takes to make them is
//! subtracted. Removing an environment counts on neither side.
//!
//! The state directory is fixed so that a run that was killed is cleaned up by the next; hence one run at a time.

mod bare;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use clap::Args;
use hangar_parts::{Parts, Set};

use self::bare::{Bare, Taken};
use super::median;
use super::process::{own_program, words_of};
use super::shell::build;

const NAME: &str = "bench";
const CERTIFICATES: &str = "certificates";

/// A warm `hangar up`.
#[derive(Debug, Args)]
pub(crate) struct Up {
    /// How often each is run; medians count
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=20))]
    runs: u16,
    /// Measure the release profile; its image of the manager is a fourth of the size
    #[arg(long)]
    release: bool,
    /// Where both environments live meanwhile; removed before and after
    #[arg(long, value_name = "DIRECTORY", default_value = "/var/lib/hangar-bench")]
    state: PathBuf,
    /// Addresses that nothing else on this host uses
    #[arg(long, value_name = "CIDR", default_value = "100.73.0.0/20")]
    range: String,
}

impl Up {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let parts = Parts::from_env()?;
        parts.ensure(&[Set::Etcd36, Set::Kubernetes134, Set::KubeVip, Set::KubeVipCloudProvider])?;
        let profile: &[&str] = if self.release { &["--release"] } else { &[] };
        let hangar = build(&[&["--package=hangar", "--bin=hangar"], profile].concat())?;
        let machines = build(&[&["--package=hangar-machine", "--bin=hangar-machine"], profile].concat())?;

        let place = Place::new(&self.state, &hangar, &self.range)?;
        // Fills the cache, and tells what the recipe consists of.
        place.up()?;
        let bare = Bare::of(&self.state, NAME, &parts, &place.hangar, machines)?;
        place.down(NAME)?;

        let (mut ups, mut bares) = (Vec::new(), Vec::new());
        for run in 1..=self.runs {
            let up = place.up()?;
            place.down(NAME)?;
            let floor = bare.run()?;
            place.down(Bare::NAME)?;
            eprintln!("run {run}: up {:.1} s, bare recipe {:.1} s", up.seconds, floor.seconds);
            ups.push(up);
            bares.push(floor);
        }
        report(&ups, &bares)
    }
}

/// Where the environments are; gone with it, whatever happens.
struct Place<'arguments> {
    state: &'arguments Path,
    hangar: PathBuf,
    range: &'arguments str,
    _lock: File,
}

impl<'arguments> Place<'arguments> {
    fn new(state: &'arguments Path, built: &Path, range: &'arguments str) -> anyhow::Result<Self> {
        let (hangar, lock) = own_program(state, built)?;
        let place = Self { state, hangar, range, _lock: lock };
        // What a killed run left.
        place.down(NAME)?;
        place.down(Bare::NAME)?;
        Ok(place)
    }

    fn command(&self, verb: &str, name: &str) -> Command {
        let mut command = Command::new(&self.hangar);
        command.args([verb, "--name", name, "--state"]).arg(self.state);
        command
    }

    fn up(&self) -> anyhow::Result<Taken> {
        let start = Instant::now();
        let words = words_of(self.command("up", NAME).args(["--no-cluster", "--range", self.range]))?;
        let seconds = start.elapsed().as_secs_f64();
        Ok(Taken { seconds, steps: words.lines().filter_map(step).collect() })
    }

    fn down(&self, name: &str) -> anyhow::Result<()> {
        words_of(&mut self.command("down", name)).map(drop)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        for name in [NAME, Bare::NAME] {
            if let Err(error) = self.down(name) {
                eprintln!("{error:#}");
                return;
            }
        }
        if let Err(error) = fs::remove_dir_all(self.state) {
            eprintln!("{} stays: {error}", self.state.display());
        }
    }
}

/// A line such as `   4.0s  machine: made, images linked`.
fn step(line: &str) -> Option<(String, f64)> {
    let (time, rest) = line.trim_start().split_once("s  ")?;
    let (name, _) = rest.split_once(':')?;
    Some((name.to_owned(), time.parse().ok()?))
}

fn report(ups: &[Taken], bares: &[Taken]) -> anyhow::Result<()> {
    let whole = median(ups.iter().map(|taken| taken.seconds))?;
    let floor = median(bares.iter().map(|taken| taken.seconds))?;
    let without = median(ups.iter().map(|taken| taken.seconds - certificates(taken)))?;
    println!("| measure | warm `up` | bare recipe | ratio |");
    println!("|---|---|---|---|");
    println!("| from nothing to a ready manager | {without:.1} s | {floor:.1} s | {:.2} |", without / floor);
    println!("| the same, `up` with its certificates | {whole:.1} s | {floor:.1} s | {:.2} |", whole / floor);
    for (title, takens) in [("step of `up`", ups), ("process of the bare recipe", bares)] {
        println!("\n| {title} | seconds |\n|---|---|");
        let mut times = BTreeMap::<&str, Vec<f64>>::new();
        for (name, seconds) in takens.iter().flat_map(|taken| &taken.steps) {
            times.entry(name).or_default().push(*seconds);
        }
        for (name, _) in takens.first().into_iter().flat_map(|taken| &taken.steps) {
            let seconds = median(times.remove(name.as_str()).into_iter().flatten())?;
            println!("| {name} | {seconds:.2} |");
        }
    }
    Ok(())
}

fn certificates(taken: &Taken) -> f64 {
    taken.steps.iter().filter(|(name, _)| name == CERTIFICATES).map(|(_, seconds)| seconds).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_from_lines() {
        assert_eq!(step("   4.0s  machine: made, images linked"), Some(("machine".to_owned(), 4.0)));
        assert_eq!(step("  kubectl get pods -A"), None);
    }
}
