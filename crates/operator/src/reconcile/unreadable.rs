//! Says on an object that its type cannot read it.

use hangar_kit::Error;
use hangar_kit::controller::Settled;
use hangar_kit::watch::{Kept, Unreadable};
use hangar_plan::unreadable;
use jiff::Timestamp;
use kube::Resource as _;
use kube::api::{Patch, PatchParams, Request};
use serde::de::IgnoredAny;
use serde_json::json;

use super::{Edge, Status, settle};
use crate::context::Context;

/// Writes the condition, tied to the version that could not be read. What comes back cannot be read either.
pub(super) async fn report<E: Edge>(context: &Context, object: &Kept<Unreadable>) -> Result<Settled, Error> {
    let Some(status) = unreadable::status::<Status<E>>(&object.value, Timestamp::now()) else {
        return Ok(Settled::done());
    };
    let (uid, version) = (&object.uid, &object.resource_version);
    let patch = Patch::Merge(json!({
        "metadata": { "uid": uid, "resourceVersion": version },
        "status": status,
    }));
    let failed = |error| Error::api(format!("write the status of {}", object.key), error);
    let request = Request::new(E::Root::url_path(&(), object.key.namespace.as_deref()))
        .patch_subresource("status", &object.key.name, &PatchParams::default(), &patch)
        .map_err(|error| failed(kube::Error::BuildRequest(error)))?;
    match context.client().request::<IgnoredAny>(request).await {
        Ok(_) => Ok(Settled::done()),
        // It changed or is gone: what it is now wakes us.
        Err(kube::Error::Api(answer)) if matches!(answer.code, 404 | 409) => {
            Ok(settle::outdated(&Settled::done()))
        }
        Err(error) => Err(failed(error)),
    }
}
