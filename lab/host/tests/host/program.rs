//! The program behind the tests of this crate: process 1 of a machine, and the processes that `up` starts.
//!
//! `hangar` has the same subcommands; this program has no controllers and is built with the tests.

#![allow(clippy::print_stderr, reason = "what it prints is in the logs that a failed test shows")]

use std::path::PathBuf;
use std::process::ExitCode;

use hangar_host::provisioner;
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Before anything else, because no thread may exist yet.
    if arguments.first().is_some_and(|first| first == "supervise") {
        return hangar_machine::supervise_main(std::env::args_os().skip(2));
    }
    let Ok(runtime) = tokio::runtime::Runtime::new() else { return ExitCode::FAILURE };
    match runtime.block_on(run(&arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    match arguments.first().map(String::as_str) {
        Some("provision") => {
            let value = |name: &str| {
                arguments
                    .iter()
                    .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
                    .unwrap_or_default()
            };
            let options = provisioner::Options {
                node: value("--node").to_owned(),
                directory: PathBuf::from(value("--directory")),
                unassigned: arguments.iter().any(|word| word == "--unassigned"),
            };
            let config = hangar_host::cluster::config(&PathBuf::from(value("--kubeconfig"))).await?;
            Ok(provisioner::run(config, options, CancellationToken::new()).await?)
        }
        Some("cloud") => {
            let file = PathBuf::from(arguments.last().map(String::as_str).unwrap_or_default());
            Ok(hangar_host::cloud::serve(&file, hangar_kit::shutdown::on_signal()?).await?)
        }
        _ => Err("it knows supervise, provision and cloud".into()),
    }
}
