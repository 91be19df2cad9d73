//! Developer commands: `cargo xtask <command>`.

mod beside;
mod book;
mod chaos;
mod conformance;
mod edges;
mod fuzz;
mod installed;
mod sweep;
mod tiers;
mod tools;
mod upgrade;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use self::tiers::Tier;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Developer commands of Hangar.")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Tools(tools::Tools),
    /// Format, lints, crate edges, licences, unit and golden tests, the book: without root and without Go
    Check,
    /// Tests that need a real API server
    Test,
    /// Tests that need root: machines, the cloud's namespaces, one host
    E2e {
        /// Only the upgrade of a tenant to this version, such as v1.37.1, from the minor before; builds both first
        #[arg(long, value_name = "VERSION")]
        kubernetes: Option<String>,
    },
    /// Everything that CI runs: check, test, e2e
    All,
    /// Build the book and check its links
    Book,
    Edges(edges::Edges),
    Fuzz(fuzz::Fuzz),
    Sweep(sweep::Sweep),
    Chaos(chaos::Chaos),
    /// A control plane beside Cluster API's own core, each pinned release of which is built with Go first
    Beside,
    Conformance(conformance::Conformance),
    Bench(hangar_bench::Bench),
}

fn main() -> ExitCode {
    match run(&Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // One line with its causes: the standard rendering adds a backtrace where RUST_BACKTRACE is set.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Tools(tools) => tools.run(),
        Command::Check => tiers::run(&[Tier::Check]),
        Command::Test => tiers::run(&[Tier::Test]),
        Command::E2e { kubernetes: None } => tiers::run(&[Tier::EndToEnd]),
        Command::E2e { kubernetes: Some(version) } => upgrade::run(version),
        Command::All => tiers::run(&Tier::ALL),
        Command::Book => book::run(),
        Command::Edges(edges::Edges {}) => edges::Edges::run(),
        Command::Fuzz(fuzz) => fuzz.run(),
        Command::Sweep(sweep) => sweep.run(),
        Command::Chaos(chaos) => chaos.run(),
        Command::Beside => beside::run(),
        Command::Conformance(conformance) => conformance.run(),
        Command::Bench(bench) => bench.run(),
    }
}
