//! The leader's part: it renews what the Secret holds, and writes our address and authority into webhook configurations
//! and CRDs.
//!
//! It is one level-triggered loop: every change of the Secret and of the objects that we write into wakes it, it does
//! what is due, and sleeps until the next thing is. Objects are watched by their metadata only (CRDs are large) and
//! read one by one when they changed. Each has a watch of its own, by its name, so that the manager needs no right to see
//! others; and one that does not carry our label is somebody else's and left alone.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt, stream};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Resource;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::certificates::{RenewalStep, WebhookCertificates};
use super::inject::{Injection, Kind};
use super::issued::{FIELD_MANAGER, IssuedCertificate, RETRY, Stored, call};
use super::path::PathToken;
use super::{CERTIFICATE_SECRET, Error, WEBHOOK_LABEL};

/// Longest sleep: the wall clock, by which certificates expire, may be set while we sleep by another.
const LONGEST_SLEEP: Duration = Duration::from_hours(1);

/// An object that we write into.
pub(super) type Object = (Kind, String);

/// A change of one of them.
#[derive(Debug)]
enum Change {
    Seen(Object),
    Gone(Object),
    /// A list begins: if it does not show the object, that is gone or no longer ours.
    Listing(Object),
    Listed(Object),
}

/// What is known about the objects that we write into.
#[derive(Debug, Default)]
struct Objects {
    known: BTreeSet<Object>,
    /// To be looked at.
    dirty: BTreeSet<Object>,
    listed: BTreeSet<Object>,
    /// What they are to carry.
    wanted: Option<Wanted>,
    /// Since when all of them do.
    trusted: Option<Instant>,
}

/// What the Secret gives to the objects that we write into.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wanted {
    /// The authorities to trust.
    bundle: String,
    /// The token to call.
    token: PathToken,
}

impl IssuedCertificate {
    /// The leader's part, until `stop` is cancelled. [`IssuedCertificate::follow`] must run beside it, on the
    /// same value or a clone of it.
    pub async fn keep(&self, stop: &CancellationToken) {
        let mut objects = Objects::default();
        let mut changes = self.changes();
        let mut stored = self.stored.subscribe();
        loop {
            let current = stored.borrow_and_update().clone();
            // Abandoned like everything else when leadership is lost: each write names the version it was decided on.
            let Some(worked) = stop.run_until_cancelled(self.work(&mut objects, &current)).await else {
                return;
            };
            let pause = worked.unwrap_or_else(|error| {
                tracing::warn!(error = &error as &dyn std::error::Error, "webhook certificate not renewed");
                RETRY
            });
            tokio::select! {
                () = stop.cancelled() => return,
                // The sender lives in self.
                _ = stored.changed() => {}
                Some(change) = changes.next() => objects.note(change),
                () = tokio::time::sleep(pause.min(LONGEST_SLEEP)) => {}
            }
        }
    }

    /// Does what is to be done now, and says when to look again at the latest.
    async fn work(&self, objects: &mut Objects, stored: &Stored) -> Result<Duration, Error> {
        match stored {
            // `follow` reads or creates it.
            Stored::Unknown | Stored::Absent => Ok(LONGEST_SLEEP),
            Stored::Broken(secret) => {
                let salvaged = WebhookCertificates::salvage(&secret.data.clone().unwrap_or_default());
                let certificates =
                    WebhookCertificates::create(&self.intent, &self.policy, salvaged, self.minting_time()?)?;
                let version = secret.metadata.resource_version.as_deref().unwrap_or_default();
                self.write(&certificates, version).await?;
                Ok(RETRY)
            }
            Stored::Usable { certificates, resource_version } => {
                if let Some(token) = certificates.announced().cloned() {
                    self.inject(objects, &Wanted { bundle: certificates.bundle(), token }).await;
                }
                let trust = objects.trusted.map(|since| since + self.policy.trust_propagation);
                let trusted = trust.is_some_and(|moment| moment <= Instant::now());
                let retry = if objects.dirty.is_empty() { LONGEST_SLEEP } else { RETRY };

                let step = certificates.next(&self.intent, self.now(), trusted);
                let pause = match step {
                    RenewalStep::WaitUntil(moment) => {
                        Duration::try_from(self.now().duration_until(moment)).unwrap_or_default()
                    }
                    // Without a moment the missing lists or patches wake us.
                    RenewalStep::AwaitTrust => {
                        trust.map_or(LONGEST_SLEEP, |moment| moment.saturating_duration_since(Instant::now()))
                    }
                    RenewalStep::AddAuthority | RenewalStep::SignServing => {
                        tracing::info!(?step, "renewing the webhook certificate");
                        let now = self.minting_time()?;
                        let next = certificates.after(step, &self.intent, &self.policy, now)?;
                        self.write(&next, resource_version).await?;
                        RETRY
                    }
                };
                Ok(pause.min(retry))
            }
        }
    }

    /// Writes the Secret, unless it has changed since; the watch brings the result in either case.
    async fn write(&self, certificates: &WebhookCertificates, resource_version: &str) -> Result<(), Error> {
        let patch = json!({
            "metadata": { "resourceVersion": resource_version },
            "data": certificates.write(),
        });
        let parameters =
            PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        match self.secrets().patch(CERTIFICATE_SECRET, &parameters, &Patch::Merge(&patch)).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => Ok(()),
            Err(error) => Err(call("write the webhook certificate", error)),
        }
    }

    /// Looks at every object that may be wrong. What fails stays to be looked at.
    async fn inject(&self, objects: &mut Objects, wanted: &Wanted) {
        if objects.wanted.as_ref() != Some(wanted) {
            objects.wanted = Some(wanted.clone());
            objects.trusted = None;
            objects.dirty.clone_from(&objects.known);
        }
        for (kind, name) in objects.dirty.clone() {
            match self.inject_one(kind, &name, wanted).await {
                Ok(changed) => {
                    if changed {
                        tracing::info!(?kind, name, "webhook address and authority written");
                        objects.trusted = None;
                    }
                    objects.dirty.remove(&(kind, name));
                }
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        ?kind,
                        name,
                        "cannot write the webhook address and authority"
                    );
                }
            }
        }
        let complete = objects.dirty.is_empty() && objects.listed == self.objects;
        if complete && objects.trusted.is_none() {
            objects.trusted = Some(Instant::now());
        }
    }

    /// True if something had to be written.
    async fn inject_one(&self, kind: Kind, name: &str, wanted: &Wanted) -> Result<bool, Error> {
        let resource = match kind {
            Kind::Validating => ApiResource::erase::<ValidatingWebhookConfiguration>(&()),
            Kind::Mutating => ApiResource::erase::<MutatingWebhookConfiguration>(&()),
            Kind::Definition => ApiResource::erase::<CustomResourceDefinition>(&()),
        };
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let Some(object) = api.get_opt(name).await.map_err(|error| call(&format!("read {name}"), error))?
        else {
            return Ok(false);
        };
        let Wanted { bundle, token } = wanted;
        let (target, conversion_path) = (&self.target, &self.conversion_path);
        let injection = Injection { target, bundle, token, conversion_path };
        let value = serde_json::to_value(&object)
            .map_err(|error| call(&format!("read {name}"), kube::Error::SerdeError(error)))?;
        let Some(patch) = injection.patch(kind, &value) else {
            return Ok(false);
        };
        let parameters =
            PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        api.patch(name, &parameters, &Patch::Merge(&patch))
            .await
            .map_err(|error| call(&format!("write our webhook into {name}"), error))?;
        Ok(true)
    }

    fn changes(&self) -> impl Stream<Item = Change> + Send + Unpin + use<> {
        stream::select_all(self.objects.iter().map(|object| match object.0 {
            Kind::Validating => self.watch::<ValidatingWebhookConfiguration>(object),
            Kind::Mutating => self.watch::<MutatingWebhookConfiguration>(object),
            Kind::Definition => self.watch::<CustomResourceDefinition>(object),
        }))
    }

    fn watch<K>(&self, object: &Object) -> BoxStream<'static, Change>
    where
        K: Resource<DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + Send
            + serde::de::DeserializeOwned
            + 'static,
    {
        let named = format!("metadata.name={}", object.1);
        let config = watcher::Config::default().labels(WEBHOOK_LABEL).fields(&named);
        let object = object.clone();
        watcher(Api::<PartialObjectMeta<K>>::all(self.client.clone()), config)
            .default_backoff()
            .filter_map(move |event| std::future::ready(translate(object.clone(), event)))
            .boxed()
    }
}

fn translate<K>(object: Object, event: watcher::Result<Event<PartialObjectMeta<K>>>) -> Option<Change> {
    match event {
        Ok(Event::Apply(_) | Event::InitApply(_)) => Some(Change::Seen(object)),
        Ok(Event::Delete(_)) => Some(Change::Gone(object)),
        Ok(Event::InitDone) => Some(Change::Listed(object)),
        Ok(Event::Init) => Some(Change::Listing(object)),
        Err(error) => {
            tracing::warn!(error = &error as &dyn std::error::Error, ?object, "webhook watch interrupted");
            None
        }
    }
}

impl Objects {
    fn note(&mut self, change: Change) {
        match change {
            Change::Seen(object) => {
                self.known.insert(object.clone());
                self.dirty.insert(object);
            }
            Change::Gone(object) => {
                self.known.remove(&object);
                self.dirty.remove(&object);
            }
            Change::Listing(object) => {
                self.known.remove(&object);
                self.dirty.remove(&object);
                self.listed.remove(&object);
            }
            Change::Listed(object) => {
                self.listed.insert(object);
            }
        }
    }
}
