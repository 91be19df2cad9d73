//! Makes backups of etcd, beside the passes.
//!
//! A backup reads the Secrets that it needs when it begins, so that at rest nothing is read and no key is kept; streams
//! the snapshot of one member to the store, a part at a time; and then deletes the backups that are not kept any longer.
//! Whoever dies in the middle leaves parts that nobody lists: the next backup of the same control plane removes them
//! first.
//!
//! The store's host is a tenant's. It is connected to only where the limits allow the address that its name leads to, at
//! each connection; redirects are not followed; every call has a time limit, and so has the whole.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use hangar_etcd::{
    BackupId, BackupKey, BackupStore, Call, CallGate, Error, Freshness, KeyFiles, Limits, Manifest,
    NewBackup, Owner, StoreConfig,
};
use hangar_kit::ObjectKey;
use hangar_kit::leadership::Leadership;
use hangar_kit::long_work::{LongWork, WorkState};
use hangar_plan::flow::{self, Outcome};
use hangar_plan::hosted_control_plane::Observed;
use hangar_plan::hosted_control_plane::backup::{BackupStep, Failure, Made, Order, Origin, Work};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Api;
use kube::api::ListParams;

use super::{ControlPlanes, etcd};
use crate::backups::{self, Data};
use crate::context::Context;
use crate::reconcile::Case;

/// The one piece of long work that a control plane has.
const NAME: &str = "backup";
/// How many are made at once: each has one part of 8 MiB in memory.
pub(super) const AT_ONCE: usize = 4;
/// A snapshot keeps its member from reusing space, and no member is restarted meanwhile.
const LONGEST: Duration = Duration::from_hours(1);
/// What a backup deletes at most; the next one deletes the rest.
const MOST_DELETED: usize = 500;

/// The backups that are being made.
#[derive(Default)]
pub(super) struct Backups(OnceLock<LongWork<Work>>);

impl Backups {
    /// Where they run, once the controller has one.
    pub(super) fn run_in(&self, work: LongWork<Work>) {
        let _ = self.0.set(work);
    }

    /// What there is of the backup that the observation is about.
    pub(super) fn state(&self, key: &ObjectKey, observed: &Observed) -> Work {
        let (Some(work), Some(identity)) = (self.0.get(), observed.backup_identity()) else {
            return Work::None;
        };
        match work.state(key, NAME, &identity) {
            WorkState::None => Work::None,
            WorkState::Waiting | WorkState::Running { .. } => Work::Running,
            WorkState::Finished(Ok(end)) => end,
            WorkState::Finished(Err(failure)) => Work::Failed(Box::new(panicked(observed.now, failure))),
        }
    }
}

fn panicked(at: Timestamp, failure: flow::Failure) -> Failure {
    let flow::Failure { category, message, .. } = failure;
    let reason = category.to_owned();
    Failure { at, origin: Origin::Hangar, reason, message, request: None, settings: None }
}

impl ControlPlanes {
    /// Begins a backup, or ends the one that is being made. Neither waits for it.
    pub(super) fn back_up(&self, case: &Case<'_, Self>, step: &BackupStep) -> Outcome {
        let Some(work) = self.backups.0.get() else {
            return Outcome::failed("NotRunning", "this process makes no backups");
        };
        match step {
            BackupStep::Make(order) => {
                let making = Making { context: case.context.clone(), order: Order::clone(order) };
                tracing::info!(control_plane = %case.key(), member = order.through.member, "etcd is backed up");
                work.start(case.key(), NAME, &order.identity, move |_| async move { Ok(making.end().await) });
            }
            BackupStep::Stop => work.forget(case.key(), NAME),
        }
        Outcome::Done
    }
}

/// Ends calls of who does not lead any more. Its tasks are aborted then as well.
struct Leading(Arc<dyn Leadership>);

impl CallGate for Leading {
    fn before(&self, _: &Call, _: Duration) -> Result<(), &'static str> {
        if self.0.is_leading() { Ok(()) } else { Err("not the leader") }
    }
}

/// Why no backup was made.
struct Trouble {
    origin: Origin,
    reason: String,
    message: String,
}

impl Trouble {
    fn of_secret(message: String) -> Self {
        Self { origin: Origin::Secret, reason: "SecretMissing".to_owned(), message }
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        let origin = match &error {
            Error::Unusable { .. } => Origin::Secret,
            Error::Snapshot(_) => Origin::Etcd,
            Error::Stopped { .. } => Origin::Hangar,
            _ if error.call().is_some_and(|call| !call.verb.is_of_store()) => Origin::Etcd,
            _ => Origin::Store,
        };
        Self { origin, reason: error.category().to_owned(), message: error.to_string() }
    }
}

/// One backup.
struct Making {
    context: Context,
    order: Order,
}

impl Making {
    /// Makes it, and tells what became of it.
    async fn end(self) -> Work {
        let made = tokio::time::timeout(LONGEST, self.made()).await.unwrap_or_else(|_| {
            let message = format!("it was not done within {} minutes", LONGEST.as_secs() / 60);
            Err(Trouble { origin: Origin::Store, reason: "Timeout".to_owned(), message })
        });
        match made {
            Ok(made) => {
                tracing::info!(control_plane = ?self.order.owner, backup = made.id, size = made.size, "etcd was backed up");
                Work::Made(Box::new(made))
            }
            Err(Trouble { origin, reason, message }) => {
                tracing::warn!(control_plane = ?self.order.owner, reason, message, "etcd was not backed up");
                let (request, settings) = (self.order.request, Some(self.order.settings_hash));
                let at = Timestamp::now();
                Work::Failed(Box::new(Failure { at, origin, reason, message, request, settings }))
            }
        }
    }

    async fn made(&self) -> Result<Made, Trouble> {
        let (key, keys) = self.keys().await?;
        let store = self.store().await?;
        let started = Instant::now();
        // Only one runs: whatever has no manifest was left by one that died.
        let left = store.remove_leftovers(Timestamp::now()).await?;
        if left != hangar_etcd::Leftovers::default() {
            tracing::info!(control_plane = ?self.order.owner, ?left, "removed what an earlier backup left");
        }
        let id = id(&store).await?;
        let snapshot = self.member().await?.snapshot(Freshness::Acknowledged).await?;
        let json = keys.as_ref().map(KeyFiles::to_json);
        let keys = json.as_ref().map(|json| json.as_slice());
        let manifest = store.write(NewBackup { id, snapshot, key: key.as_ref(), keys }).await?;
        let retention_failure = self.prune(&store).await.err().map(|error| error.to_string());
        Ok(self.told(&manifest, started.elapsed(), retention_failure))
    }

    fn told(&self, manifest: &Manifest, took: Duration, retention_failure: Option<String>) -> Made {
        Made {
            id: manifest.id.to_string(),
            began: manifest.taken_at,
            seconds: took.as_secs(),
            size: manifest.size,
            stored_size: manifest.stored_size,
            revision: manifest.revision.number(),
            is_encrypted: manifest.encryption.is_some(),
            has_keys: manifest.keys.is_some(),
            request: self.order.request.clone(),
            is_last: self.order.is_last,
            retention_failure,
        }
    }

    async fn member(&self) -> Result<hangar_etcd::Member, Trouble> {
        let (namespace, through) = (&self.order.owner.0, std::slice::from_ref(&self.order.through));
        let members = etcd::members(&self.context, namespace, through, Limits::default()).await;
        let members = members.map_err(|outcome| Trouble {
            origin: Origin::Etcd,
            reason: "NoCertificate".to_owned(),
            message: outcome.to_string(),
        })?;
        members.into_iter().next().ok_or_else(|| Trouble {
            origin: Origin::Etcd,
            reason: "NoMember".to_owned(),
            message: "no member can be called".to_owned(),
        })
    }

    async fn store(&self) -> Result<BackupStore, Trouble> {
        let (namespace, name) = &self.order.owner;
        let secret = &self.order.settings.secret;
        let config = backups::store(secret, &self.secret(&secret.name).await?)?;
        let limits = Arc::clone(&self.context.handles.limits);
        let config = StoreConfig {
            addresses: Some(Arc::new(move |address| limits.store_refusal(address).map_or(Ok(()), Err))),
            gates: vec![Arc::new(Leading(Arc::clone(&self.context.handles.leadership)))],
            ..config
        };
        Ok(BackupStore::new(&config, &Owner::new(namespace, name)?)?)
    }

    /// The key that encrypts it, and what goes along then.
    async fn keys(&self) -> Result<(Option<BackupKey>, Option<KeyFiles>), Trouble> {
        let Some(encryption) = &self.order.settings.encryption else { return Ok((None, None)) };
        let key = backups::key(encryption, &self.secret(&encryption.secret_name).await?)?;
        let mut keys = KeyFiles::default();
        for (material, name) in &self.order.keys {
            let data = self.secret(name).await?;
            keys.add(*material, data.into_iter().map(|(file, content)| (file, content.0)).collect());
        }
        Ok((Some(key), Some(keys)))
    }

    async fn secret(&self, name: &str) -> Result<Data, Trouble> {
        let namespace = &self.order.owner.0;
        let api: Api<Secret> = Api::namespaced(self.context.client(), namespace);
        match api.get_opt(name).await {
            Ok(Some(secret)) => Ok(secret.data.unwrap_or_default()),
            Ok(None) if self.is_namespace_going().await => {
                let message =
                    format!("the namespace {namespace} is being deleted, and Secret {name} is gone");
                Err(Trouble { origin: Origin::Namespace, ..Trouble::of_secret(message) })
            }
            Ok(None) => Err(Trouble::of_secret(format!("Secret {name} does not exist"))),
            Err(error) => {
                let message = format!("cannot read Secret {name}: {error}");
                Err(Trouble { origin: Origin::Hangar, reason: "Unreadable".to_owned(), message })
            }
        }
    }

    /// A manager of some namespaces may not read them, and then does not know.
    async fn is_namespace_going(&self) -> bool {
        let api: Api<Namespace> = Api::all(self.context.client());
        // Managers may list them, and not get one.
        let one = ListParams::default().fields(&format!("metadata.name={}", self.order.owner.0));
        let found = api.list_metadata(&one).await.map(|found| found.items).unwrap_or_default();
        found.first().is_some_and(|namespace| namespace.metadata.deletion_timestamp.is_some())
    }

    /// Deletes what is not kept any longer.
    async fn prune(&self, store: &BackupStore) -> Result<(), Error> {
        let retention = backups::retention(self.order.settings.retention.as_ref());
        if retention.keeps_everything() {
            return Ok(());
        }
        let listing = store.list(usize::MAX).await?;
        for id in retention.expired(&listing.newest).iter().take(MOST_DELETED) {
            store.delete(id).await?;
            tracing::info!(control_plane = ?self.order.owner, backup = %id, "a backup was deleted: no rule keeps it");
        }
        Ok(())
    }
}

/// A name for a backup that is begun now. Names are seconds: who asks twice in one second has two backups.
async fn id(store: &BackupStore) -> Result<BackupId, Error> {
    let newest = store.list(1).await?.newest.into_iter().next();
    if newest == Some(BackupId::at(Timestamp::now())) {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok(BackupId::at(Timestamp::now()))
}
