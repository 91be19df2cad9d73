//! `hangar backup list`, `create` and `restore`: the backups of a cluster's etcd.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};
use hangar_operator::backups::{
    Asked, BackupStore, Made, Manifest, Owner, StoreKeys, ask, asked, store_of, store_to_restore_from,
};
use kube::Client;
use serde_json::json;

use crate::configuration::ClusterArguments;

/// How often the status is read.
const LOOK: Duration = Duration::from_secs(1);
/// Who waits longer than this is told how far it is, and again after each such time.
const SILENCE: Duration = Duration::from_secs(5);

/// Backups of a cluster's etcd.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Show the backups that are in the bucket, newest first
    List(List),
    /// Make a backup now, and wait for it
    Create(Create),
    /// Show what a restore would do, and, with consent, ask for it
    Restore(Box<super::backup_restore::Restore>),
}

#[derive(Debug, Args)]
struct OfCluster {
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
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Lines of text
    #[default]
    Text,
    /// JSON
    Json,
}

/// Where backups are, without the cluster that they are of.
#[derive(Debug, Args)]
pub(crate) struct StoreArguments {
    /// The bucket, instead of that of the control plane: the cluster need not exist. The credentials are in
    /// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN
    #[arg(long, value_name = "BUCKET[/PREFIX]")]
    bucket: Option<String>,
    /// The S3 host [default: AWS, in the region]
    #[arg(long, value_name = "HOST[:PORT]", requires = "bucket")]
    host: Option<String>,
    /// The region
    #[arg(long, env = "AWS_REGION", value_name = "NAME")]
    region: Option<String>,
    /// Authorities in PEM that the store's certificate may be signed by
    #[arg(long, value_name = "FILE", requires = "bucket")]
    certificate_authority: Option<PathBuf>,
    /// How the bucket is addressed: path or virtualHost
    #[arg(long, value_name = "STYLE", requires = "bucket")]
    addressing: Option<String>,
}

impl StoreArguments {
    /// The store of a cluster's backups: as the arguments say, or as its control plane does.
    pub(crate) async fn open(
        &self,
        cluster: &ClusterArguments,
        namespace: &str,
        name: &str,
    ) -> anyhow::Result<BackupStore> {
        let owner = Owner::new(namespace, name)?;
        if let Some(bucket) = &self.bucket {
            return self.given(bucket, &owner);
        }
        let client = Client::try_from(cluster.load().await?)?;
        Ok(store_of(&client, (namespace, name), &owner).await?)
    }

    /// The store that a cluster is restored from, with the backups of this or another cluster.
    pub(crate) async fn open_to_restore(
        &self,
        cluster: &ClusterArguments,
        (namespace, name): (&str, &str),
        owner: (&str, &str),
    ) -> anyhow::Result<BackupStore> {
        let owner = Owner::new(owner.0, owner.1)?;
        if let Some(bucket) = &self.bucket {
            return self.given(bucket, &owner);
        }
        let client = Client::try_from(cluster.load().await?)?;
        Ok(store_to_restore_from(&client, (namespace, name), &owner).await?)
    }

    fn given(&self, bucket: &str, owner: &Owner) -> anyhow::Result<BackupStore> {
        let variable = |name: &str| std::env::var(name).ok();
        let authority = self.certificate_authority.as_ref();
        let authority = authority.map(|path| {
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
        });
        let given = [
            ("bucket", Some(bucket.to_owned())),
            ("host", self.host.clone()),
            ("region", self.region.clone()),
            ("addressing", self.addressing.clone()),
            ("certificateAuthority", authority.transpose()?),
            ("accessKeyID", variable("AWS_ACCESS_KEY_ID")),
            ("secretAccessKey", variable("AWS_SECRET_ACCESS_KEY")),
            ("sessionToken", variable("AWS_SESSION_TOKEN")),
        ];
        let given: BTreeMap<&str, String> =
            given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        for (key, name) in
            [("accessKeyID", "AWS_ACCESS_KEY_ID"), ("secretAccessKey", "AWS_SECRET_ACCESS_KEY")]
        {
            if !given.contains_key(key) {
                bail!("--bucket needs credentials: {name} is not set");
            }
        }
        let config = StoreKeys::default().read(|key| given.get(key).map(String::as_bytes))?;
        Ok(BackupStore::new(&config, owner)?)
    }
}

#[derive(Debug, Args)]
struct List {
    #[command(flatten)]
    of: OfCluster,
    #[command(flatten)]
    store: StoreArguments,
    /// How many are shown
    #[arg(long, value_name = "COUNT", default_value = "20")]
    most: usize,
}

#[derive(Debug, Args)]
struct Create {
    #[command(flatten)]
    of: OfCluster,
    /// Ask for it, and do not wait until it is made
    #[arg(long)]
    no_wait: bool,
}

impl Backup {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        match self.what {
            What::List(list) => list.run().await,
            What::Create(create) => create.run().await,
            What::Restore(restore) => restore.run().await,
        }
    }
}

impl List {
    async fn run(self) -> anyhow::Result<()> {
        let OfCluster { name, namespace, cluster, output } = &self.of;
        let store = self.store.open(cluster, namespace, name).await?;
        let listing = store.list(self.most).await?;
        let mut told = Instant::now();
        let mut manifests = Vec::new();
        for id in &listing.newest {
            if told.elapsed() >= SILENCE {
                told = Instant::now();
                eprintln!("         read {} of {} manifests", manifests.len(), listing.newest.len());
            }
            manifests.push((id.to_string(), store.manifest(id).await));
        }
        if *output == Output::Json {
            let shown = manifests.iter().map(|(id, manifest)| match manifest {
                Ok(manifest) => serde_json::to_value(manifest),
                Err(error) => Ok(json!({"id": id, "error": error.to_string()})),
            });
            let backups = shown.collect::<Result<Vec<_>, _>>().context("print the backups")?;
            let all = json!({"total": listing.total, "backups": backups});
            println!("{}", serde_json::to_string_pretty(&all).context("print the backups")?);
            return Ok(());
        }
        if manifests.is_empty() {
            println!("no backups of {namespace}/{name}");
            return Ok(());
        }
        println!("{:<18}{:>12}  {:>12}  {:<10}KEYS", "ID", "SIZE", "REVISION", "ENCRYPTED");
        for (id, manifest) in &manifests {
            println!("{}", line(id, manifest.as_ref()));
        }
        if listing.total > manifests.len() {
            println!("and {} older ones", listing.total - manifests.len());
        }
        Ok(())
    }
}

fn line<E: std::fmt::Display>(id: &str, manifest: Result<&Manifest, E>) -> String {
    let yes = |is: bool| if is { "yes" } else { "no" };
    match manifest {
        Ok(manifest) => format!(
            "{id:<18}{:>12}  {:>12}  {:<10}{}",
            size(manifest.size),
            manifest.revision.to_string(),
            yes(manifest.encryption.is_some()),
            yes(manifest.keys.is_some())
        ),
        Err(error) => format!("{id:<18}{error}"),
    }
}

fn size(bytes: u64) -> String {
    format!("{} KiB", bytes.div_ceil(1024))
}

impl Create {
    async fn run(self) -> anyhow::Result<()> {
        let OfCluster { name, namespace, cluster, output } = &self.of;
        let client = Client::try_from(cluster.load().await?)?;
        let token = format!("{}-{}", jiff::Timestamp::now(), std::process::id());
        ask(&client, namespace, name, &token).await?;
        if self.no_wait {
            eprintln!("asked for a backup of {namespace}/{name}");
            return Ok(());
        }
        let began = Instant::now();
        let (mut told, mut is_told) = (began, false);
        loop {
            match asked(&client, namespace, name, &token).await? {
                Asked::Made(made) => return shown(&made, *output),
                Asked::Failed(why) => bail!("no backup was made: {why}. The manager goes on trying"),
                Asked::Waiting(why) if told.elapsed() >= SILENCE => {
                    told = Instant::now();
                    let seconds = began.elapsed().as_secs();
                    // The condition is about the schedule: it may well be good.
                    let why = if is_told || why.starts_with("UpToDate") {
                        String::new()
                    } else {
                        format!(" ({why})")
                    };
                    eprintln!("         waiting for the backup, {seconds} s so far{why}");
                    is_told = true;
                }
                Asked::Waiting(_) => {}
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

fn shown(made: &Made, output: Output) -> anyhow::Result<()> {
    if output == Output::Json {
        println!("{}", serde_json::to_string_pretty(made).context("print the backup")?);
        return Ok(());
    }
    let keys = if made.has_keys { "encrypted, with keys" } else { "not encrypted, without keys" };
    let bytes = u64::try_from(made.size).unwrap_or_default();
    println!("{}  {}, revision {}, {keys}, {} s", made.id, size(bytes), made.revision, made.duration_seconds);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_is_a_line() {
        let manifest: Manifest = serde_json::from_value(json!({
            "format": 1, "id": "20261118T194500Z", "takenAt": "2026-11-18T19:45:00Z", "tookMilliseconds": 15,
            "clusterId": "abc", "memberId": "def", "revision": 42, "etcdVersion": "3.6.16", "size": 8224,
            "digest": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "storedSize": 8224,
            "storedDigest": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        }))
        .unwrap();
        let id = manifest.id.to_string();
        assert_eq!(
            line::<String>(&id, Ok(&manifest)),
            "20261118T194500Z         9 KiB            42  no        no"
        );
        assert_eq!(
            line(&id, Err("its manifest cannot be read")),
            "20261118T194500Z  its manifest cannot be read"
        );
    }
}
