//! Adds and removes our finalizer, and nothing else.
//!
//! A patch that replaces the list of finalizers would drop those that others added in between. So the JSON patches here
//! carry the resourceVersion they were computed from: any change in between is a conflict, and nothing happens. Callers
//! read again and repeat.

use std::fmt::Debug;

use kube::{
    Api, Resource,
    api::{Patch, PatchParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    ObjectKey,
    error::{Error, Result},
};

/// True when the object carries the finalizer.
pub fn has<K: Resource>(object: &K, finalizer: &str) -> bool {
    object.meta().finalizers.iter().flatten().any(|present| present == finalizer)
}

/// Makes sure that the object carries the finalizer. Returns the changed object; none when nothing had to be sent.
/// An object that is being deleted gets none any more: the API server would refuse it.
pub async fn add<K>(api: &Api<K>, object: &K, finalizer: &str) -> Result<Option<K>>
where
    K: Resource + DeserializeOwned + Clone + Debug,
{
    if has(object, finalizer) || object.meta().deletion_timestamp.is_some() {
        return Ok(None);
    }
    let operation = if object.meta().finalizers.as_ref().is_none_or(Vec::is_empty) {
        json!({"op": "add", "path": "/metadata/finalizers", "value": [finalizer]})
    } else {
        json!({"op": "add", "path": "/metadata/finalizers/-", "value": finalizer})
    };
    send(api, object, "add a finalizer to", operation).await
}

/// Makes sure that the object does not carry the finalizer. Returns the changed object; none when nothing had to be
/// sent, or when the object is gone.
pub async fn remove<K>(api: &Api<K>, object: &K, finalizer: &str) -> Result<Option<K>>
where
    K: Resource + DeserializeOwned + Clone + Debug,
{
    let Some(position) = object.meta().finalizers.iter().flatten().position(|present| present == finalizer)
    else {
        return Ok(None);
    };
    let operation = json!({"op": "remove", "path": format!("/metadata/finalizers/{position}")});
    match send(api, object, "remove a finalizer from", operation).await {
        Err(Error::Api { source, .. }) if crate::error::status_code(&source) == Some(404) => Ok(None),
        result => result,
    }
}

async fn send<K>(api: &Api<K>, object: &K, action: &str, operation: Value) -> Result<Option<K>>
where
    K: Resource + DeserializeOwned + Clone + Debug,
{
    let key = ObjectKey::of(object);
    let meta = object.meta();
    let (Some(uid), Some(version)) = (&meta.uid, &meta.resource_version) else {
        let problem = "it has no uid or version".to_owned();
        return Err(Error::Malformed { what: key.to_string(), problem });
    };
    let operations = json!([
        {"op": "test", "path": "/metadata/uid", "value": uid},
        // The API server compares what it finds here with what is stored: a conflict if they differ.
        {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
        operation,
    ]);
    let patch = serde_json::from_value(operations)
        .map_err(|error| Error::Malformed { what: key.to_string(), problem: error.to_string() })?;
    match api.patch(&key.name, &PatchParams::default(), &Patch::<()>::Json(patch)).await {
        Ok(changed) => Ok(Some(changed)),
        // 422: the uid test failed, so another object has the name.
        Err(kube::Error::Api(status)) if matches!(status.code, 409 | 422) => {
            Err(Error::Stale { what: key.to_string() })
        }
        Err(error) => Err(Error::api(format!("{action} {key}"), error)),
    }
}
