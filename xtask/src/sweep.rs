//! `cargo xtask sweep`: every point of the crash sweeps of which CI runs a sample.
//!
//! Tests are chosen by parts of their names, so that a new sweep is run without being listed here. A part that
//! chooses no test is a failure: a sweep that was renamed would otherwise pass without a run.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};

/// Kill it everywhere.
#[derive(Debug, Args)]
pub(crate) struct Sweep {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
enum What {
    /// All of them; needs root
    All,
    /// A crash after every step of every plan, and a failure of every read, in memory
    Plans,
    /// A crash after every write of the controllers, against a real API server and the embedded cloud
    Controllers,
    /// Kill -9 of `hangar up` in each of its steps, then `down` or `up`; needs root
    Up,
}

/// Tests of one package that belong to a sweep.
struct Suite {
    what: What,
    package: &'static str,
    /// Which of the package's test binaries; all where empty.
    target: &'static [&'static str],
    /// Parts of the names of its tests; all where empty.
    words: &'static [&'static str],
}

/// What fails fastest comes first.
const SUITES: [Suite; 5] = [
    // All tests: each plan that one makes is made again with every read failed.
    Suite { what: What::Plans, package: "hangar-plan", target: &["--lib", "--test=plan"], words: &[] },
    Suite { what: What::Controllers, package: "hangar-kit", target: &["--test=kit"], words: &["crash::"] },
    Suite { what: What::Controllers, package: "hangar-host", target: &["--test=host"], words: &["a_crash"] },
    Suite {
        what: What::Controllers,
        package: "hangar-operator",
        target: &["--test=operator"],
        words: &["crash::", "survives_a_crash"],
    },
    Suite { what: What::Up, package: "hangar", target: &["--test=one_host"], words: &["killed::"] },
];

impl Suite {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("cargo");
        command.args(["test", "--locked", "--no-fail-fast", "--package", self.package]).args(self.target);
        command.arg("--").args(self.words).args(arguments).env("HANGAR_SWEEP", "all");
        if self.target == ["--test=operator"] {
            // Its tests wait for their turn with one of several API servers.
            command.arg("--test-threads=64");
        }
        command
    }

    /// The names of its tests.
    fn tests(&self) -> anyhow::Result<Vec<String>> {
        let output = self.command(&["--list"]).output().context("cargo test")?;
        if !output.status.success() {
            bail!("{}: {}", self.package, String::from_utf8_lossy(&output.stderr).trim());
        }
        let listed = String::from_utf8_lossy(&output.stdout).into_owned();
        let tests: Vec<String> =
            listed.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect();
        match self.words.iter().find(|word| !tests.iter().any(|test| test.contains(*word))) {
            Some(word) => bail!("{} has no test with {word} in its name", self.package),
            None => Ok(tests),
        }
    }
}

impl Sweep {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let wanted = self.what.unwrap_or(What::All);
        let suites: Vec<&Suite> =
            SUITES.iter().filter(|suite| wanted == What::All || suite.what == wanted).collect();
        // All before the first is run: that takes long.
        let mut listed = Vec::new();
        for suite in suites {
            let tests = suite.tests()?;
            println!("{}\n  {}", suite.package, tests.join("\n  "));
            listed.push((suite, tests.len()));
        }
        let mut summary = Vec::new();
        let mut failed = Vec::new();
        for (suite, count) in listed {
            let start = Instant::now();
            let is_good = suite.command(&["--nocapture"]).status().context("cargo test")?.success();
            let verdict = if is_good { "ok" } else { "FAILED" };
            if !is_good {
                failed.push(suite.package);
            }
            let seconds = start.elapsed().as_secs();
            summary.push(format!("{:<16} {count:>3} tests {seconds:>6} s  {verdict}", suite.package));
        }
        println!("\n{}", summary.join("\n"));
        if !failed.is_empty() {
            bail!("the sweep failed in {}", failed.join(", "));
        }
        Ok(())
    }
}
