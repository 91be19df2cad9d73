//! Developer commands: `cargo xtask <command>`.

mod bench;
mod edges;
mod sweep;
mod test;
mod tools;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Developer commands of Hangar.")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Tools(tools::Tools),
    Test(test::Test),
    Edges(edges::Edges),
    Sweep(sweep::Sweep),
    Bench(bench::Bench),
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
        Command::Test(test) => test.run(),
        Command::Edges(edges::Edges {}) => edges::Edges::run(),
        Command::Sweep(sweep) => sweep.run(),
        Command::Bench(bench) => bench.run(),
    }
}
