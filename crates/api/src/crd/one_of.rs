//! The schema of enums that are written as an object with exactly one property.
//!
//! serde writes `enum Param { Id(..), Filter(..) }` as `{"id": ..}` or `{"filter": ..}`: the type cannot hold both or
//! neither. schemars describes that with `oneOf` over whole objects, which is not structural. A bound on the number of
//! properties says the same, and the Go types have it too.

use schemars::Schema;
use serde_json::{Map, Value, json};

/// A schemars transform for such an enum: all variants become properties, of which exactly one may be set.
pub fn exactly_one_property(schema: &mut Schema) {
    let Some(Value::Array(variants)) = schema.remove("oneOf") else {
        return;
    };
    let mut properties = Map::new();
    for variant in variants {
        let description = variant.get("description").cloned();
        let Some(Value::Object(fields)) = variant.get("properties").cloned() else {
            continue;
        };
        for (name, mut field) in fields {
            if let (Some(description), Some(field)) = (&description, field.as_object_mut()) {
                field.insert("description".to_owned(), description.clone());
            }
            properties.insert(name, field);
        }
    }
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema.insert("minProperties".to_owned(), json!(1));
    schema.insert("maxProperties".to_owned(), json!(1));
}
