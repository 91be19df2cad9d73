//! Changes to objects that exist: statuses and single fields, each tied to the version it was decided from.
//!
//! A change carries the uid and the version of the object that was read, so that nothing is written over something newer
//! or onto a successor of the same name; the API server answers with a conflict and the caller reads again. A status that
//! is so already is not sent: an idle object writes nothing.

use std::fmt::Debug;

use hangar_kit::ObjectKey;
use hangar_kit::error::{Error, Result};
use kube::api::{Patch, PatchParams};
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Writes a status as a whole if it differs from the object's. Returns the changed object.
pub(crate) async fn status<K, S>(api: &Api<K>, object: &K, before: Option<&S>, after: &S) -> Result<Option<K>>
where
    K: Resource + DeserializeOwned + Clone + Debug,
    S: Serialize + PartialEq,
{
    if before == Some(after) {
        return Ok(None);
    }
    let key = ObjectKey::of(object);
    let meta = object.meta();
    let operations = json!([
        {"op": "test", "path": "/metadata/uid", "value": meta.uid},
        // The API server compares what it finds here with what is stored: a conflict if they differ.
        {"op": "replace", "path": "/metadata/resourceVersion", "value": meta.resource_version},
        {"op": "add", "path": "/status", "value": after},
    ]);
    let patch = serde_json::from_value(operations)
        .map_err(|error| Error::Malformed { what: key.to_string(), problem: error.to_string() })?;
    let sent = api.patch_status(&key.name, &PatchParams::default(), &Patch::<()>::Json(patch)).await;
    answered(sent, &key, "write the status of")
}

/// Merges fields into an object. Returns it as it is now.
pub(crate) async fn merge<K>(api: &Api<K>, object: &K, mut fields: Value) -> Result<Option<K>>
where
    K: Resource + DeserializeOwned + Clone + Debug,
{
    let key = ObjectKey::of(object);
    let meta = object.meta();
    fields["metadata"]["uid"] = json!(meta.uid);
    fields["metadata"]["resourceVersion"] = json!(meta.resource_version);
    let sent = api.patch(&key.name, &PatchParams::default(), &Patch::Merge(fields)).await;
    answered(sent, &key, "change")
}

fn answered<K>(sent: kube::Result<K>, key: &ObjectKey, action: &str) -> Result<Option<K>> {
    match sent {
        Ok(changed) => Ok(Some(changed)),
        Err(kube::Error::Api(status)) if status.code == 409 => Err(Error::Stale { what: key.to_string() }),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(Error::api(format!("{action} {key}"), error)),
    }
}
