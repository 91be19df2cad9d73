//! Checks, without an API server, what an API server demands of a schema before it accepts a CRD.
//!
//! It does not check everything (costs of validation rules need the real compiler), but what goes wrong when types
//! change: a field without a type, references, an untyped list item, a value outside what logical junctors may say, a
//! list map whose keys are not required.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// Every violation in every version of the CRD, as `version: path: what`; empty when it is structural.
pub fn violations(definition: &CustomResourceDefinition) -> Vec<String> {
    let mut found = Vec::new();
    for version in &definition.spec.versions {
        match version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref()) {
            Some(root) => visit(root, &version.name, &mut found),
            None => found.push(format!("{}: no schema", version.name)),
        }
    }
    found
}

fn visit(schema: &JSONSchemaProps, path: &str, found: &mut Vec<String>) {
    own(schema, path, found);
    for (name, property) in schema.properties.iter().flatten() {
        visit(property, &format!("{path}.{name}"), found);
    }
    match &schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => {
            list_keys(schema, items, path, found);
            visit(items, &format!("{path}[]"), found);
        }
        Some(JSONSchemaPropsOrArray::Schemas(_)) => found.push(format!("{path}: items as a list")),
        None if schema.type_.as_deref() == Some("array") => {
            found.push(format!("{path}: array without items"));
        }
        None => {}
    }
    match &schema.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(values)) => visit(values, &format!("{path}{{}}"), found),
        Some(JSONSchemaPropsOrBool::Bool(false)) => {
            found.push(format!("{path}: additionalProperties is false"));
        }
        Some(JSONSchemaPropsOrBool::Bool(true)) | None => {}
    }
    let alternatives = [&schema.all_of, &schema.any_of, &schema.one_of].into_iter().flatten().flatten();
    for alternative in alternatives.chain(schema.not.as_deref()) {
        let is_int_or_string = schema.x_kubernetes_int_or_string == Some(true);
        junctor(alternative, is_int_or_string, path, found);
    }
}

fn own(schema: &JSONSchemaProps, path: &str, found: &mut Vec<String>) {
    let is_open = schema.x_kubernetes_int_or_string == Some(true)
        || schema.x_kubernetes_preserve_unknown_fields == Some(true);
    if schema.type_.is_none() && !is_open {
        found.push(format!("{path}: no type"));
    }
    if schema.ref_path.is_some() || schema.definitions.is_some() {
        found.push(format!("{path}: reference"));
    }
    if schema.properties.is_some() && schema.additional_properties.is_some() {
        found.push(format!("{path}: properties and additionalProperties"));
    }
    if schema.properties.is_some() && schema.type_.as_deref() != Some("object") {
        found.push(format!("{path}: properties of something that is no object"));
    }
    for name in schema.required.iter().flatten() {
        if !schema.properties.as_ref().is_some_and(|properties| properties.contains_key(name)) {
            found.push(format!("{path}: required field {name} does not exist"));
        }
    }
    if schema.nullable == Some(true) && schema.default.is_some() {
        found.push(format!("{path}: nullable with a default"));
    }
    if schema.unique_items == Some(true) {
        found.push(format!("{path}: uniqueItems"));
    }
}

/// Keys of a list map exist in its items and are required there (or have a default).
fn list_keys(list: &JSONSchemaProps, items: &JSONSchemaProps, path: &str, found: &mut Vec<String>) {
    for key in list.x_kubernetes_list_map_keys.iter().flatten() {
        let property = items.properties.as_ref().and_then(|properties| properties.get(key));
        let is_required = items.required.as_ref().is_some_and(|required| required.contains(key));
        if !property.is_some_and(|property| is_required || property.default.is_some()) {
            found.push(format!("{path}: list map key {key} is not required"));
        }
    }
    if list.x_kubernetes_list_type.as_deref() == Some("map") && list.x_kubernetes_list_map_keys.is_none() {
        found.push(format!("{path}: list map without keys"));
    }
}

/// Inside junctors only value validations may appear; `type` only in the int-or-string idiom.
fn junctor(schema: &JSONSchemaProps, is_int_or_string: bool, path: &str, found: &mut Vec<String>) {
    if schema.type_.is_some() && !is_int_or_string {
        found.push(format!("{path}: type inside a junctor"));
    }
    if schema.description.is_some() || schema.default.is_some() || schema.additional_properties.is_some() {
        found.push(format!("{path}: more than a value validation inside a junctor"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: serde_json::Value) -> Vec<String> {
        let mut found = Vec::new();
        visit(&serde_json::from_value(schema).unwrap(), "v1", &mut found);
        found
    }

    #[test]
    fn each_violation_is_named() {
        for (schema, expected) in [
            (json!({"type": "object", "properties": {"a": {}}}), "v1.a: no type"),
            (json!({"type": "array"}), "v1: array without items"),
            (json!({"type": "object", "required": ["a"]}), "v1: required field a does not exist"),
            (json!({"type": "string", "anyOf": [{"type": "string"}]}), "v1: type inside a junctor"),
            (
                json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                    "items": {"type": "object", "properties": {"k": {"type": "string"}}}}),
                "v1: list map key k is not required",
            ),
        ] {
            assert_eq!(check(schema), [expected]);
        }
    }

    #[test]
    fn int_or_string_is_structural() {
        let schema =
            json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]});
        assert!(check(schema).is_empty());
    }
}
