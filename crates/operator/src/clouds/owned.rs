//! An object of ours whose things are in a cloud: marked before the first of them is made, let go after the last.
//!
//! Its own writes are kept, so that each is tied to the version that the one before it left, and shown to the store at
//! once.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hangar_kit::watch::{Kept, Watch};
use hangar_kit::{Error, finalizer};
use hangar_openstack::Session;
use hangar_plan::flow::Outcome;
use hangar_plan::openstack::{self, OWNER_ID_ANNOTATION};
use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{outcome, patch};

/// One object during one reconcile, and the way into its cloud once there is one.
pub(crate) struct Owned<'a, K> {
    api: Api<K>,
    watch: &'a Watch<K>,
    seen: Arc<Kept<K>>,
    finalizer: &'static str,
    /// As our own writes left it.
    object: Mutex<K>,
    session: Mutex<Option<Session>>,
}

impl<'a, K> Owned<'a, K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static,
{
    pub(crate) fn new(
        client: Client,
        watch: &'a Watch<K>,
        seen: &Arc<Kept<K>>,
        finalizer: &'static str,
    ) -> Self {
        Self {
            api: Api::namespaced(client, seen.key.namespace_or_empty()),
            watch,
            seen: Arc::clone(seen),
            finalizer,
            object: Mutex::new(seen.value.clone()),
            session: Mutex::new(None),
        }
    }

    /// As the reconcile found it.
    pub(crate) fn seen(&self) -> &Arc<Kept<K>> {
        &self.seen
    }

    /// As our own writes left it.
    pub(crate) fn object(&self) -> MutexGuard<'_, K> {
        self.object.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the steps of this pass go through; nothing while the cloud was not asked for facts.
    pub(crate) fn set_session(&self, session: Option<Session>) {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = session;
    }

    /// The way into the cloud and the id that everything made there carries. The plan asks the cloud only after it was
    /// asked for facts, and only for an object that is marked.
    pub(crate) fn access(&self) -> Option<(Session, String)> {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        Some((session, openstack::owner_id(self.object().meta().annotations.as_ref())?))
    }

    /// Owner id and finalizer, together or not at all.
    pub(crate) async fn claim(&self, owner_id: &str) -> Outcome {
        let mut finalizers = self.object().meta().finalizers.clone().unwrap_or_default();
        if !finalizers.iter().any(|present| present == self.finalizer) {
            finalizers.push(self.finalizer.to_owned());
        }
        let fields = json!({"metadata": {
            "annotations": {OWNER_ID_ANNOTATION: owner_id},
            "finalizers": finalizers,
        }});
        self.merge(fields).await
    }

    /// Merges fields into it.
    pub(crate) async fn merge(&self, fields: Value) -> Outcome {
        let object = self.object().clone();
        match patch::merge(&self.api, &object, fields).await {
            Ok(Some(changed)) => {
                self.watch.written(changed.clone());
                *self.object() = changed;
                Outcome::Done
            }
            other => outcome::of_kit(other),
        }
    }

    /// Lets it go.
    pub(crate) async fn release(&self) -> Outcome {
        let object = self.object().clone();
        match finalizer::remove(&self.api, &object, self.finalizer).await {
            Ok(changed) => {
                let left = changed.as_ref().and_then(|changed| changed.meta().finalizers.as_ref());
                if left.is_none_or(Vec::is_empty) {
                    self.watch.removed(&self.seen.key, &self.seen.uid);
                }
                self.object().meta_mut().finalizers = left.cloned();
                Outcome::Done
            }
            Err(error) => outcome::of_kit::<()>(Err(error)),
        }
    }

    /// Writes the status if it differs, unless the object was let go.
    pub(crate) async fn write_status<S>(&self, before: Option<&S>, after: &S) -> Result<(), Error>
    where
        S: Serialize + PartialEq,
    {
        let now = self.object().clone();
        if now.meta().deletion_timestamp.is_some() && !finalizer::has(&now, self.finalizer) {
            return Ok(());
        }
        if let Some(changed) = patch::status(&self.api, &now, before, after).await? {
            self.watch.written(changed);
        }
        Ok(())
    }
}
