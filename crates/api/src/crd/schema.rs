//! Normalises all schemas in the same way.
//!
//! - `nullable` is removed: an optional field may be absent, and `null` is not a third state.
//! - Unsigned and 64 bit formats that the API server does not know are removed.
//! - Numbers and times that the Rust types cannot hold are refused, by bounds and a pattern: the API server itself knows
//!   integers of 64 bits only, and accepts times with any offset.
//! - Defaults are kept only where a type asks for a value: an empty default would be written into every object.
//! - Descriptions are unwrapped; titles (Rust type names) are removed.
//! - Types that k8s-openapi describes without markers and bounds get those of their Go types: conditions are a map by
//!   type, selectors are atomic, quantities and int-or-string values have both forms.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::{Value, json};

/// How the API server reads a quantity; the pattern that Go types carry.
pub const QUANTITY_PATTERN: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";
/// Times whose offset is one that exists, and that stay within four digits of the year wherever they are shown.
pub const TIME_PATTERN: &str = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-](0[0-9]|1[0-9]|2[0-3]):[0-5][0-9])$";
/// Programmatic identifiers of conditions.
const REASON_PATTERN: &str = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";
/// Condition types, optionally prefixed by a domain.
const CONDITION_TYPE_PATTERN: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
/// More conditions than any kind here has; the bound keeps the cost of validation rules finite.
const MAXIMUM_CONDITIONS: i64 = 32;

/// Normalises the schema of a whole kind. Where the kind has no description of its own, its spec's is the best there is.
pub fn normalise_root(root: &mut JSONSchemaProps) {
    normalise(root);
    if root.description.as_deref().is_none_or(|text| text.starts_with("Auto-generated derived type")) {
        let spec = root.properties.as_ref().and_then(|properties| properties.get("spec"));
        root.description = spec.and_then(|spec| spec.description.clone());
    }
}

/// Normalises a schema and everything below it.
pub fn normalise(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    schema.title = None;
    schema.description = schema.description.as_deref().map(unwrapped).filter(|text| !text.is_empty());
    bound(schema);
    if schema.format.as_deref().is_some_and(|format| format.starts_with("uint")) {
        schema.format = None;
    }
    if schema.default.as_ref().is_some_and(|default| is_empty(&default.0)) {
        schema.default = None;
    }
    if let Some(allowed) = &mut schema.enum_ {
        allowed.retain(|value| !value.0.is_null());
    }
    if let Some(required) = &mut schema.required {
        required.sort();
        required.dedup();
    }
    if schema.required.as_ref().is_some_and(Vec::is_empty) {
        schema.required = None;
    }
    give_shape(schema);
    for child in children(schema) {
        normalise(child);
    }
}

/// Refuses what the types cannot hold.
fn bound(schema: &mut JSONSchemaProps) {
    match schema.format.as_deref() {
        Some("int32") => {
            schema.minimum.get_or_insert(i32::MIN.into());
            schema.maximum.get_or_insert(i32::MAX.into());
        }
        Some("uint32") => {
            schema.maximum.get_or_insert(u32::MAX.into());
        }
        Some("date-time") => {
            schema.pattern.get_or_insert_with(|| TIME_PATTERN.to_owned());
        }
        _ => {}
    }
}

/// Every schema directly below this one.
fn children(schema: &mut JSONSchemaProps) -> Vec<&mut JSONSchemaProps> {
    let mut children: Vec<&mut JSONSchemaProps> = Vec::new();
    children.extend(schema.properties.iter_mut().flat_map(|properties| properties.values_mut()));
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => children.push(items),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => children.extend(items),
        None => {}
    }
    for extra in [&mut schema.additional_properties, &mut schema.additional_items].into_iter().flatten() {
        if let JSONSchemaPropsOrBool::Schema(extra) = extra {
            children.push(extra);
        }
    }
    for alternatives in [&mut schema.all_of, &mut schema.any_of, &mut schema.one_of] {
        children.extend(alternatives.iter_mut().flatten());
    }
    children.extend(schema.not.as_deref_mut());
    children
}

/// Line breaks inside a paragraph go, paragraphs stay.
fn unwrapped(text: &str) -> String {
    text.split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|paragraph| !paragraph.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n")
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

fn give_shape(schema: &mut JSONSchemaProps) {
    if schema.x_kubernetes_int_or_string == Some(true) {
        int_or_string(schema);
    }
    if has_exactly(schema, &["matchExpressions", "matchLabels"]) {
        selector(schema);
    }
    if is_condition(schema) {
        condition(schema);
    }
    if let Some(conditions) =
        schema.properties.as_mut().and_then(|properties| properties.get_mut("conditions"))
        && matches!(&conditions.items, Some(JSONSchemaPropsOrArray::Schema(items)) if is_condition(items))
    {
        conditions.x_kubernetes_list_type = Some("map".to_owned());
        conditions.x_kubernetes_list_map_keys = Some(vec!["type".to_owned()]);
        conditions.max_items.get_or_insert(MAXIMUM_CONDITIONS);
    }
}

fn int_or_string(schema: &mut JSONSchemaProps) {
    schema.any_of = Some(["integer", "string"].map(typed).to_vec());
    if schema.description.as_deref().is_some_and(|text| text.starts_with("Quantity is a fixed-point")) {
        schema.description = None;
        schema.pattern = Some(QUANTITY_PATTERN.to_owned());
    }
}

fn typed(type_: &str) -> JSONSchemaProps {
    JSONSchemaProps { type_: Some(type_.to_owned()), ..JSONSchemaProps::default() }
}

fn has_exactly(schema: &JSONSchemaProps, names: &[&str]) -> bool {
    schema.properties.as_ref().is_some_and(|properties| properties.keys().eq(names))
}

fn selector(schema: &mut JSONSchemaProps) {
    schema.x_kubernetes_map_type = Some("atomic".to_owned());
    let Some(expressions) = schema.properties.as_mut().and_then(|map| map.get_mut("matchExpressions")) else {
        return;
    };
    expressions.x_kubernetes_list_type = Some("atomic".to_owned());
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut expressions.items
        && let Some(values) = items.properties.as_mut().and_then(|map| map.get_mut("values"))
    {
        values.x_kubernetes_list_type = Some("atomic".to_owned());
    }
}

fn is_condition(schema: &JSONSchemaProps) -> bool {
    has_exactly(schema, &["lastTransitionTime", "message", "observedGeneration", "reason", "status", "type"])
}

fn condition(schema: &mut JSONSchemaProps) {
    let Some(properties) = &mut schema.properties else {
        return;
    };
    for (name, property) in properties {
        match name.as_str() {
            "message" => property.max_length = Some(32_768),
            "observedGeneration" => property.minimum = Some(0.0),
            "reason" => {
                property.min_length = Some(1);
                property.max_length = Some(1024);
                property.pattern = Some(REASON_PATTERN.to_owned());
            }
            "status" => {
                property.enum_ =
                    Some(["True", "False", "Unknown"].map(|status| JSON(json!(status))).to_vec());
            }
            "type" => {
                property.max_length = Some(316);
                property.pattern = Some(CONDITION_TYPE_PATTERN.to_owned());
            }
            _ => {}
        }
    }
}
