//! Objects of the management cluster that Clusters and Machines are made of: reads for plans, and writes that are seen
//! at once.
//!
//! Every write hands its answer to the watch of its kind, so that the next plan of the same pass, and the next pass, see
//! it. That is what makes folding an outcome the same as reading the stores again.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use hangar_api::reference::ContractVersionedObjectReference;
use hangar_kit::ObjectKey;
use hangar_kit::apply::{Applied, Applier, Rule};
use hangar_kit::controller::Settled;
use hangar_kit::error::{Error, Result, is_lost, status_code};
use hangar_kit::finalizer;
use hangar_kit::watch::{Change, Kept, Watch};
use hangar_plan::flow::{NotYet, Outcome, Read, Unknown};
use hangar_plan::referred::{self, Claim, Referred};
use kube::api::{DeleteParams, PostParams, Preconditions, PropagationPolicy};
use kube::core::{DynamicObject, ObjectMeta};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::context::Foreign;
use crate::{outcome, patch};

/// A kind with its store, in one namespace.
pub(crate) struct Managed<K> {
    api: Api<K>,
    watch: Watch<K>,
}

impl<K> Managed<K>
where
    K: Resource + DeserializeOwned + Clone + Debug + Send + Sync + 'static,
{
    pub(crate) fn new(api: Api<K>, watch: &Watch<K>) -> Self {
        Self { api, watch: watch.clone() }
    }

    /// Merges fields into an object as it was seen.
    pub(crate) async fn merge(&self, seen: &K, fields: Value) -> Outcome {
        self.changed(patch::merge(&self.api, seen, fields).await.map(Answer::of))
    }

    pub(crate) async fn claim(&self, seen: &K, claim: &Claim) -> Outcome {
        let fields =
            json!({ "metadata": { "ownerReferences": claim.owner_references, "labels": claim.labels } });
        self.merge(seen, fields).await
    }

    pub(crate) async fn add_finalizer(&self, seen: &K, name: &str) -> Outcome {
        self.changed(finalizer::add(&self.api, seen, name).await.map(Answer::or_nothing_to_do))
    }

    pub(crate) async fn remove_finalizer(&self, seen: &K, name: &str) -> Outcome {
        match finalizer::remove(&self.api, seen, name).await {
            Ok(Some(object)) if object.meta().finalizers.as_ref().is_none_or(Vec::is_empty) => {
                self.gone(seen);
                Outcome::Done
            }
            answer => self.changed(answer.map(Answer::or_nothing_to_do)),
        }
    }

    /// Deletes exactly the object that was seen.
    pub(crate) async fn delete(&self, name: &str, uid: &str) -> Outcome {
        let parameters = DeleteParams {
            preconditions: Some(Preconditions { uid: Some(uid.to_owned()), resource_version: None }),
            propagation_policy: Some(PropagationPolicy::Background),
            ..DeleteParams::default()
        };
        match self.api.delete(name, &parameters).await {
            Ok(answer) => {
                if let Some(object) = answer.left() {
                    // What has no finalizers is gone by the time of the answer.
                    if object.meta().finalizers.as_ref().is_none_or(Vec::is_empty) {
                        self.gone(&object);
                    } else {
                        self.watch.written(object);
                    }
                }
                Outcome::Done
            }
            // Gone, or another has its name: the store will say so.
            Err(error) if matches!(status_code(&error), Some(404 | 409)) => Outcome::Lost,
            Err(error) => outcome::of_kubernetes::<()>(Err(error)),
        }
    }

    fn gone(&self, object: &K) {
        self.watch.removed(&ObjectKey::of(object), object.meta().uid.as_deref().unwrap_or_default());
    }

    fn changed(&self, answer: Result<Answer<K>>) -> Outcome {
        match answer {
            Ok(Answer::Changed(object)) => {
                self.watch.written(*object);
                Outcome::Done
            }
            Ok(Answer::NothingToDo) => Outcome::Done,
            Ok(Answer::Gone) => Outcome::Lost,
            Err(error) => failed(error),
        }
    }
}

impl<K> Managed<K>
where
    K: Resource + Serialize + DeserializeOwned + Clone + Debug + Send + Sync + 'static,
{
    /// Brings an object of ours to what is desired, or makes it.
    pub(crate) async fn apply(&self, applier: &Applier, desired: &K) -> Result<Applied<K>> {
        let seen = self.watch.get(&ObjectKey::of(desired));
        let applied =
            applier.apply(&self.api, desired, seen.as_ref().map(|kept| &kept.value), Rule::Own).await?;
        if let Applied::Created(object) | Applied::Changed(object) = &applied {
            self.watch.written(object.clone());
        }
        Ok(applied)
    }

    /// Makes an object that plans found missing.
    pub(crate) async fn create(&self, applier: &Applier, desired: &K) -> Outcome {
        match self.apply(applier, desired).await {
            Ok(Applied::Terminating | Applied::Vanished) => Outcome::Lost,
            Ok(_) => Outcome::Created(desired.meta().name.clone().unwrap_or_default()),
            Err(error) => failed(error),
        }
    }

    /// Writes a status where it differs from what the store shows now.
    pub(crate) async fn status<S>(
        &self,
        key: &ObjectKey,
        before: impl Fn(&K) -> Option<&S>,
        after: &S,
    ) -> Result<()>
    where
        S: Serialize + PartialEq,
    {
        let Read::One(root) = self.watch.get(key) else { return Ok(()) };
        if let Some(object) = patch::status(&self.api, &root.value, before(&root.value), after).await? {
            self.watch.written(object);
        }
        Ok(())
    }
}

enum Answer<K> {
    Changed(Box<K>),
    NothingToDo,
    Gone,
}

impl<K> Answer<K> {
    fn of(object: Option<K>) -> Self {
        object.map_or(Self::Gone, |object| Self::Changed(Box::new(object)))
    }

    fn or_nothing_to_do(object: Option<K>) -> Self {
        object.map_or(Self::NothingToDo, |object| Self::Changed(Box::new(object)))
    }
}

/// What was planned from an older state is planned again from the newer one, at once.
fn failed(error: Error) -> Outcome {
    match error {
        Error::Stale { .. } => Outcome::Lost,
        error => outcome::of_kit::<()>(Err(error)),
    }
}

/// The object behind a reference, as plans see it.
pub(crate) fn referred(
    foreign: &Foreign,
    namespace: &str,
    reference: &ContractVersionedObjectReference,
) -> Read<Referred> {
    foreign.get(namespace, reference).map(|found| Referred {
        metadata: found.object.metadata.clone(),
        data: found.object.data.clone(),
        contract: found.contract,
    })
}

/// Whether a store behind one of the references has only just been started. What it will show in a moment is no reason
/// to say that nothing is known; a store that fails to start is.
pub(crate) fn is_starting<'references>(
    foreign: &Foreign,
    references: impl IntoIterator<Item = &'references ContractVersionedObjectReference>,
) -> bool {
    references.into_iter().any(|reference| {
        let Read::One(resource) = foreign.resource(&reference.api_group, &reference.kind) else {
            return false;
        };
        let watch = foreign.watch(&resource);
        !watch.is_synced() && watch.stats().errors == 0
    })
}

/// Comes back when the stores have been listed.
pub(crate) fn starting() -> Settled {
    Settled::NotYet(NotYet::new("a store is being listed", Duration::from_millis(100)))
}

/// The object behind a reference, and how to write to it.
pub(crate) fn writable(
    client: Client,
    foreign: &Foreign,
    namespace: &str,
    reference: &ContractVersionedObjectReference,
) -> Option<(Managed<DynamicObject>, Arc<Kept<DynamicObject>>)> {
    let Read::One(found) = foreign.get(namespace, reference) else { return None };
    let api: Api<DynamicObject> = Api::namespaced_with(client, namespace, &found.resource);
    Some((Managed::new(api, &foreign.watch(&found.resource)), found.object))
}

/// Makes an object of a kind that is not known here. One that exists is ours if the same owner manages it.
pub(crate) async fn create_foreign(client: Client, foreign: &Foreign, object: &DynamicObject) -> Outcome {
    let types = object.types.clone().unwrap_or_default();
    let (group, _) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
    let Read::One(resource) = foreign.resource(group, &types.kind) else { return Outcome::Lost };
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let api: Api<DynamicObject> = Api::namespaced_with(client, namespace, &resource);
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let parameters = PostParams { field_manager: Some("hangar".to_owned()), ..PostParams::default() };
    match api.create(&parameters, object).await {
        Ok(created) => {
            foreign.watch(&resource).written(created);
            Outcome::Created(name.to_owned())
        }
        Err(error) if status_code(&error) == Some(409) => match api.get_opt(name).await {
            Ok(Some(present)) if has_same_controller(&present.metadata, &object.metadata) => {
                foreign.watch(&resource).written(present);
                Outcome::Done
            }
            Ok(Some(_)) => Outcome::Refused(format!("{} {name} exists and is not ours", types.kind)),
            Ok(None) | Err(_) => Outcome::Lost,
        },
        Err(error) if is_lost(&error) => Outcome::Lost,
        Err(error) => outcome::of_kubernetes::<()>(Err(error)),
    }
}

fn has_same_controller(left: &ObjectMeta, right: &ObjectMeta) -> bool {
    let uid = |metadata: &ObjectMeta| referred::controller(metadata).map(|owner| owner.uid.clone());
    uid(left).is_some() && uid(left) == uid(right)
}

/// Whether more than the status of an object changed. Its controller wrote that itself.
pub(crate) fn is_more_than_status<K: Resource>(change: &Change<K>) -> bool {
    let essence = |kept: &Kept<K>| {
        let meta = kept.value.meta();
        (
            meta.generation,
            meta.labels.clone(),
            meta.annotations.clone(),
            meta.finalizers.clone(),
            meta.owner_references.clone(),
            meta.deletion_timestamp.is_some(),
            meta.uid.clone(),
        )
    };
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => essence(before) != essence(after),
        _ => true,
    }
}

/// The items of a read that are in a namespace.
pub(crate) fn in_namespace<K: Clone>(read: Read<Arc<Kept<K>>>, key: &ObjectKey) -> Read<K> {
    read.filter(|kept| kept.key.namespace == key.namespace).map(|kept| kept.value.clone())
}

/// A root that cannot be read leaves nothing to decide.
pub(crate) fn unknown(key: &ObjectKey, unknown: Unknown) -> Error {
    Error::Undecidable { what: key.to_string(), unknown }
}
