//! Machine: the version has a `v`.

use serde_json::Value;

pub(super) fn default(object: &mut Value) {
    prefix_version(object, "/spec/version");
}

/// `1.34.0` becomes `v1.34.0`, as image tags and Nodes spell it.
pub(super) fn prefix_version(object: &mut Value, pointer: &str) {
    if let Some(Value::String(version)) = object.pointer_mut(pointer)
        && version.starts_with(|first: char| first.is_ascii_digit())
    {
        version.insert(0, 'v');
    }
}
