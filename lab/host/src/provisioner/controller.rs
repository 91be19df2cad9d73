//! The loop of the provisioner: it watches claims and volumes, and makes directories and volumes.
//!
//! There is one controller for both: a key with a namespace is a claim's, one without is a volume's.

use std::collections::BTreeSet;
use std::sync::Arc;

use hangar_kit::controller::{ControllerBuilder, Reconcile, Settled};
use hangar_kit::event::{Event, Recorder, Severity};
use hangar_kit::leadership::Always;
use hangar_kit::watch::{Kept, Watch, WatchBuilder};
use hangar_kit::{Error as KitError, ObjectKey, finalizer};
use k8s_openapi::api::core::v1::{ObjectReference, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::{Api, Client, Resource};
use tokio_util::sync::CancellationToken;

use super::claim::{self, VolumeClaim, VolumeClaimAction, VolumeClaimIdentity};
use super::directory::Directories;
use super::volume::{self, VolumeAction};
use super::{Error, NODE_LABEL, Options};

/// Runs until `stop`, with a client whose calls may be observed or made to fail.
pub async fn run_with_client(client: Client, options: Options, stop: CancellationToken) -> Result<(), Error> {
    let directories = Directories::open(&options.directory)?;
    let claims = WatchBuilder::new("claims", Api::<PersistentVolumeClaim>::all(client.clone()))
        .project(&stop, VolumeClaim::from);
    let volumes = WatchBuilder::new("volumes", Api::<PersistentVolume>::all(client.clone()))
        .labels(&format!("{NODE_LABEL}={}", options.node))
        .start(&stop);
    let classes = WatchBuilder::new("classes", Api::<StorageClass>::all(client.clone())).start(&stop);

    let waiting = claims.clone();
    let builder = ControllerBuilder::new("directory-provisioner")
        .roots(&claims, |_| true)
        .watches(&volumes, hangar_kit::watch::Change::itself)
        // A class that appears is what claims may have been waiting for.
        .watches(&classes, move |_| waiting.all().iter().map(|kept| kept.key.clone()).collect());
    let events = Recorder::new(client.clone(), "directory-provisioner", options.node.clone());
    let provisioner = Provisioner { client, options, directories, claims, volumes, classes, events };

    let first = async {
        provisioner.claims.synced().await;
        provisioner.volumes.synced().await;
        provisioner.remove_leftovers()
    };
    if let Some(swept) = stop.run_until_cancelled(first).await {
        swept?;
        builder.run(provisioner, Always, stop).await;
    }
    Ok(())
}

struct Provisioner {
    client: Client,
    options: Options,
    directories: Directories,
    claims: Watch<PersistentVolumeClaim, VolumeClaim>,
    volumes: Watch<PersistentVolume>,
    classes: Watch<StorageClass>,
    events: Recorder,
}

impl Reconcile for Provisioner {
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Settled, Error> {
        match &key.namespace {
            Some(namespace) => self.claim(key, namespace).await?,
            None => self.volume(key).await?,
        }
        Ok(Settled::done())
    }
}

impl Provisioner {
    async fn claim(&self, key: &ObjectKey, namespace: &str) -> Result<(), Error> {
        let Some(kept) = known(&self.claims, key)? else {
            return self.remove_leftovers();
        };
        if kept.is_terminating || !claim::is_ours(&kept, &self.options) {
            return Ok(());
        }
        let name = claim::volume_name(&kept.uid);
        if known(&self.volumes, &ObjectKey::cluster(&name))?.is_some() {
            return Ok(());
        }
        let class = kept.class.clone().unwrap_or_default();
        let Some(class) = known(&self.classes, &ObjectKey::cluster(&class))? else {
            return Err(Error::NoClass { name: class });
        };
        let identity = VolumeClaimIdentity { namespace, name: &key.name, uid: &kept.uid };
        match claim::decide(&kept, identity, &class, &self.options) {
            VolumeClaimAction::Nothing => Ok(()),
            VolumeClaimAction::Refuse(why) => {
                self.refuse(identity, why).await;
                Ok(())
            }
            VolumeClaimAction::Provision(volume) => self.provision(&name, &volume).await,
        }
    }

    async fn provision(&self, name: &str, volume: &PersistentVolume) -> Result<(), Error> {
        self.directories.make(name)?;
        let api: Api<PersistentVolume> = Api::all(self.client.clone());
        match api.create(&PostParams::default(), volume).await {
            Ok(created) => {
                tracing::info!(volume = name, "provisioned");
                self.volumes.written(created);
                Ok(())
            }
            // An earlier life of ours got this far, and the watch does not know yet.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            Err(error) => Err(KitError::api(format!("create volume {name}"), error).into()),
        }
    }

    async fn volume(&self, key: &ObjectKey) -> Result<(), Error> {
        let Some(kept) = known(&self.volumes, key)? else {
            return Ok(());
        };
        let api: Api<PersistentVolume> = Api::all(self.client.clone());
        match volume::decide(&kept, &self.options.node) {
            VolumeAction::Nothing => Ok(()),
            VolumeAction::Reclaim => {
                self.remove(&key.name).await?;
                delete(&api, &kept).await
            }
            VolumeAction::Finish => {
                self.remove(&key.name).await?;
                self.let_go(&api, &kept).await
            }
            VolumeAction::LetGo => self.let_go(&api, &kept).await,
        }
    }

    async fn remove(&self, name: &str) -> Result<(), Error> {
        let directories = self.directories.clone();
        let name = name.to_owned();
        // A volume may hold millions of files.
        let removed = tokio::task::spawn_blocking(move || directories.remove(&name)).await;
        // It does not panic, and is not aborted.
        removed.unwrap_or(Ok(()))
    }

    async fn let_go(&self, api: &Api<PersistentVolume>, kept: &Kept<PersistentVolume>) -> Result<(), Error> {
        if let Some(changed) = finalizer::remove(api, &kept.value, super::FINALIZER).await? {
            tracing::info!(volume = kept.key.name, "finalizer removed");
            self.volumes.written(changed);
        }
        Ok(())
    }

    /// Removes directories that were made for claims which were gone before their volume was recorded.
    fn remove_leftovers(&self) -> Result<(), Error> {
        let undecidable = |unknown| KitError::Undecidable { what: "directories".to_owned(), unknown };
        let claims = self.claims.all().known().map_err(undecidable)?;
        let volumes = self.volumes.all().known().map_err(undecidable)?;
        let mut names: BTreeSet<String> = claims.iter().map(|kept| claim::volume_name(&kept.uid)).collect();
        names.extend(volumes.iter().map(|kept| kept.key.name.clone()));
        // What cannot be read exists.
        names.extend(self.claims.unreadable().iter().map(|kept| claim::volume_name(&kept.uid)));
        names.extend(self.volumes.unreadable().iter().map(|kept| kept.key.name.clone()));
        for name in self.directories.remove_leftovers(&names)? {
            tracing::info!(directory = name, "removed: its claim was deleted before its volume was recorded");
        }
        Ok(())
    }

    async fn refuse(&self, claim: VolumeClaimIdentity<'_>, why: &str) {
        let about = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("PersistentVolumeClaim".to_owned()),
            namespace: Some(claim.namespace.to_owned()),
            name: Some(claim.name.to_owned()),
            uid: Some(claim.uid.to_owned()),
            ..ObjectReference::default()
        };
        let event = Event {
            severity: Severity::Warning,
            reason: "ProvisioningFailed",
            action: "Provision",
            note: why.to_owned(),
        };
        self.events.record(&about, &event).await;
    }
}

async fn delete(api: &Api<PersistentVolume>, kept: &Kept<PersistentVolume>) -> Result<(), Error> {
    let parameters = DeleteParams {
        preconditions: Some(Preconditions { uid: Some(kept.uid.clone()), resource_version: None }),
        ..DeleteParams::default()
    };
    match api.delete(&kept.key.name, &parameters).await {
        Ok(_) => Ok(()),
        // Gone, or another of its name is there by now: its own event brings us back.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        Err(error) => Err(KitError::api(format!("delete volume {}", kept.key), error).into()),
    }
}

/// One object or none; an unknown read is a failure.
fn known<K, F>(watch: &Watch<K, F>, key: &ObjectKey) -> Result<Option<Arc<Kept<F>>>, KitError>
where
    K: Resource + 'static,
    F: Send + Sync + 'static,
{
    match watch.get(key).known() {
        Ok(found) => Ok(found.into_iter().next()),
        Err(unknown) => Err(KitError::Undecidable { what: key.to_string(), unknown }),
    }
}
