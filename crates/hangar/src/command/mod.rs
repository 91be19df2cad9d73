//! The subcommands: argument structs and what they call.

mod completions;
mod down;
pub(crate) mod environment;
mod install;
mod manager;
mod provision;
mod status;
mod up;

use clap::Subcommand;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the controllers; this is what the pod in the cluster does
    Manager(Box<manager::Manager>),
    /// Start or repair a management cluster on this host, with Hangar in it; needs root
    Up(up::Up),
    /// Remove what `hangar up` made on this host
    Down(down::Down),
    /// Show what runs on this host
    Status(status::Status),
    /// Collect what a bug report needs
    Logs(status::Logs),
    /// Put Hangar into the cluster: CRDs, rights, webhooks and the manager
    Install(install::Install),
    /// Provision volumes as directories of this machine
    #[command(hide = true)]
    Provision(provision::Provision),
    /// Print the version
    Version,
    /// Print a completion script for a shell
    Completions(completions::Completions),
}

impl Command {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Self::Manager(manager) => runtime()?.block_on(manager.run()),
            Self::Install(install) => runtime()?.block_on(install.run()),
            Self::Up(up) => runtime()?.block_on(up.run()),
            Self::Down(down) => runtime()?.block_on(down.run()),
            Self::Status(status) => runtime()?.block_on(status.run()),
            Self::Logs(logs) => runtime()?.block_on(logs.run()),
            Self::Provision(provision) => runtime()?.block_on(provision.run()),
            Self::Version => {
                println!("hangar v{}", env!("CARGO_PKG_VERSION"));
                Ok(())
            }
            Self::Completions(completions) => {
                completions.run();
                Ok(())
            }
        }
    }
}

/// Two workers: the manager waits for others most of the time, and each worker keeps memory of its own.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}
