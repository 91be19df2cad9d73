//! `hangar describe cluster NAME`: shows what is ready, what is waited for, since when, and who must act.

use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};
use hangar_operator::describe::{Objects, read, render, tree};
use jiff::Timestamp;
use kube::Client;

use crate::configuration::ClusterArguments;

/// Interval of reads with `--watch`.
const LOOK: Duration = Duration::from_secs(1);

/// Show the state of an object.
#[derive(Debug, Args)]
pub(crate) struct Describe {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// A cluster as a tree: readiness, what is waited for, since when, and who must act
    Cluster(DescribeCluster),
}

/// A cluster as a tree.
#[derive(Debug, Args)]
struct DescribeCluster {
    /// Name of the Cluster
    name: String,
    /// Namespace of the Cluster
    #[arg(short, long, default_value = "default")]
    namespace: String,
    #[command(flatten)]
    cluster: ClusterArguments,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    /// Print the tree again on every change, until the Cluster is ready or deleted
    #[arg(short, long)]
    watch: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A tree of text
    #[default]
    Text,
    /// The tree as JSON
    Json,
}

impl Describe {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let What::Cluster(cluster) = self.what;
        cluster.run().await
    }
}

impl DescribeCluster {
    async fn run(self) -> anyhow::Result<()> {
        let client = Client::try_from(self.cluster.load().await?)?;
        let mut printed = String::new();
        loop {
            let Some(objects) = read(&client, &self.namespace, &self.name).await? else {
                if self.watch && !printed.is_empty() {
                    return Ok(());
                }
                bail!("no Cluster {} in the namespace {}", self.name, self.namespace);
            };
            let is_ready = tree(&objects).is_ready();
            let text = self.print(&objects)?;
            if text != printed {
                print!("{text}");
                printed = text;
            }
            if !self.watch || is_ready {
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn print(&self, objects: &Objects) -> anyhow::Result<String> {
        let tree = tree(objects);
        Ok(match self.output {
            Output::Text => render(&tree, Timestamp::now()),
            Output::Json => serde_json::to_string_pretty(&tree).context("print the tree")? + "\n",
        })
    }
}
