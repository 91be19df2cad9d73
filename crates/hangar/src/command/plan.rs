//! `hangar plan -f FILE`: shows what Hangar would do with the objects of some files, without doing it.

use std::io::{ErrorKind, Read as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use hangar_operator::preview::{self, Against, Given, Preview, Refused};
use hangar_operator::{Error, Namespaces};

use crate::configuration::ClusterArguments;
use crate::limits;

/// Show what would be made from files, without making it.
#[derive(Debug, Args)]
pub(crate) struct Plan {
    /// A file with objects in YAML or JSON, several documents allowed; `-` is standard input
    #[arg(short, long = "filename", value_name = "FILE", required = true)]
    files: Vec<String>,
    /// The namespace of objects that name none
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// Compare with the cluster of the kubeconfig: what would change, and which pods would restart; it is only read
    #[arg(long)]
    against: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
    /// File with what HostedControlPlanes may ask for, as the manager has it
    #[arg(long, value_name = "FILE")]
    limits: Option<PathBuf>,
    /// The manager gives control planes the priority classes that `hangar install` made
    #[arg(long)]
    priority_classes: bool,
    /// Namespaces of the objects that the manager looks after, as it has them [default: all]
    #[arg(long, value_name = "LIST")]
    namespaces: Option<Namespaces>,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Steps, objects and waits, for people
    #[default]
    Text,
    /// The objects in full; keys are shown as what would be minted
    Yaml,
    /// Everything, for programs
    Json,
}

impl Plan {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let limits = Arc::new(limits::or_default(self.limits.as_deref(), self.priority_classes)?);
        let mut given = Vec::new();
        for file in &self.files {
            let text = read(file).with_context(|| format!("cannot read {file}"))?;
            given.extend(Given::read(&text, file, &self.namespace)?);
        }
        let against = if self.against { Some(Against::new(self.cluster.load().await?)) } else { None };
        let namespaces = self.namespaces.clone().unwrap_or_default();
        match preview::preview(given, against, limits, namespaces).await {
            Ok(preview) => {
                let text = self.print(&preview)?;
                match std::io::stdout().write_all(text.as_bytes()) {
                    // Whoever reads has seen enough.
                    Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
                    written => written.context("print the plan"),
                }
            }
            Err(Error::Refused(Refused { lines })) => {
                for line in &lines {
                    eprintln!("{line}");
                }
                let fields = if lines.len() == 1 {
                    "1 problem".to_owned()
                } else {
                    format!("{} problems", lines.len())
                };
                bail!("nothing is planned: {fields} in the files");
            }
            Err(error) => Err(error.into()),
        }
    }

    fn print(&self, preview: &Preview) -> anyhow::Result<String> {
        Ok(match self.output {
            Output::Text => preview::render(preview),
            Output::Yaml => preview::to_yaml(preview)?,
            Output::Json => serde_json::to_string_pretty(preview).context("print the plan")? + "\n",
        })
    }
}

fn read(file: &str) -> std::io::Result<String> {
    if file != "-" {
        return std::fs::read_to_string(file);
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    Ok(text)
}
