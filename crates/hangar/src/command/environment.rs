//! The arguments that name the environment, for `up`, `down`, `status` and `logs`.

use std::path::PathBuf;

use clap::Args;
use hangar_host::{Name, OneHost, OwnProgram, Parts, STATE_DIRECTORY};

/// The hidden subcommand that is process 1 of a machine.
pub(crate) const SUPERVISE: &str = "supervise";

/// The default environment.
const DEFAULT_NAME: &str = "hangar";

/// Which environment.
#[derive(Debug, Args)]
pub(crate) struct EnvironmentArguments {
    /// Name of the environment; a host can have several
    #[arg(long, value_name = "NAME", default_value = DEFAULT_NAME)]
    name: String,
    /// State directory of environments
    #[arg(long, value_name = "DIRECTORY", default_value = STATE_DIRECTORY, hide = true)]
    state: PathBuf,
}

impl EnvironmentArguments {
    /// The arguments that select this environment in another command; empty for the default one.
    pub(crate) fn as_flag(&self) -> String {
        if self.name == DEFAULT_NAME { String::new() } else { format!(" --name {}", self.name) }
    }

    pub(crate) fn open(&self) -> anyhow::Result<OneHost> {
        let own = OwnProgram {
            program: std::env::current_exe()?,
            supervisor: SUPERVISE.into(),
            provisioner: vec!["provision".to_owned()],
        };
        Ok(OneHost::new(Name::new(self.name.clone())?, &self.state, Parts::from_env()?, own)?)
    }
}
