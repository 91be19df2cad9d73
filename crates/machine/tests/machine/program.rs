//! `hangar-machine`: machines by hand, and the program behind the tests of this crate.

use std::{
    ffi::OsString,
    io::IsTerminal,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::{Parser, Subcommand};
use hangar_machine::{
    Bind, Environment, Error, Machine, MachineSpec, MachineState, Name, Result, SupervisorCommand,
    net::FabricSpec, supervise_main,
};
use ipnet::Ipv4Net;

/// Namespaced machines on this host.
#[derive(Parser)]
#[command(name = "hangar-machine", version)]
struct Arguments {
    /// Where machines keep their files.
    #[arg(long, global = true, env = "HANGAR_STATE", default_value = "/var/lib/hangar")]
    state: PathBuf,
    /// Name of the environment.
    #[arg(long, global = true, default_value = "default")]
    environment: Name,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Makes a private network, or repairs one.
    CreateFabric {
        name: Name,
        /// Address of its gateway with the prefix of the range.
        #[arg(long, default_value = "100.72.0.1/20")]
        gateway: Ipv4Net,
        /// The host's address on it.
        #[arg(long)]
        host: Option<Ipv4Addr>,
        /// Let machines reach the outside by TCP, where the host can.
        #[arg(long)]
        outside: bool,
    },
    /// Removes a private network.
    DeleteFabric { name: Name },
    /// Makes a machine and starts it.
    Create {
        name: Name,
        /// A full specification as JSON; the other options add to it.
        #[arg(long)]
        spec: Option<PathBuf>,
        /// The private network to attach eth0 to.
        #[arg(long, requires = "address")]
        fabric: Option<Name>,
        /// Address of eth0.
        #[arg(long, requires = "fabric")]
        address: Option<Ipv4Addr>,
        /// A tree to lay over /usr; may be given several times.
        #[arg(long)]
        usr: Vec<PathBuf>,
        /// A host path to show inside, as SOURCE:TARGET, read-only.
        #[arg(long)]
        bind: Vec<String>,
    },
    /// Lists machines.
    List,
    /// Runs a command inside and ends with its exit code.
    Exec {
        name: Name,
        /// Where it runs.
        #[arg(long, default_value = "/")]
        directory: PathBuf,
        #[arg(trailing_var_arg = true, required = true)]
        command: Vec<OsString>,
    },
    /// Shows services and what they do.
    Services { name: Name },
    /// Shows the log of a service, or of the supervisor.
    Logs {
        name: Name,
        #[arg(default_value = "supervisor")]
        log: String,
    },
    /// Starts a machine that does not run.
    Start { name: Name },
    /// Stops a machine; its data stays.
    Stop {
        name: Name,
        /// Seconds services get to end.
        #[arg(long, default_value_t = 5)]
        grace: u64,
    },
    /// Stops and starts a machine.
    Restart {
        name: Name,
        /// Seconds services get to end.
        #[arg(long, default_value_t = 5)]
        grace: u64,
    },
    /// Ends a machine and removes everything of it.
    Delete { name: Name },
    /// The crate's own processes.
    #[command(hide = true)]
    Supervise {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Verb::Supervise { arguments } = arguments.verb {
        return supervise_main(arguments);
    }
    match run(arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<ExitCode> {
    let supervisor = SupervisorCommand::own("supervise");
    let environment = Environment::new(&arguments.state, arguments.environment, supervisor)?;
    let machine = |name: &Name| environment.machine(name);
    match arguments.verb {
        Verb::CreateFabric { name, gateway, host, outside } => {
            let fabric = environment.create_fabric(FabricSpec {
                name,
                gateway,
                host,
                mtu: None,
                outside,
                never_outside: Vec::new(),
            })?;
            if let (true, Some(obstacle)) = (outside, fabric.outside_obstacle()?) {
                eprintln!("machines cannot reach the outside: {obstacle}");
            }
            println!("{} {}", fabric.spec().name, fabric.netns().path().display());
        }
        Verb::DeleteFabric { name } => {
            environment.delete_fabric(&name)?;
        }
        Verb::Create { name, spec, fabric, address, usr, bind } => {
            let mut spec = read_spec(name, spec.as_deref())?;
            if let (Some(fabric), Some(address)) = (fabric, address) {
                spec.nics.push(environment.fabric(&fabric)?.nic("eth0", address)?);
            }
            spec.layers.usr.extend(usr);
            for text in bind {
                spec.binds.push(parse_bind(&text)?);
            }
            let machine = environment.create_machine(spec)?;
            println!("{} {}", machine.name(), machine.directory().display());
        }
        Verb::List => list(&environment)?,
        Verb::Exec { name, directory, command } => return exec(&machine(&name), &directory, &command),
        Verb::Services { name } => {
            for service in machine(&name).services()? {
                println!(
                    "{} {:?} starts={} last={:?}",
                    service.name, service.state, service.starts, service.last_exit
                );
            }
        }
        Verb::Logs { name, log } => print!("{}", machine(&name).logs(&log, None)?),
        Verb::Start { name } => machine(&name).start()?,
        Verb::Stop { name, grace } => machine(&name).stop(Duration::from_secs(grace))?,
        Verb::Restart { name, grace } => machine(&name).restart(Duration::from_secs(grace))?,
        Verb::Delete { name } => {
            if !machine(&name).delete()? {
                eprintln!("machine {name} was not there");
            }
        }
        // Taken care of before.
        Verb::Supervise { .. } => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn read_spec(name: Name, path: Option<&Path>) -> Result<MachineSpec> {
    let Some(path) = path else {
        return Ok(MachineSpec::new(name));
    };
    let failed = |message: String| Error::Record { path: path.to_owned(), message };
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let spec: MachineSpec = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
    Ok(MachineSpec { name, ..spec })
}

fn parse_bind(text: &str) -> Result<Bind> {
    match text.split_once(':') {
        Some((source, target)) => Ok(Bind { source: source.into(), target: target.into(), read_only: true }),
        None => Err(Error::Invalid(format!("{text:?} is not SOURCE:TARGET"))),
    }
}

fn list(environment: &Environment) -> Result<()> {
    for status in environment.machines()? {
        let state = match status.state {
            MachineState::Running(first) => format!("running (process {})", first.pid),
            MachineState::Changing => "changing".to_owned(),
            MachineState::Stopped => "stopped".to_owned(),
            MachineState::Incomplete => "incomplete".to_owned(),
        };
        let addresses: Vec<String> =
            status.nics.iter().flat_map(|nic| &nic.addresses).map(ToString::to_string).collect();
        println!("{}\t{state}\t{}", status.name, addresses.join(","));
    }
    Ok(())
}

fn exec(machine: &Machine, directory: &Path, command: &[OsString]) -> Result<ExitCode> {
    let mut command = machine.command(directory, command)?;
    if std::io::stdin().is_terminal()
        && let Some(terminal) = std::env::var_os("TERM")
    {
        command.env("TERM", terminal);
    }
    let status =
        command.status().map_err(|error| Error::System { action: "run it".to_owned(), source: error })?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)))
}
