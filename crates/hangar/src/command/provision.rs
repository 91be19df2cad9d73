//! `hangar provision`: makes the volumes of a management cluster on one host. A service of its machine runs it.

use std::path::PathBuf;

use clap::Args;
use hangar_host::{cluster, provisioner};

/// Provision volumes as directories of this machine.
#[derive(Debug, Args)]
pub(crate) struct Provision {
    #[arg(long)]
    kubeconfig: PathBuf,
    #[arg(long)]
    node: String,
    #[arg(long)]
    directory: PathBuf,
    /// Serve claims too that no node was chosen for
    #[arg(long)]
    unassigned: bool,
}

impl Provision {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let config = cluster::config(&self.kubeconfig).await?;
        let options =
            provisioner::Options { node: self.node, directory: self.directory, unassigned: self.unassigned };
        let stop = hangar_operator::stop_on_signal()?;
        provisioner::run(config, options, stop).await?;
        Ok(())
    }
}
