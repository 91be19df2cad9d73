//! `up`, `down`, `status` and `logs` with plain lines, for the tests of this crate and for trying it alone.
//!
//! ```text
//! hangar-host up|down|status|logs [--name=NAME] [--state=DIRECTORY] [--range=CIDR] [--gateway] [--bundle=DIRECTORY]
//! ```

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is a program for people")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use hangar_host::{
    Error, OneHost, OwnProgram, Progress, Result, STATE_DIRECTORY, Step, UpOptions, provisioner,
};
use hangar_machine::{Name, supervise_main};
use hangar_parts::Parts;

struct Lines;

impl Progress for Lines {
    fn started(&self, _: Step) {}

    fn detail(&self, step: Step, text: &str) {
        println!("          {step}: {text}");
    }

    fn done(&self, step: Step, elapsed: Duration, outcome: &str) {
        println!("{:>7.2} s  {step}: {outcome}", elapsed.as_secs_f64());
    }

    fn failed(&self, _: Step, elapsed: Duration, error: &Error) {
        println!("{:>7.2} s  {error}", elapsed.as_secs_f64());
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "supervise") {
        return supervise_main(std::env::args_os().skip(2));
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

fn value(arguments: &[String], name: &str) -> Option<String> {
    arguments.iter().find_map(|argument| argument.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
}

async fn run(arguments: &[String]) -> std::result::Result<(), Box<dyn std::error::Error>> {
    if arguments.first().is_some_and(|first| first == "provision") {
        let kubeconfig = PathBuf::from(value(arguments, "--kubeconfig").unwrap_or_default());
        let options = provisioner::Options {
            node: value(arguments, "--node").unwrap_or_default(),
            directory: PathBuf::from(value(arguments, "--directory").unwrap_or_default()),
        };
        let config = hangar_host::cluster::config(&kubeconfig).await?;
        return Ok(provisioner::run(config, options, tokio_util::sync::CancellationToken::new()).await?);
    }
    if arguments.first().is_some_and(|first| first == "cloud") {
        let file = PathBuf::from(arguments.last().map(String::as_str).unwrap_or_default());
        return Ok(hangar_host::cloud::serve(&file, hangar_kit::shutdown::on_signal()?).await?);
    }
    let host = host(arguments)?;
    let options = UpOptions {
        range: value(arguments, "--range").map(|range| range.parse()).transpose()?,
        gateway: arguments.iter().any(|word| word == "--gateway"),
        ..UpOptions::default()
    };
    let verb = arguments.iter().find(|word| !word.starts_with('-'));
    match verb.map(String::as_str) {
        Some("up") => {
            let up = host.up(&options, None, Arc::new(Lines)).await?;
            if let Some(obstacle) = up.outside_obstacle {
                println!("machines cannot reach the outside: {obstacle}");
            }
            println!("{}", up.kubeconfig.display());
        }
        Some("down") => {
            host.down(Arc::new(Lines)).await?;
        }
        Some("status") => println!("{:#?}", host.status().await?),
        Some("logs") => {
            let bundle = value(arguments, "--bundle").unwrap_or_else(|| "hangar-logs".to_owned());
            println!("{}", host.collect_logs(&PathBuf::from(bundle)).await?.display());
        }
        _ => println!(
            "hangar-host up|down|status|logs [--name=NAME] [--state=DIRECTORY] [--range=CIDR] [--gateway]"
        ),
    }
    Ok(())
}

fn host(arguments: &[String]) -> Result<OneHost> {
    let name = Name::new(value(arguments, "--name").unwrap_or_else(|| "hangar".to_owned()))?;
    let state = value(arguments, "--state").unwrap_or_else(|| STATE_DIRECTORY.to_owned());
    let own = OwnProgram {
        program: std::env::current_exe().unwrap_or_default(),
        supervisor: "supervise".into(),
        provisioner: vec!["provision".to_owned()],
    };
    OneHost::new(name, state, Parts::from_env()?, own)
}
