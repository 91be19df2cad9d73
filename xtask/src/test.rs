//! `cargo xtask test`: everything that decides whether a change is good, in the order of what fails fastest.
//!
//! `./test` calls it after it has made the machine ready, and CI calls `./test`. Nothing else decides.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};
use clap::Args;
use hangar_parts::{Parts, Set};

use crate::edges::Edges;

/// Check and test everything.
#[derive(Debug, Args)]
pub(crate) struct Test {
    /// Skip formatting, lints and documentation: only run the tests
    #[arg(long)]
    tests_only: bool,
}

impl Test {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let start = Instant::now();
        step("real Kubernetes", || {
            Parts::from_env()?.ensure(Set::FOR_TESTS)?;
            Ok(())
        })?;
        if !self.tests_only {
            cargo("format", &["fmt", "--all", "--check"], &[])?;
            step("crate edges", Edges::run)?;
            cargo(
                "lints",
                &["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"],
                &[],
            )?;
        }
        cargo("tests", &["test", "--workspace", "--locked", "--no-fail-fast"], &[])?;
        if !self.tests_only {
            let strict = [("RUSTDOCFLAGS", "--deny warnings")];
            cargo(
                "documentation",
                &["doc", "--workspace", "--no-deps", "--locked", "--document-private-items"],
                &strict,
            )?;
        }
        println!("all good after {} s", start.elapsed().as_secs());
        Ok(())
    }
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
