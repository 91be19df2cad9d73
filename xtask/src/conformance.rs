//! `cargo xtask conformance`: Kubernetes' own conformance tests against a tenant on this host.
//!
//! The tests and their programs are built first, which takes longer than Kubernetes itself; the environment, the run and the
//! report are a test of `hangar` (`crates/hangar/tests/one_host/conformance`), which is given what was asked for.

use std::process::Command;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use hangar_parts::{Parts, Set};
use serde_json::json;

const TEST: &str = "conformance::the_tests_of_kubernetes_itself_pass";

/// Kubernetes' own conformance tests against a tenant with three of everything; builds them first, and needs root
#[derive(Debug, Args)]
pub(crate) struct Conformance {
    /// Only tests whose names this regular expression of Go matches
    #[arg(long, value_name = "REGEX")]
    focus: Option<String>,

    /// Without the tests that disturb whatever else runs in the cluster
    #[arg(long)]
    skip_disruptive: bool,

    /// Only the part in which nothing is lost, or only that in which an API server is deleted every two minutes
    #[arg(long)]
    only: Option<Only>,

    /// Tests at a time
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    processes: u32,

    /// Leave the environment
    #[arg(long)]
    keep: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Only {
    Undisturbed,
    Disturbed,
}

impl Conformance {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        Parts::from_env()?.ensure(&[Set::Kubernetes134, Set::Etcd36, Set::Conformance134])?;
        let arguments = ["test", "--locked", "--package", "hangar", "--test", "one_host", "--"];
        let status = Command::new("cargo")
            .args(arguments)
            .args(["--include-ignored", "--nocapture", "--exact", TEST])
            .env("HANGAR_CONFORMANCE", self.asked())
            .status()
            .context("cargo test")?;
        if !status.success() {
            bail!("the conformance tests failed");
        }
        Ok(())
    }

    /// As the test reads it.
    fn asked(&self) -> String {
        let only = self.only.map(|only| match only {
            Only::Undisturbed => "undisturbed",
            Only::Disturbed => "disturbed",
        });
        json!({
            "focus": self.focus,
            "skipDisruptive": self.skip_disruptive,
            "only": only,
            "processes": self.processes,
            "keep": self.keep,
        })
        .to_string()
    }
}
