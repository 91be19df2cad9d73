//! Typed reads at a path of raw JSON. A value that is absent, null, empty or of another type counts as absent.

use serde_json::Value;

use super::Endpoint;

pub(super) fn text<'object>(object: &'object Value, path: &str) -> Option<&'object str> {
    object.pointer(path)?.as_str().filter(|text| !text.is_empty())
}

/// Whether there is a `true` at the path.
pub(super) fn flag(object: &Value, path: &str) -> bool {
    object.pointer(path).and_then(Value::as_bool).unwrap_or(false)
}

/// A count; what is negative is not one.
pub(super) fn count(object: &Value, path: &str) -> Option<i32> {
    object.pointer(path)?.as_i64().and_then(|count| i32::try_from(count).ok()).filter(|count| *count >= 0)
}

/// The control plane endpoint of a spec, if host and port are both there.
pub(super) fn endpoint(object: &Value) -> Option<Endpoint> {
    let endpoint = Endpoint {
        host: text(object, "/spec/controlPlaneEndpoint/host")?.to_owned(),
        port: count(object, "/spec/controlPlaneEndpoint/port")?,
    };
    endpoint.is_valid().then_some(endpoint)
}
