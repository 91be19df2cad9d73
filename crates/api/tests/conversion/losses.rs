//! A golden of the fields that each direction cannot express.
//!
//! The stash brings everything back, so a conversion that forgets a field passes every round trip. But then the field
//! appears in this golden, and a reviewer has to accept it. The objects have every field of the schema set, to a value
//! that means something in both versions; there is one object per value of the longest enum.
//!
//! A line is a place where a round trip through the other version did not give the original back: `-` if it gave
//! nothing, `+` if it gave something where nothing was, `~` if it gave something else.

use super::{Direction, directions};
use hangar_api::conversion::NoVersions;
use hangar_api::names;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;

/// No enum has more values.
const VARIANTS: usize = 12;

#[test]
fn each_direction_loses_what_is_listed_and_nothing_else() {
    let mut golden = String::new();
    for direction in directions() {
        let _ = writeln!(golden, "{} {}", direction.kind, direction.from);
        for place in losses(&direction) {
            let _ = writeln!(golden, "  {place}");
        }
    }
    insta::assert_snapshot!("losses", golden);
}

fn losses(direction: &Direction) -> BTreeSet<String> {
    let root = direction.schema();
    let mut lost = BTreeSet::new();
    for variant in 0..VARIANTS {
        let mut object = json!({
            "apiVersion": direction.from_api_version,
            "kind": direction.kind,
            "metadata": { "name": "object", "namespace": "namespace" },
        });
        for part in ["spec", "status"] {
            if let Some(schema) = root.properties.as_ref().and_then(|properties| properties.get(part)) {
                object[part] = complete(part, schema, variant);
            }
        }
        let there = direction.there(object, &NoVersions);
        let Some(stash) = there["metadata"]["annotations"].get(names::STASH_ANNOTATION) else {
            continue;
        };
        let stash: Value = serde_json::from_str(stash.as_str().expect("text")).expect("a stash");
        let tag = format!("{}/{}", direction.kind, direction.from);
        for difference in stash[tag].as_array().expect("differences of this version alone") {
            let sign = match (difference.get("h"), difference.get("w")) {
                (None, _) => '-',
                (_, None) => '+',
                _ => '~',
            };
            lost.insert(format!("{} {sign}", place(&difference["p"])));
        }
    }
    lost
}

/// A value with everything in it that the schema knows.
fn complete(name: &str, schema: &JSONSchemaProps, variant: usize) -> Value {
    if let Some(allowed) = &schema.enum_ {
        return allowed[variant % allowed.len()].0.clone();
    }
    match schema.type_.as_deref() {
        Some("object") => {
            let mut fields: Map<String, Value> = schema
                .properties
                .iter()
                .flatten()
                .map(|(name, schema)| (name.clone(), complete(name, schema, variant)))
                .collect();
            if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
                fields.insert("key".to_owned(), complete("key", values, variant));
            }
            Value::Object(fields)
        }
        Some("array") => match &schema.items {
            Some(JSONSchemaPropsOrArray::Schema(items)) => json!([complete(name, items, variant)]),
            _ => json!([]),
        },
        Some("string") => json!(meaningful(name, schema)),
        Some("integer") => json!(2),
        Some("number") => json!(0.5),
        Some("boolean") => json!(variant.is_multiple_of(2)),
        _ => json!("value"),
    }
}

/// A text that both versions can hold in a field of this name.
fn meaningful(name: &str, schema: &JSONSchemaProps) -> &'static str {
    match name {
        _ if schema.format.as_deref() == Some("date-time") => "2026-01-02T03:04:05Z",
        "apiVersion" => "group.example/v1beta1",
        "namespace" => "namespace",
        "ttl" | "timeoutForControlPlane" => "10m0s",
        _ if name.to_lowercase().ends_with("timeout") => "10m0s",
        _ => "text",
    }
}

/// A path without the names and positions of items.
fn place(path: &Value) -> String {
    let mut text = String::new();
    for segment in path.as_array().expect("a path") {
        match segment {
            Value::String(field) if text.is_empty() => text.push_str(field),
            Value::String(field) => {
                let _ = write!(text, ".{field}");
            }
            _ => text.push_str("[]"),
        }
    }
    text
}
