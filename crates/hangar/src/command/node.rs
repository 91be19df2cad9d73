//! `hangar node`: takes a node of the management cluster away and brings it back, to try what happens then.

use std::sync::Arc;

use clap::{Args, Subcommand};

use super::environment::EnvironmentArguments;
use crate::progress::Phases;

/// Stop or start a node of the management cluster on this host.
#[derive(Debug, Args)]
pub(crate) struct Node {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// End all processes of a node at once, and take its network away: as if its power had failed
    Stop(Which),
    /// Start a node that was stopped, with its data; `hangar up` does so too
    Start(Which),
}

#[derive(Debug, Args)]
struct Which {
    /// Name of the node, such as management-2
    #[arg(value_name = "NODE")]
    node: String,
    #[command(flatten)]
    environment: EnvironmentArguments,
}

impl Node {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let progress = Arc::new(Phases::new());
        match self.action {
            Action::Stop(which) => which.environment.open()?.stop_node(&which.node, progress).await?,
            Action::Start(which) => which.environment.open()?.start_node(&which.node, progress).await?,
        }
        Ok(())
    }
}
