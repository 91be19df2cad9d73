//! Compares two schemas, field by field and attribute by attribute.
//!
//! Only what changes the meaning counts. Two differences are intended and mean the same: a required field with a
//! default (Go's types have both, ours the default), and the width of an integer. Validation rules are not compared
//! word by word, only whether both sides have some.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// Attributes compared by value.
const ATTRIBUTES: &[&str] = &[
    "type",
    "enum",
    "required",
    "default",
    "format",
    "nullable",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
];

/// One difference: where, in which attribute, and the two values.
#[derive(Debug, PartialEq)]
pub(crate) struct Difference {
    /// Path of the field, such as `.spec.ports[].network`.
    pub(crate) path: String,
    /// `missing` (only upstream has the field), `extra` (only we have it), or the attribute's name.
    pub(crate) attribute: String,
    /// Both values, for the message.
    pub(crate) detail: String,
}

/// Every difference between our schema and upstream's.
pub(crate) fn compare(ours: &Value, upstream: &Value, path: &str, found: &mut Vec<Difference>) {
    let (our_attributes, their_attributes) = (attributes(ours), attributes(upstream));
    for name in our_attributes.keys().chain(their_attributes.keys()).collect::<BTreeSet<_>>() {
        let (left, right) = (our_attributes.get(name), their_attributes.get(name));
        if left != right {
            found.push(Difference {
                path: path.to_owned(),
                attribute: name.clone(),
                detail: format!("ours {}, upstream {}", shown(left), shown(right)),
            });
        }
    }
    let (our_fields, their_fields) = (children(ours, path), children(upstream, path));
    for name in our_fields.keys().chain(their_fields.keys()).collect::<BTreeSet<_>>() {
        match (our_fields.get(name), their_fields.get(name)) {
            (Some(ours), Some(upstream)) => compare(ours, upstream, name, found),
            (ours, _) => found.push(Difference {
                path: name.clone(),
                attribute: if ours.is_some() { "extra" } else { "missing" }.to_owned(),
                detail: String::new(),
            }),
        }
    }
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), Value::to_string)
}

/// What a schema says about its own value, in one spelling.
fn attributes(schema: &Value) -> BTreeMap<String, Value> {
    let mut attributes: BTreeMap<String, Value> = ATTRIBUTES
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), settled(name, schema.get(*name)?, schema)?)))
        .collect();
    if schema.get("x-kubernetes-validations").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty())
    {
        attributes.insert("rules".to_owned(), json!(true));
    }
    attributes
}

fn settled(name: &str, value: &Value, schema: &Value) -> Option<Value> {
    match name {
        "format" => (!matches!(value.as_str(), Some("int32" | "int64"))).then(|| value.clone()),
        // Lists are atomic unless they say otherwise.
        "x-kubernetes-list-type" => (value != "atomic").then(|| value.clone()),
        "enum" => Some(sorted(value.as_array()?.clone())),
        "required" => {
            let has_default = |field: &Value| {
                schema.pointer(&format!("/properties/{}/default", field.as_str().unwrap_or_default()))
            };
            let fields: Vec<_> =
                value.as_array()?.iter().filter(|field| has_default(field).is_none()).cloned().collect();
            (!fields.is_empty()).then(|| sorted(fields))
        }
        // Nothing can be shorter than empty.
        "minLength" | "minItems" | "minProperties" => (value.as_i64() != Some(0)).then(|| value.clone()),
        _ => Some(value.clone()),
    }
}

fn sorted(mut values: Vec<Value>) -> Value {
    values.sort_by_key(Value::to_string);
    Value::Array(values)
}

/// The schemas directly below this one, by path.
fn children<'schema>(schema: &'schema Value, path: &str) -> BTreeMap<String, &'schema Value> {
    let properties: Option<&Map<String, Value>> = schema.get("properties").and_then(Value::as_object);
    let mut children: BTreeMap<String, &Value> = properties
        .into_iter()
        .flatten()
        .map(|(name, property)| (format!("{path}.{name}"), property))
        .collect();
    if let Some(items) = schema.get("items") {
        children.insert(format!("{path}[]"), items);
    }
    if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
        children.insert(format!("{path}{{}}"), values);
    }
    children
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differences(ours: &Value, upstream: &Value) -> Vec<(String, String)> {
        let mut found = Vec::new();
        compare(ours, upstream, "", &mut found);
        found.into_iter().map(|difference| (difference.path, difference.attribute)).collect()
    }

    #[test]
    fn each_kind_of_difference_is_found() {
        let ours = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string", "enum": ["x", "y"]},
            "b": {"type": "array", "items": {"type": "string"}},
            "d": {"type": "string"},
        }});
        let upstream = json!({"type": "object", "required": ["a", "b"], "properties": {
            "a": {"type": "string", "enum": ["y", "z"]},
            "b": {"type": "array", "items": {"type": "integer"}},
            "c": {"type": "string"},
        }});
        let expected =
            [("", "required"), (".a", "enum"), (".b[]", "type"), (".c", "missing"), (".d", "extra")];
        assert_eq!(
            differences(&ours, &upstream),
            expected.map(|(path, what)| (path.to_owned(), what.to_owned()))
        );
    }

    #[test]
    fn spellings_of_the_same_are_equal() {
        let ours = json!({"properties": {
            "a": {"default": "x", "enum": ["x", "y"]},
            "b": {"type": "integer", "format": "int64"},
            "c": {"type": "array", "x-kubernetes-list-type": "atomic"},
        }});
        let upstream = json!({"required": ["a"], "properties": {
            "a": {"default": "x", "enum": ["y", "x"]},
            "b": {"type": "integer"},
            "c": {"type": "array"},
        }});
        assert_eq!(differences(&ours, &upstream), []);
    }
}
