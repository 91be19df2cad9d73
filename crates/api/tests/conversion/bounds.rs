//! Tests that a converted object obeys the structure of the schema it is converted into.
//!
//! The API server does not validate converted objects, but the next write of the object is validated, in the version of
//! the writer. Lengths and patterns of text are not checked, because no conversion can repair a malformed name. Empty
//! values of required fields are not checked either: if the older object has no value, there is none to convert.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::Value;

/// Everything in a value that breaks the structure of its schema. A required value may be empty.
pub(crate) fn violations(path: &str, schema: &JSONSchemaProps, value: &Value, required: bool) -> Vec<String> {
    let mut found = Vec::new();
    let mut say = |what: &str| found.push(format!("{path}: {what}: {value}"));
    if schema.enum_.as_ref().is_some_and(|allowed| !allowed.iter().any(|allowed| allowed.0 == *value)) {
        say("not in the enum");
    }
    let expected = schema.type_.as_deref().unwrap_or("anything");
    let fits = match expected {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        _ => true,
    };
    if !fits {
        say(expected);
    }
    if value.as_f64().is_some_and(|number| {
        schema.minimum.is_some_and(|least| number < least) || schema.maximum.is_some_and(|most| number > most)
    }) {
        say("out of bounds");
    }
    if let Some(items) = value.as_array() {
        let count = i64::try_from(items.len()).expect("a count");
        if (!required && schema.min_items.is_some_and(|least| count < least))
            || schema.max_items.is_some_and(|most| count > most)
        {
            say("too few or too many items");
        }
        if let Some(JSONSchemaPropsOrArray::Schema(schema)) = &schema.items {
            found.extend(items.iter().flat_map(|item| violations(&format!("{path}[]"), schema, item, true)));
        }
    }
    if let Some(fields) = value.as_object() {
        found.extend(field_violations(path, schema, fields, required));
    }
    found
}

fn field_violations(
    path: &str,
    schema: &JSONSchemaProps,
    fields: &serde_json::Map<String, Value>,
    required: bool,
) -> Vec<String> {
    let mut found = Vec::new();
    if !required && schema.min_properties.is_some() && fields.is_empty() {
        found.push(format!("{path}: empty"));
    }
    for name in schema.required.iter().flatten().filter(|name| !fields.contains_key(*name)) {
        found.push(format!("{path}: {name} is missing"));
    }
    for (name, value) in fields {
        let path = format!("{path}.{name}");
        let required = schema.required.iter().flatten().any(|required| required == name);
        let known = schema.properties.as_ref().and_then(|properties| properties.get(name));
        match (known, &schema.additional_properties) {
            (Some(schema), _) => found.extend(violations(&path, schema, value, required)),
            (None, Some(JSONSchemaPropsOrBool::Schema(schema))) => {
                found.extend(violations(&path, schema, value, required));
            }
            (None, _) if schema.x_kubernetes_preserve_unknown_fields == Some(true) => {}
            (None, _) => found.push(format!("{path}: unknown")),
        }
    }
    found
}
