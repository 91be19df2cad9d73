//! Does what the API server does with a CRD's schema: sets defaults, and refuses what does not fit.
//!
//! An offline preview has no API server for that. CEL rules are not evaluated here; the API server does that when the
//! object is applied.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use regex::Regex;
use serde_json::Value;

use crate::admission::FieldError;

/// The schema of one version of a kind.
pub fn of<'crd>(definition: &'crd CustomResourceDefinition, version: &str) -> Option<&'crd JSONSchemaProps> {
    let version = definition.spec.versions.iter().find(|found| found.name == version && found.served)?;
    version.schema.as_ref()?.open_api_v3_schema.as_ref()
}

/// Gives defaults, where the object around them is there.
pub fn default(schema: &JSONSchemaProps, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, below) in schema.properties.iter().flatten() {
                if let Some(default) = below.default.as_ref().filter(|_| !fields.contains_key(name)) {
                    fields.insert(name.clone(), default.0.clone());
                }
                if let Some(value) = fields.get_mut(name) {
                    default(below, value);
                }
            }
            if let Some(JSONSchemaPropsOrBool::Schema(below)) = &schema.additional_properties {
                for value in fields.values_mut() {
                    default(below, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(JSONSchemaPropsOrArray::Schema(below)) = &schema.items {
                for item in items {
                    default(below, item);
                }
            }
        }
        _ => {}
    }
}

/// Everything that does not fit. Metadata is the API server's own.
pub fn check(schema: &JSONSchemaProps, object: &Value) -> Vec<FieldError> {
    let mut found = Vec::new();
    for (name, below) in schema.properties.iter().flatten() {
        if let Some(value) = object.get(name).filter(|_| name != "metadata") {
            visit(below, value, name, &mut found);
        }
    }
    let known = |name: &str| {
        ["apiVersion", "kind", "metadata"].contains(&name)
            || schema.properties.as_ref().is_some_and(|all| all.contains_key(name))
    };
    unknown(object, "", known, &mut found);
    required(schema, object, "", &mut found);
    found
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn unknown(value: &Value, path: &str, known: impl Fn(&str) -> bool, found: &mut Vec<FieldError>) {
    let fields = value.as_object().into_iter().flatten();
    let strange = fields.filter(|(name, _)| !known(name));
    found.extend(strange.map(|(name, _)| FieldError::forbidden(below(path, name), "there is no such field")));
}

fn required(schema: &JSONSchemaProps, value: &Value, path: &str, found: &mut Vec<FieldError>) {
    let missing = schema.required.iter().flatten().filter(|name| value.get(name.as_str()).is_none());
    found.extend(missing.map(|name| FieldError::required(below(path, name), "it must be set")));
}

fn visit(schema: &JSONSchemaProps, value: &Value, path: &str, found: &mut Vec<FieldError>) {
    if value.is_null() && schema.nullable == Some(true) {
        return;
    }
    if let Some(why) = wrong_type(schema, value) {
        found.push(FieldError::invalid(path, value.clone(), why));
        return;
    }
    let choices = schema.enum_.iter().flatten().map(|choice| choice.0.clone()).collect::<Vec<_>>();
    if !choices.is_empty() && !choices.contains(value) {
        let choices = choices.iter().map(Value::to_string).collect::<Vec<_>>().join(", ");
        found.push(FieldError::invalid(path, value.clone(), format!("it must be one of {choices}")));
    }
    match value {
        Value::Object(fields) => {
            let others = match &schema.additional_properties {
                Some(JSONSchemaPropsOrBool::Schema(others)) => Some(others),
                _ => None,
            };
            for (name, value) in fields {
                let own = schema.properties.as_ref().and_then(|all| all.get(name));
                if let Some(schema) = own.or(others.map(Box::as_ref)) {
                    visit(schema, value, &below(path, name), found);
                }
            }
            let is_open = schema.x_kubernetes_preserve_unknown_fields == Some(true)
                || schema.additional_properties.is_some()
                || schema.properties.is_none();
            let known =
                |name: &str| is_open || schema.properties.as_ref().is_some_and(|all| all.contains_key(name));
            unknown(value, path, known, found);
            required(schema, value, path, found);
        }
        Value::Array(items) => {
            found.extend(size(path, value, items.len(), schema.min_items, schema.max_items, "items"));
            if let Some(JSONSchemaPropsOrArray::Schema(schema)) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    visit(schema, item, &format!("{path}[{index}]"), found);
                }
            }
        }
        Value::String(text) => {
            let length = text.chars().count();
            found.extend(size(path, value, length, schema.min_length, schema.max_length, "characters"));
            let pattern =
                schema.pattern.as_deref().and_then(|pattern| Some((pattern, Regex::new(pattern).ok()?)));
            if let Some((pattern, _)) = pattern.filter(|(_, regex)| !regex.is_match(text)) {
                found.push(FieldError::invalid(path, text.clone(), format!("it must match {pattern}")));
            }
        }
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            if let Some(least) = schema.minimum.filter(|least| number < *least) {
                found.push(FieldError::invalid(path, value.clone(), format!("it must be at least {least}")));
            }
            if let Some(most) = schema.maximum.filter(|most| number > *most) {
                found.push(FieldError::invalid(path, value.clone(), format!("it must be at most {most}")));
            }
        }
        Value::Bool(_) | Value::Null => {}
    }
}

fn size(
    path: &str,
    value: &Value,
    size: usize,
    least: Option<i64>,
    most: Option<i64>,
    what: &str,
) -> Option<FieldError> {
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    let why = match (least, most) {
        (Some(least), _) if size < least => format!("it must have at least {least} {what}"),
        (_, Some(most)) if size > most => format!("it must have at most {most} {what}"),
        _ => return None,
    };
    Some(FieldError::invalid(path, value.clone(), why))
}

fn wrong_type(schema: &JSONSchemaProps, value: &Value) -> Option<String> {
    if schema.x_kubernetes_int_or_string == Some(true) {
        return (!value.is_i64() && !value.is_string()).then(|| "it must be a number or a text".to_owned());
    }
    let fits = match schema.type_.as_deref()? {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        _ => true,
    };
    (!fits).then(|| format!("it must be of type {}", schema.type_.as_deref().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> JSONSchemaProps {
        serde_json::from_value(json!({
            "type": "object",
            "required": ["spec"],
            "properties": { "spec": {
                "type": "object",
                "required": ["version"],
                "properties": {
                    "version": { "type": "string", "pattern": "^v1" },
                    "replicas": { "type": "integer", "minimum": 1, "default": 2 },
                    "kind": { "type": "string", "enum": ["A", "B"] },
                    "list": { "type": "array", "maxItems": 1, "items": { "type": "string" } },
                    "open": { "type": "object", "additionalProperties": { "type": "string" } },
                },
            } },
        }))
        .unwrap()
    }

    #[test]
    fn every_field_that_does_not_fit_is_named() {
        let object = json!({
            "apiVersion": "a/v1", "kind": "K", "metadata": { "name": "n" }, "strange": 1,
            "spec": { "replicas": 0, "kind": "C", "list": ["a", 1], "open": { "x": 1 }, "version": "2", "typo": 1 },
        });
        let paths: Vec<String> =
            check(&schema(), &object).iter().map(|error| error.path().to_owned()).collect();
        let expected = [
            "spec.kind",
            "spec.list",
            "spec.list[1]",
            "spec.open.x",
            "spec.replicas",
            "spec.version",
            "spec.typo",
            "strange",
        ];
        assert_eq!(paths, expected);
        assert_eq!(check(&schema(), &json!({ "spec": {} }))[0].path(), "spec.version");
    }

    #[test]
    fn defaults_are_given_where_their_object_is_there() {
        let mut object = json!({ "spec": { "version": "v1" } });
        default(&schema(), &mut object);
        assert_eq!(object["spec"]["replicas"], 2);
        let mut empty = json!({});
        default(&schema(), &mut empty);
        assert_eq!(empty, json!({}));
    }
}
