//! Bounds that only the newer version has, for types that both versions share.

use schemars::Schema;
use serde_json::{Value, json};

/// Refuses empty lists and objects at these places, as the newer version does.
pub(super) fn refuse_empty(schema: &mut Schema, places: &[impl AsRef<str>]) {
    for place in places {
        let Some(Value::Object(bounds)) = schema.pointer_mut(place.as_ref()) else { continue };
        if bounds.contains_key("items") {
            bounds.insert("minItems".to_owned(), json!(1));
            bounds.insert("x-kubernetes-list-type".to_owned(), json!("atomic"));
        } else {
            bounds.insert("minProperties".to_owned(), json!(1));
        }
    }
}
