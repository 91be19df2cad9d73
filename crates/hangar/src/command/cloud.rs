//! `hangar cloud serve`: runs the embedded cloud as a process of the host. `hangar up` starts it.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use hangar_host::cloud;

/// The embedded cloud.
#[derive(Debug, Args)]
pub(crate) struct Cloud {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Serve the OpenStack API, with machines of this host behind it; needs root
    Serve {
        /// Configuration file of the cloud and its driver
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
}

impl Cloud {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let Verb::Serve { config } = self.verb;
        let stop = hangar_operator::stop_on_signal()?;
        cloud::serve(&config, stop).await?;
        Ok(())
    }
}
