//! `hangar install`: installs the manager in a management cluster.

use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use clap::Args;
use hangar_operator::install::{self, Options, Target};
use hangar_operator::{DEFAULT_NAMESPACE, Namespaces, Selection};

use crate::configuration::ClusterArguments;
use crate::limits;

/// Install Hangar in the cluster: CRDs, RBAC, webhooks and the manager.
#[derive(Debug, Args)]
pub(crate) struct Install {
    #[command(flatten)]
    cluster: ClusterArguments,
    /// Print the objects as YAML, and change nothing
    #[arg(long)]
    print: bool,
    /// Controllers: `all` or names, separated by commas; `-name` excludes one. Selects CRDs and RBAC too
    #[arg(long, value_name = "LIST", default_value = "all")]
    controllers: Selection,
    /// Namespaces of the objects that the manager looks after, separated by commas; it gets no rights in others [default:
    /// all]
    #[arg(long, value_name = "LIST")]
    namespaces: Option<Namespaces>,
    /// Namespace of the manager
    #[arg(long, value_name = "NAME", default_value = DEFAULT_NAMESPACE)]
    namespace: String,
    /// Image of the manager
    #[arg(long, value_name = "IMAGE", default_value = concat!("hangar:v", env!("CARGO_PKG_VERSION")))]
    image: String,
    /// Number of managers: one leads, all serve webhooks
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=9))]
    replicas: u16,
    /// File with what HostedControlPlanes may ask for beyond their namespace [default: see the documentation]
    #[arg(long, value_name = "FILE")]
    limits: Option<PathBuf>,
    /// URL at which the API server reaches the webhooks of a manager outside the cluster, such as `https://192.0.2.1:9443`
    /// [default: the Service that is installed with the manager]
    #[arg(long, value_name = "URL", value_parser = parse_url)]
    webhook_url: Option<String>,
}

/// An https URL without a query; the paths of the webhooks are appended to it.
pub(super) fn parse_url(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("https://").ok_or("it must begin with https://")?;
    if rest.is_empty() || rest.contains(['?', '#', ' ']) {
        return Err("it must name a host, without a query".to_owned());
    }
    Ok(text.trim_end_matches('/').to_owned())
}

impl Install {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let target = match self.webhook_url {
            Some(url) => Target::Url(url),
            None => Target::Service { namespace: self.namespace.clone() },
        };
        let options = Options {
            namespace: self.namespace,
            image: self.image,
            replicas: self.replicas,
            controllers: self.controllers,
            namespaces: self.namespaces.unwrap_or_default(),
            target,
            api_server: None,
            limits: self.limits.as_deref().map(limits::read).transpose()?.map(|(text, _)| text),
        };
        if self.print {
            return match std::io::stdout().write_all(install::print(&options)?.as_bytes()) {
                // Whoever reads has seen enough, as in `| head`.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
                result => Ok(result?),
            };
        }
        let config = self.cluster.load().await?;
        let mut counts = std::collections::BTreeMap::<&str, usize>::new();
        install::apply(config, &options, |progress| {
            *counts.entry(progress.outcome).or_default() += 1;
            println!("{:<10} {}", progress.outcome, progress.object);
        })
        .await?;
        let summary: Vec<String> =
            counts.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
        println!("hangar is installed in namespace {}: {}", options.namespace, summary.join(", "));
        Ok(())
    }
}
