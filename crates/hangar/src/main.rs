//! `hangar`: hosted Kubernetes control planes on OpenStack, as one binary.

mod command;
mod configuration;
mod failure;
mod limits;
mod progress;

use std::process::ExitCode;

use clap::Parser;
use command::Command;

/// Gives back to the system what a burst of work needed.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Hosted Kubernetes control planes on OpenStack.
#[derive(Debug, Parser)]
#[command(name = "hangar", version, propagate_version = true, disable_help_subcommand = true)]
struct Arguments {
    /// Print all causes of an error.
    #[arg(short, long, global = true)]
    verbose: bool,
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    // Process 1 of a machine: before anything else, because no thread may exist yet.
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == command::environment::SUPERVISE) {
        return hangar_host::supervise_main(words);
    }
    let arguments = Arguments::parse();
    // First of all, and once: every TLS connection of the process uses this provider.
    if rustls::crypto::aws_lc_rs::default_provider().install_default().is_err() {
        eprintln!("error: another TLS provider is installed already");
        return ExitCode::FAILURE;
    }
    match arguments.command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", failure::text(&error, arguments.verbose));
            ExitCode::FAILURE
        }
    }
}
