//! `hangar restore-member`: what the pods of a restore run beside `etcdutl`, on the volume of one member of etcd.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use hangar_etcd::{BackupId, BackupKey, BackupStore, Owner, StoreConfig, StoreKeys, fetch, inspect, place};
use hangar_host::ipnet::IpNet;
use hangar_operator::Limits;

/// Restore a member of etcd from a backup, or from its own data.
#[derive(Debug, Args)]
pub(crate) struct RestoreMember {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Fetch the backup and check it
    Fetch(Fetch),
    /// Find out whether the data that the member has can be copied
    Inspect(Inspect),
    /// Give the restored data its name
    Place(Place),
    /// Wait: the member is restored
    Restored,
}

#[derive(Debug, Args)]
struct Fetch {
    /// Whose backup it is
    #[arg(long, value_name = "NAMESPACE/NAME")]
    owner: String,
    /// Id of the backup
    #[arg(long, value_name = "ID")]
    backup: BackupId,
    /// Directory with a file for each setting of the store
    #[arg(long, value_name = "DIRECTORY")]
    store: PathBuf,
    /// File with the key that the backup is encrypted with
    #[arg(long, value_name = "FILE")]
    encryption_key: Option<PathBuf>,
    /// Networks besides the public ones in which the store may be
    #[arg(long, value_name = "NETWORK", value_delimiter = ',')]
    networks: Vec<IpNet>,
    /// Addresses of the management cluster's API server, which is no store
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    api_servers: Vec<IpAddr>,
    /// Directory for the snapshot; what is in it is removed
    #[arg(long, value_name = "DIRECTORY")]
    into: PathBuf,
}

#[derive(Debug, Args)]
struct Inspect {
    /// The member's data directory
    #[arg(long, value_name = "DIRECTORY")]
    data: PathBuf,
    /// Directory for the copy; what is in it is removed
    #[arg(long, value_name = "DIRECTORY")]
    into: PathBuf,
}

#[derive(Debug, Args)]
struct Place {
    /// Directory that `fetch` and `etcdutl` wrote to
    #[arg(long, value_name = "DIRECTORY")]
    from: PathBuf,
    /// The member's data directory
    #[arg(long, value_name = "DIRECTORY")]
    to: PathBuf,
}

impl RestoreMember {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        match self.what {
            What::Fetch(fetch) => fetch.run().await,
            What::Inspect(Inspect { data, into }) => {
                println!("{} has {} bytes", data.display(), inspect(&data, &into)?);
                Ok(())
            }
            What::Place(Place { from, to }) => {
                let was_there = place(&from, &to)?;
                println!(
                    "{} {}",
                    to.display(),
                    if was_there { "was restored before" } else { "is restored" }
                );
                Ok(())
            }
            What::Restored => {
                let stop = hangar_operator::stop_on_signal()?;
                stop.cancelled().await;
                Ok(())
            }
        }
    }
}

impl Fetch {
    async fn run(self) -> anyhow::Result<()> {
        let Some((namespace, name)) = self.owner.split_once('/') else {
            bail!("{:?} is no namespace and name", self.owner);
        };
        let owner = Owner::new(namespace, name)?;
        let settings = files(&self.store)?;
        let limits = Limits {
            backup_networks: self.networks.clone(),
            api_servers: self.api_servers.clone(),
            ..Limits::default()
        };
        let config = StoreConfig {
            addresses: Some(Arc::new(move |address| limits.store_refusal(address).map_or(Ok(()), Err))),
            ..StoreKeys::default().read(|key| settings.get(key).map(Vec::as_slice))?
        };
        let key = match &self.encryption_key {
            Some(file) => Some(BackupKey::new(&read(file)?)?),
            None => None,
        };
        let store = BackupStore::new(&config, &owner)?;
        let manifest = fetch(&store, &self.backup, key.as_ref(), &self.into).await?;
        println!(
            "backup {} of {owner}: revision {}, {} bytes",
            manifest.id, manifest.revision, manifest.size
        );
        Ok(())
    }
}

/// The files that kubelet made of a Secret; its own directories begin with a dot.
fn files(directory: &Path) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let entries =
        std::fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let mut found = BTreeMap::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            found.insert(name, read(&entry.path())?);
        }
    }
    Ok(found)
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))
}
