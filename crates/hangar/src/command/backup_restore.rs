//! `hangar backup restore`: shows what a restore would do, and asks for it.

use anyhow::{Context, bail};
use clap::Args;
use hangar_operator::backups::{BackupId, BackupStore, Manifest, Proposal, propose, restore};
use jiff::Timestamp;
use kube::Client;

use super::backup::StoreArguments;
use crate::configuration::ClusterArguments;

#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// Name of the Cluster that gets the data
    name: String,
    /// Namespace of the Cluster
    #[arg(short, long, default_value = "default")]
    namespace: String,
    #[command(flatten)]
    cluster: ClusterArguments,
    #[command(flatten)]
    store: StoreArguments,
    /// Id of the backup [default: the newest]
    #[arg(long, value_name = "ID", conflicts_with = "before")]
    backup: Option<BackupId>,
    /// The newest backup that was begun at this time or before it
    #[arg(long, value_name = "TIME")]
    before: Option<Timestamp>,
    /// The Cluster whose backup it is, if it is another one
    #[arg(long, value_name = "NAMESPACE/NAME")]
    from: Option<String>,
    /// Consent to replace the data of this name, which the command shows without it
    #[arg(long, value_name = "DATA")]
    replace: Option<String>,
}

impl Restore {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let own = format!("{}/{}", self.namespace, self.name);
        let from = self.from.as_ref().unwrap_or(&own);
        let owner = from.split_once('/').with_context(|| format!("{from:?} is no NAMESPACE/NAME"))?;
        let store = self.store.open_to_restore(&self.cluster, (&self.namespace, &self.name), owner).await?;
        let id = self.id(&store, from).await?;
        let manifest = store.manifest(&id).await?;
        let client = Client::try_from(self.cluster.load().await?)?;
        let proposal = propose(&client, (&self.namespace, &self.name), (owner, &id)).await?;
        print!("{}", shown(&manifest, from, &proposal));
        if let Some(data) = proposal.lacks_consent(self.replace.as_deref()) {
            bail!("nothing was done: add --replace={data} to consent to it");
        }
        restore(&client, &self.namespace, &proposal).await?;
        println!(
            "asked for; the condition EtcdRestored of HostedControlPlane {} says how far it is",
            proposal.control_plane
        );
        Ok(())
    }

    async fn id(&self, store: &BackupStore, from: &str) -> anyhow::Result<BackupId> {
        if let Some(id) = &self.backup {
            return Ok(id.clone());
        }
        let before = self.before.unwrap_or_else(Timestamp::now);
        store
            .latest_before(before)
            .await?
            .with_context(|| format!("there is no backup of {from} before {before}"))
    }
}

fn shown(manifest: &Manifest, from: &str, proposal: &Proposal) -> String {
    let keys = match (&manifest.encryption, &manifest.keys) {
        (Some(_), Some(_)) => "encrypted, with keys",
        (Some(_), None) => "encrypted, without keys",
        (None, _) => "not encrypted, without keys",
    };
    let data = match &proposal.replaces {
        Some(data) => format!(
            "gives up {data}: everything written after the backup is gone from the tenant; the data stays on the volumes"
        ),
        None => "the control plane has no data yet".to_owned(),
    };
    format!(
        "backup   {} of {from}: {} bytes, revision {}, etcd {}, {keys}\ninto     HostedControlPlane {}\ndata     {data}\n",
        manifest.id, manifest.size, manifest.revision, manifest.etcd_version, proposal.control_plane,
    )
}
