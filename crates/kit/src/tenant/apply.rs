//! Applies objects in a cluster that is not watched: it reads what is there, writes what differs, removes leftovers.
//!
//! Invariants
//! - An object without our annotation is foreign: it is neither changed nor deleted. A new object is applied without
//!   force, so that an object that somebody else creates in between is a conflict.
//! - An object that was seen is written and deleted only with its uid, never another of the same name.
//! - An object that cannot be read is an error of its own; the others are still read.
//!
//! Where several objects of a kind and namespace are looked for they are listed, by the label that all of ours carry. What
//! the list does not show may be there without the label, so it is read by its name, and so are all where the list fails.

use std::collections::BTreeMap;

use futures::{StreamExt as _, stream};
use hangar_plan::inventory::{Found, ObjectIdentity};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions, PropagationPolicy},
    core::{ApiResource, DynamicObject, GroupVersionKind, TypeMeta},
};
use serde_json::{Value, json};

use crate::{
    apply::is_contained,
    error::{Error, Result, status_code},
};

/// Reads of one look that are under way together.
const READS_AT_ONCE: usize = 8;
/// Objects of one list, which the tenant can make larger than ours are.
const LIST_LIMIT: u32 = 50;

/// Applies in the name of one field manager, and knows its objects by one annotation.
#[derive(Clone, Copy, Debug)]
pub struct TenantApplier {
    /// The field manager; it never changes.
    pub manager: &'static str,
    /// The annotation with the hash of what is desired ([`hangar_plan::inventory::marked`]); it never changes.
    pub annotation: &'static str,
    /// Selects all of its objects.
    pub selector: &'static str,
}

impl TenantApplier {
    /// What is there of all desired objects and of what may be left over.
    pub async fn look(
        &self,
        client: &Client,
        desired: &[DynamicObject],
        leftovers: &[ObjectIdentity],
    ) -> BTreeMap<ObjectIdentity, Result<Found>> {
        let mut asked: Vec<(ObjectIdentity, Option<Value>)> = Vec::new();
        for object in desired {
            asked.push((ObjectIdentity::of(object), serde_json::to_value(object).ok()));
        }
        asked.extend(leftovers.iter().map(|identity| (identity.clone(), None)));
        let listed = &self.list_all(client, asked.iter().map(|(identity, _)| identity)).await;
        let reads = asked.into_iter().map(|(identity, desired)| async move {
            let found = match listed.get(&identity) {
                Some(live) => Ok(self.judge(live, desired.as_ref())),
                None => self.read(client, &identity, desired.as_ref()).await,
            };
            (identity, found)
        });
        stream::iter(reads).buffer_unordered(READS_AT_ONCE).collect().await
    }

    /// Those that lists show.
    async fn list_all(
        &self,
        client: &Client,
        asked: impl Iterator<Item = &ObjectIdentity>,
    ) -> BTreeMap<ObjectIdentity, DynamicObject> {
        let mut kinds: BTreeMap<ObjectIdentity, usize> = BTreeMap::new();
        for identity in asked {
            let kind = ObjectIdentity { name: String::new(), ..identity.clone() };
            *kinds.entry(kind).or_default() += 1;
        }
        let several = kinds.into_iter().filter(|(_, count)| *count > 1);
        let lists = several.map(|(kind, _)| async move { self.list(client, &kind).await });
        let lists: Vec<_> = stream::iter(lists).buffer_unordered(READS_AT_ONCE).collect().await;
        lists.into_iter().flatten().flatten().collect()
    }

    /// Ours of one kind and namespace.
    async fn list(
        &self,
        client: &Client,
        kind: &ObjectIdentity,
    ) -> Result<Vec<(ObjectIdentity, DynamicObject)>> {
        let parameters = ListParams::default().labels(self.selector).limit(LIST_LIMIT);
        let listed = api(client, kind)?.list(&parameters).await;
        let listed = listed.map_err(|error| Error::api(format!("list {}", kind.kind), error))?;
        // Items of a list do not say of which kind they are.
        let types = TypeMeta { api_version: kind.api_version.clone(), kind: kind.kind.clone() };
        let named = listed.items.into_iter().map(|mut object| {
            object.types = Some(types.clone());
            (ObjectIdentity::of(&object), object)
        });
        Ok(named.collect())
    }

    async fn read(
        &self,
        client: &Client,
        identity: &ObjectIdentity,
        desired: Option<&Value>,
    ) -> Result<Found> {
        let live = api(client, identity)?.get_opt(&identity.name).await;
        let live = live.map_err(|error| Error::api(format!("read {identity}"), error))?;
        Ok(live.map_or(Found::Absent, |live| self.judge(&live, desired)))
    }

    fn judge(&self, live: &DynamicObject, desired: Option<&Value>) -> Found {
        let Some(applied) = self.hash(live) else {
            return Found::Foreign;
        };
        let is_drifted = match (desired, serde_json::to_value(live)) {
            (Some(desired), Ok(live)) => !is_contained(desired, &live),
            _ => false,
        };
        let uid = live.metadata.uid.clone().unwrap_or_default();
        Found::Ours { uid, applied: Some(applied), is_drifted }
    }

    fn hash(&self, live: &DynamicObject) -> Option<String> {
        live.metadata.annotations.as_ref()?.get(self.annotation).cloned()
    }

    /// Applies a marked object: creates it, or changes the one with this uid, if that was seen and is ours. Says the uid.
    ///
    /// [`Error::Stale`]: another has its name by now. [`Error::Foreign`]: one of another was there first.
    pub async fn apply(&self, client: &Client, object: &DynamicObject, uid: Option<&str>) -> Result<String> {
        let identity = ObjectIdentity::of(object);
        let api = api(client, &identity)?;
        let body = serde_json::to_value(object);
        let mut body = body.map_err(|error| malformed(&identity, &error))?;
        if let Some(uid) = uid {
            body["metadata"]["uid"] = json!(uid);
        }
        // Only what is ours already is taken over from others.
        let parameters = PatchParams { force: uid.is_some(), ..PatchParams::apply(self.manager) };
        match api.patch(&identity.name, &parameters, &Patch::Apply(&body)).await {
            Ok(applied) => Ok(applied.metadata.uid.unwrap_or_default()),
            Err(error) => Err(match (status_code(&error), uid) {
                (Some(409), None) => Error::Foreign { what: identity.to_string() },
                (Some(409), Some(_)) => Error::Stale { what: identity.to_string() },
                (Some(422), Some(_)) if names_uid(&error) => Error::Stale { what: identity.to_string() },
                _ => Error::api(format!("apply {identity}"), error),
            }),
        }
    }

    /// Deletes the object with this uid, if it is still ours. Gone already is fine.
    ///
    /// [`Error::Stale`]: it changed in between. [`Error::Foreign`]: it no longer carries our annotation.
    pub async fn prune(&self, client: &Client, identity: &ObjectIdentity, uid: &str) -> Result<()> {
        let api = api(client, identity)?;
        let live = api.get_opt(&identity.name).await;
        let live = live.map_err(|error| Error::api(format!("read {identity}"), error))?;
        let Some(live) = live.filter(|live| live.metadata.uid.as_deref() == Some(uid)) else {
            return Ok(());
        };
        if self.hash(&live).is_none() {
            return Err(Error::Foreign { what: identity.to_string() });
        }
        let parameters = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(uid.to_owned()),
                resource_version: live.metadata.resource_version,
            }),
            propagation_policy: Some(PropagationPolicy::Background),
            ..DeleteParams::default()
        };
        match api.delete(&identity.name, &parameters).await {
            Ok(_) => Ok(()),
            Err(error) => match status_code(&error) {
                Some(404) => Ok(()),
                Some(409) => Err(Error::Stale { what: identity.to_string() }),
                _ => Err(Error::api(format!("delete {identity}"), error)),
            },
        }
    }
}

/// Kinds of Kubernetes itself and of providers have regular plurals.
fn api(client: &Client, identity: &ObjectIdentity) -> Result<Api<DynamicObject>> {
    let types = TypeMeta { api_version: identity.api_version.clone(), kind: identity.kind.clone() };
    let kind = GroupVersionKind::try_from(&types).map_err(|error| malformed(identity, &error))?;
    let resource = ApiResource::from_gvk(&kind);
    Ok(if identity.namespace.is_empty() {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::namespaced_with(client.clone(), &identity.namespace, &resource)
    })
}

fn malformed(identity: &ObjectIdentity, problem: &dyn std::error::Error) -> Error {
    Error::Malformed { what: identity.to_string(), problem: problem.to_string() }
}

/// Another object has the name: the API server calls a wrong uid invalid.
fn names_uid(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else {
        return false;
    };
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    causes.any(|cause| cause.field == "metadata.uid")
}
