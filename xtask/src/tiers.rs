//! `cargo xtask check`, `test`, `e2e` and `all`: what decides whether a change is good, in tiers by what they need.
//!
//! `./test` calls `all` after it has made the machine ready, and CI calls `./test`. Every test target belongs to one tier;
//! a new one that is not in the table fails the first step, so that no test is left out in silence.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use hangar_parts::{Parts, Set};

use crate::book;
use crate::edges::{self, Edges};
use crate::installed::Installed;

/// What tests need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tier {
    /// Neither root nor Go: formatting, lints, crate edges, licences, unit and golden tests.
    Check,
    /// A real API server, built with Go once.
    Test,
    /// Root, namespaces and all programs of one host.
    EndToEnd,
}

/// The integration tests. Unit tests are in [`Tier::Check`].
const TARGETS: [(&str, Tier); 18] = [
    ("conversion", Tier::Check),
    ("cloud", Tier::Check),
    ("corpus", Tier::Check),
    ("openstack", Tier::Check),
    ("pki", Tier::Check),
    ("plan", Tier::Check),
    ("versions", Tier::Check),
    ("wire", Tier::Check),
    ("crds", Tier::Test),
    ("etcd", Tier::Test),
    ("testbed", Tier::Test),
    ("kit", Tier::Test),
    ("hangar", Tier::Test),
    ("operator", Tier::Test),
    ("machine", Tier::EndToEnd),
    ("namespaces", Tier::EndToEnd),
    ("host", Tier::EndToEnd),
    ("one_host", Tier::EndToEnd),
];

/// Tests that wait more than they work, so that more of them run at a time than there are processors: for programs that
/// start, for clouds that are slow, for their turn with one of several API servers.
const WAITING: [(&str, &str); 2] = [("hangar", "--test-threads=4"), ("operator", "--test-threads=64")];

impl Tier {
    pub(crate) const ALL: [Self; 3] = [Self::Check, Self::Test, Self::EndToEnd];

    fn name(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Test => "test",
            Self::EndToEnd => "e2e",
        }
    }

    fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Check => {
                cargo("format", &["fmt", "--all", "--check"], &[])?;
                step("crate edges", Edges::run)?;
                step("test targets", every_target_has_a_tier)?;
                step("licences and bans", || Installed::DENY.run(&["check", "bans", "licenses", "sources"]))?;
                let lints =
                    ["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"];
                cargo("lints", &lints, &[])?;
            }
            Self::Test => {
                step("programs", || {
                    Parts::from_env()?.ensure(Set::FOR_TESTS)?;
                    Ok(())
                })?;
                // A test starts it as a program of its own, and cargo builds no examples where tests are named.
                let example = ["build", "--locked", "--package", "hangar-testbed", "--example", "serve"];
                cargo("the example that a test starts", &example, &[])?;
            }
            Self::EndToEnd => {}
        }
        let mut arguments = vec!["test", "--workspace", "--locked", "--no-fail-fast"];
        if self == Self::Check {
            arguments.extend(["--lib", "--bins"]);
        }
        let is_waiting = |target: &str| WAITING.iter().any(|(waiting, _)| *waiting == target);
        for (target, _) in TARGETS.iter().filter(|(target, tier)| *tier == self && !is_waiting(target)) {
            arguments.extend(["--test", target]);
        }
        cargo("tests", &arguments, &[])?;
        if self == Self::Test {
            for (target, threads) in WAITING {
                let arguments = ["test", "--workspace", "--locked", "--test", target, "--", threads];
                cargo(&format!("tests of {target}"), &arguments, &[])?;
            }
        }
        if self == Self::Check {
            cargo("examples in the documentation", &["test", "--workspace", "--locked", "--doc"], &[])?;
            let strict = [("RUSTDOCFLAGS", "--deny warnings")];
            let documentation = ["doc", "--workspace", "--no-deps", "--locked", "--document-private-items"];
            cargo("documentation", &documentation, &strict)?;
            step("book", book::run)?;
        }
        Ok(())
    }
}

/// Runs the tiers one after the other, all of them also when one fails, and prints the time of each.
pub(crate) fn run(tiers: &[Tier]) -> anyhow::Result<()> {
    let mut results: Vec<(Tier, Duration, anyhow::Result<()>)> = Vec::new();
    for tier in tiers {
        println!("=== {}", tier.name());
        let start = Instant::now();
        let result = tier.run();
        if let Err(error) = &result {
            eprintln!("=== {}: {error:#}", tier.name());
        }
        results.push((*tier, start.elapsed(), result));
    }
    for (tier, took, result) in &results {
        let verdict = if result.is_ok() { "ok" } else { "FAILED" };
        println!("=== {}: {verdict}, {} s", tier.name(), took.as_secs());
    }
    match results.into_iter().find_map(|(_, _, result)| result.err()) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Compares the table with the workspace.
fn every_target_has_a_tier() -> anyhow::Result<()> {
    let metadata = edges::metadata()?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages.flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let present: BTreeSet<&str> = targets
        .filter(|target| target["kind"].as_array().into_iter().flatten().any(|kind| kind == "test"))
        .filter_map(|target| target["name"].as_str())
        .collect();
    let listed: BTreeSet<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    if present != listed {
        let differing: Vec<_> = present.symmetric_difference(&listed).collect();
        bail!("the table of test targets (xtask/src/tiers.rs) and the workspace differ in {differing:?}");
    }
    println!("test targets: {}, each in one tier", present.len());
    Ok(())
}

fn step(name: &str, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    println!("== {name}");
    let start = Instant::now();
    work().with_context(|| name.to_owned())?;
    println!("== {name}: ok, {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

fn cargo(name: &str, arguments: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<()> {
    step(name, || {
        let status = Command::new("cargo")
            .args(arguments)
            .envs(variables.iter().copied())
            .status()
            .context("cargo")?;
        if !status.success() {
            bail!("`cargo {}` failed", arguments.join(" "));
        }
        Ok(())
    })
}
