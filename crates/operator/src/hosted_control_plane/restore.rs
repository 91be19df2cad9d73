//! Reads what a restore needs of the bucket: which backup it is, and the keys in it.
//!
//! It is read only while the plan asks, which is until a backup is on record. The store's host is a tenant's: it is
//! connected to where the limits allow it, as for backups.

use std::sync::Arc;
use std::time::Duration;

use hangar_api::controlplane::v1alpha1::{EtcdBackupEncryption, EtcdBackupSecret, HostedControlPlane};
use hangar_etcd::{
    BackupFault, BackupId, BackupKey, BackupStore, Error, InvalidBackupId, KeyFiles, Manifest, Owner,
    StoreConfig,
};
use hangar_kit::ObjectKey;
use hangar_plan::flow::{Outcome, Read};
use hangar_plan::hosted_control_plane::{BackupFacts, Observed, Search, restore_access};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use tokio::time::Instant;

use super::ControlPlanes;
use super::remembered::{Due, Remembered};
use crate::backups::{self, Data};
use crate::context::Context;

/// How long an answer is good, and how often a store is asked that has no such backup.
const AGAIN: Duration = Duration::from_secs(30);

/// What was last found for what each control plane asks for.
pub(super) type Searches = Remembered<Found>;

pub(super) struct Found {
    search: Search,
    at: Instant,
    backup: Read<BackupFacts>,
}

impl Due for Found {
    fn due_in(&self) -> Duration {
        AGAIN.saturating_sub(self.at.elapsed())
    }
}

/// Why something is not known.
enum Trouble {
    /// There is no such backup.
    Absent,
    /// Somebody has to change something.
    Problem(String),
    /// It may pass.
    Unknown(String),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        match error {
            Error::Backup { fault: BackupFault::Absent, .. } => Self::Absent,
            error if error.is_retryable() => Self::Unknown(error.to_string()),
            error => Self::Problem(error.to_string()),
        }
    }
}

impl ControlPlanes {
    /// Looks for the backup that is asked for.
    pub(super) async fn look_for_backup(
        &self,
        context: &Context,
        key: &ObjectKey,
        observed: &Observed,
    ) -> Read<BackupFacts> {
        let Some(search) = observed.search() else { return Read::unknown("nobody says where backups are") };
        let known = self.searches.all().get(key).and_then(|found| {
            (found.search == search && !found.due_in().is_zero()).then(|| found.backup.clone())
        });
        if let Some(backup) = known {
            return backup;
        }
        let backup = match find(context, &search).await {
            Ok(facts) => Read::One(facts),
            Err(Trouble::Absent) => Read::Absent,
            Err(Trouble::Problem(problem)) => {
                Read::One(BackupFacts { problem: Some(problem), ..BackupFacts::default() })
            }
            Err(Trouble::Unknown(why)) => Read::unknown(why),
        };
        let found = Found { search, at: Instant::now(), backup: backup.clone() };
        self.searches.all().insert(key.clone(), found);
        backup
    }
}

async fn find(context: &Context, search: &Search) -> Result<BackupFacts, Trouble> {
    let (namespace, name) = &search.from;
    let access =
        Access::read(context, &search.namespace, (&search.secret, search.encryption.as_ref())).await?;
    let (store, url) = access.store(context, &Owner::new(namespace, name)?)?;
    let id = if let Some(id) = &search.id {
        parsed(id)?
    } else {
        let before = search.before.unwrap_or_else(|| context.ambient.now());
        store.latest_before(before).await?.ok_or(Trouble::Absent)?
    };
    let manifest = store.manifest(&id).await?;
    Ok(BackupFacts {
        id: id.to_string(),
        from: format!("{namespace}/{name}"),
        etcd_version: manifest.etcd_version.clone(),
        is_encrypted: manifest.encryption.is_some(),
        has_keys: manifest.keys.is_some() && access.key.is_some(),
        store: url,
        problem: another_key(&manifest, access.key.as_ref()),
    })
}

fn parsed(id: &str) -> Result<BackupId, Trouble> {
    id.parse().map_err(|error: InvalidBackupId| Trouble::Problem(error.to_string()))
}

fn another_key(manifest: &Manifest, key: Option<&BackupKey>) -> Option<String> {
    let (encryption, key) = (manifest.encryption.as_ref()?, key?);
    let (wanted, given) = (&encryption.key, key.name());
    (*wanted != given)
        .then(|| format!("it was encrypted with the key {wanted}, and the given one is {given}"))
}

/// The Secrets that lead to a backup.
struct Access {
    config: StoreConfig,
    key: Option<BackupKey>,
}

impl Access {
    async fn read(
        context: &Context,
        namespace: &str,
        (secret, encryption): (&EtcdBackupSecret, Option<&EtcdBackupEncryption>),
    ) -> Result<Self, Trouble> {
        let config = backups::store(secret, &data(context, namespace, &secret.name).await?)?;
        let key = match encryption {
            Some(encryption) => {
                Some(backups::key(encryption, &data(context, namespace, &encryption.secret_name).await?)?)
            }
            None => None,
        };
        Ok(Self { config, key })
    }

    fn store(&self, context: &Context, owner: &Owner) -> Result<(BackupStore, String), Error> {
        let limits = Arc::clone(&context.handles.limits);
        let config = StoreConfig {
            addresses: Some(Arc::new(move |address| limits.store_refusal(address).map_or(Ok(()), Err))),
            ..self.config.clone()
        };
        Ok((BackupStore::new(&config, owner)?, config.endpoint))
    }
}

async fn data(context: &Context, namespace: &str, name: &str) -> Result<Data, Trouble> {
    let api: Api<Secret> = Api::namespaced(context.client(), namespace);
    match api.get_opt(name).await {
        Ok(Some(secret)) => Ok(secret.data.unwrap_or_default()),
        Ok(None) => Err(Trouble::Problem(format!("Secret {name} does not exist"))),
        Err(error) => Err(Trouble::Unknown(format!("cannot read Secret {name}: {error}"))),
    }
}

/// The keys in a backup.
pub(super) async fn keys(
    context: &Context,
    root: &HostedControlPlane,
    (from, id): (&str, &str),
) -> Result<KeyFiles, Outcome> {
    let failed = |trouble: Trouble| match trouble {
        Trouble::Absent => Outcome::failed("BackupGone", format!("backup {id} of {from} is gone")),
        Trouble::Problem(why) | Trouble::Unknown(why) => Outcome::failed("BackupUnreadable", why),
    };
    read_keys(context, root, (from, id)).await.map_err(failed)
}

async fn read_keys(
    context: &Context,
    root: &HostedControlPlane,
    (from, id): (&str, &str),
) -> Result<KeyFiles, Trouble> {
    let problem = |why: &str| Trouble::Problem(why.to_owned());
    let access =
        restore_access(&root.spec.settings).ok_or_else(|| problem("nobody says where backups are"))?;
    let namespace = root.metadata.namespace.as_deref().unwrap_or_default();
    let access = Access::read(context, namespace, access).await?;
    let (owner, name) = from.split_once('/').ok_or_else(|| problem("a backup of nobody"))?;
    let (store, _) = access.store(context, &Owner::new(owner, name)?)?;
    let id = parsed(id)?;
    let key = access.key.as_ref().ok_or_else(|| problem("the key of the backup is not named"))?;
    let bytes = store.read_keys(&id, key).await?.ok_or_else(|| problem("the backup has no keys"))?;
    Ok(KeyFiles::from_json(&bytes)?)
}
