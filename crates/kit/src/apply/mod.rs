//! Applies desired objects: one field manager, no call if nothing changed, and no object that was deleted is created
//! anew.
//!
//! Invariants
//! - Nothing is decided from an unknown read.
//! - An object that was seen is applied with its uid. If it was deleted meanwhile the API server refuses, where a bare
//!   server-side apply would create it anew, half empty and without its history.
//! - A missing object is created only after a live read confirms that it is missing, and without force: if somebody
//!   else creates it in between, fields that they set are a conflict. An existing object without our annotation is
//!   foreign and left alone.
//! - "Nothing changed" is decided here (`compare`), from our annotation and the live object, so at rest nothing is
//!   sent.
//! - Creates go through server-side apply as well, not POST: fields owned by an Update entry would never be pruned.

mod compare;

use std::fmt::Debug;

use hangar_plan::flow::{Read, Unknown};
use kube::{
    Api, Resource,
    api::{Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

pub use compare::is_contained;

use crate::{
    ObjectKey,
    error::{Error, Result},
};

/// Prefix of the annotation that holds the hash of what we applied last; the field manager's name follows.
pub const APPLIED_ANNOTATION_PREFIX: &str = "applied.hangar.cluster.x-k8s.io/";

/// What came of applying.
#[derive(Clone, Debug, PartialEq)]
pub enum Applied<K> {
    /// It was so already; nothing was sent.
    Unchanged,
    Created(K),
    /// It is changed now.
    Changed(K),
    /// It is being deleted: nothing was sent.
    Terminating,
    /// It is gone, or another has its name: nothing was changed. Read again.
    Vanished,
}

impl<K> Applied<K> {
    /// The object as the API server returned it: give it to the watch's overlay.
    pub fn object(self) -> Option<K> {
        match self {
            Self::Created(object) | Self::Changed(object) => Some(object),
            _ => None,
        }
    }
}

/// Applies in the name of one field manager.
#[derive(Clone, Debug)]
pub struct Applier {
    manager: String,
    annotation: String,
}

impl Applier {
    /// Applies for a controller; its name is the field manager and never changes.
    pub fn new(manager: impl Into<String>) -> Self {
        let manager = manager.into();
        Self { annotation: format!("{APPLIED_ANNOTATION_PREFIX}{manager}"), manager }
    }

    /// Brings one object to what is desired. `live` is what the watch shows, without managedFields.
    pub async fn apply<K>(&self, api: &Api<K>, desired: &K, live: Read<&K>) -> Result<Applied<K>>
    where
        K: Resource + Serialize + DeserializeOwned + Clone + Debug,
    {
        let prepared = self.prepare(desired)?;
        match live {
            Read::Unknown(unknown) => Err(Error::Undecidable { what: prepared.what, unknown }),
            Read::Many(_) => {
                let unknown = Unknown::new("a name leads to several objects");
                Err(Error::Undecidable { what: prepared.what, unknown })
            }
            Read::One(live) => self.change(api, prepared, live).await,
            Read::Absent => {
                let found = api.get_opt(&prepared.key.name).await;
                match found.map_err(|source| Error::api(format!("read {}", prepared.what), source))? {
                    Some(live) => self.change(api, prepared, &live).await,
                    None => self.create(api, prepared).await,
                }
            }
        }
    }

    /// Changes an object that is there, and leaves alone what others set in the place of ours: `keep` takes it over into
    /// what is sent. What was kept does not count as a change of ours, now or later.
    pub async fn apply_keeping<K>(
        &self,
        api: &Api<K>,
        desired: &K,
        live: &K,
        keep: impl FnOnce(Value) -> Value,
    ) -> Result<Applied<K>>
    where
        K: Resource + Serialize + DeserializeOwned + Clone + Debug,
    {
        let mut prepared = self.prepare(desired)?;
        prepared.body = keep(prepared.body);
        self.change(api, prepared, live).await
    }

    async fn create<K>(&self, api: &Api<K>, prepared: Prepared) -> Result<Applied<K>>
    where
        K: Resource + DeserializeOwned + Clone + Debug,
    {
        match self.send(api, &prepared, false).await {
            Ok(created) => Ok(Applied::Created(created)),
            // It did not exist a moment ago: whoever made it since is not us.
            Err(error) if is_field_conflict(&error) => Err(Error::Foreign { what: prepared.what }),
            Err(error) => Err(Error::api(format!("create {}", prepared.what), error)),
        }
    }

    async fn change<K>(&self, api: &Api<K>, mut prepared: Prepared, live: &K) -> Result<Applied<K>>
    where
        K: Resource + Serialize + DeserializeOwned + Clone + Debug,
    {
        let meta = live.meta();
        if meta.deletion_timestamp.is_some() {
            return Ok(Applied::Terminating);
        }
        let mark = meta.annotations.as_ref().and_then(|annotations| annotations.get(&self.annotation));
        if mark.is_none() || has_other_controller(&prepared.body, live) {
            return Err(Error::Foreign { what: prepared.what });
        }
        let value = to_value(live, &prepared.what)?;
        if mark == Some(&prepared.hash) && compare::is_contained(&prepared.body, &value) {
            return Ok(Applied::Unchanged);
        }
        let Some(uid) = &meta.uid else {
            return Err(Error::Malformed { what: prepared.what, problem: "it has no uid".to_owned() });
        };
        prepared.body["metadata"]["uid"] = json!(uid);
        match self.send(api, &prepared, true).await {
            Ok(changed) => Ok(Applied::Changed(changed)),
            Err(error) if is_other_uid(&error) => Ok(Applied::Vanished),
            Err(error) => Err(Error::api(format!("apply {}", prepared.what), error)),
        }
    }

    async fn send<K>(&self, api: &Api<K>, prepared: &Prepared, force: bool) -> kube::Result<K>
    where
        K: Resource + DeserializeOwned + Clone + Debug,
    {
        let parameters = PatchParams { force, ..PatchParams::apply(&self.manager) };
        api.patch(&prepared.key.name, &parameters, &Patch::Apply(&prepared.body)).await
    }

    /// The body to send: only what we set, with its hash.
    fn prepare<K: Resource + Serialize>(&self, desired: &K) -> Result<Prepared> {
        let key = ObjectKey::of(desired);
        let mut body = to_value(desired, &key.to_string())?;
        let kind = body["kind"].as_str().unwrap_or_default();
        let what = format!("{kind} {key}");
        if kind.is_empty() || body["apiVersion"].as_str().is_none_or(str::is_empty) || key.name.is_empty() {
            let problem = "it lacks its kind, its version or its name".to_owned();
            return Err(Error::Malformed { what, problem });
        }
        if let Some(meta) = body["metadata"].as_object_mut() {
            for field in ["managedFields", "resourceVersion", "uid", "creationTimestamp", "generation"] {
                meta.remove(field);
            }
        }
        let hash = compare::hash(&body);
        if !body["metadata"]["annotations"].is_object() {
            body["metadata"]["annotations"] = json!({});
        }
        body["metadata"]["annotations"][&self.annotation] = json!(hash);
        Ok(Prepared { key, what, body, hash })
    }
}

struct Prepared {
    key: ObjectKey,
    what: String,
    body: Value,
    hash: String,
}

fn to_value(object: &impl Serialize, what: &str) -> Result<Value> {
    serde_json::to_value(object)
        .map_err(|error| Error::Malformed { what: what.to_owned(), problem: error.to_string() })
}

/// True when both name a managing owner and it is not the same.
fn has_other_controller<K: Resource>(desired: &Value, live: &K) -> bool {
    let is_controller = |owner: &&Value| owner["controller"] == json!(true);
    let wanted = desired["metadata"]["ownerReferences"].as_array();
    let wanted =
        wanted.and_then(|owners| owners.iter().find(is_controller)).and_then(|owner| owner["uid"].as_str());
    let owners = live.meta().owner_references.iter().flatten();
    let present =
        owners.into_iter().find(|owner| owner.controller == Some(true)).map(|owner| owner.uid.as_str());
    matches!((wanted, present), (Some(wanted), Some(present)) if wanted != present)
}

fn is_field_conflict(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else {
        return false;
    };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    status.code == 409 && causes.into_iter().any(|cause| cause.reason == "FieldManagerConflict")
}

/// How the API server says that no object with that uid has the name: a conflict if there is none at all, an invalid
/// uid if there is another.
fn is_other_uid(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else {
        return false;
    };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    match status.code {
        404 | 409 => true,
        422 => causes.into_iter().any(|cause| cause.field == "metadata.uid"),
        _ => false,
    }
}
