//! The cloud alone, and the program behind the tests of its machines.
//!
//! ```text
//! hangar-cloud serve --config FILE
//! ```

#![allow(clippy::print_stderr, reason = "this is a program for people")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use hangar_cloud::driver::namespaces::{ProcessConfig, ProcessError, serve};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match arguments.iter().map(|word| word.to_str().unwrap_or_default()).collect::<Vec<_>>().as_slice() {
        // Process 1 of a machine: before anything else, because no thread may exist yet.
        ["supervise", ..] => hangar_machine::supervise_main(arguments.into_iter().skip(1)),
        ["serve", "--config", file] => match run(&PathBuf::from(file)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!("hangar-cloud serve --config FILE");
            ExitCode::FAILURE
        }
    }
}

fn run(file: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let config = ProcessConfig::read(file)?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let stop = CancellationToken::new();
        let told = stop.clone();
        let mut end = signal(SignalKind::terminate())?;
        tokio::spawn(async move {
            end.recv().await;
            told.cancel();
        });
        serve(config, stop).await.map_err(|error: ProcessError| error.into())
    })
}
