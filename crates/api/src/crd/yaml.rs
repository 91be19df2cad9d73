//! Writes CRDs as text, the same bytes every time.
//!
//! Keys are sorted (which also puts apiVersion, kind, metadata and spec in the order people expect) and bounds are
//! written as integers: the typed form has floats there, and `minimum: 1.0` on an integer field reads like a mistake.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Number, Value};

/// Why a CRD could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The CRD is not representable as JSON.
    #[error("CRD cannot be turned into JSON")]
    Json(#[from] serde_json::Error),
    /// The JSON is not representable as YAML.
    #[error("CRD cannot be written as YAML")]
    Yaml(#[from] serde_saphyr::ser::Error),
}

/// Name of the file of a CRD: `<plural>.<group>.yaml`.
pub fn file_name(definition: &CustomResourceDefinition) -> String {
    format!("{}.{}.yaml", definition.spec.names.plural, definition.spec.group)
}

/// The CRD as a YAML document.
pub fn to_yaml(definition: &CustomResourceDefinition) -> Result<String, Error> {
    Ok(serde_saphyr::to_string(&to_json(definition)?)?)
}

/// The CRD as JSON, with sorted keys and integers where the value is one.
pub fn to_json(definition: &CustomResourceDefinition) -> Result<Value, Error> {
    Ok(settled(serde_json::to_value(definition)?))
}

fn settled(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            // Sorted explicitly: whether serde_json keeps insertion order is a feature any crate may switch on.
            let mut fields: Vec<_> = fields.into_iter().map(|(key, value)| (key, settled(value))).collect();
            fields.sort_by(|left, right| left.0.cmp(&right.0));
            Value::Object(fields.into_iter().collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(settled).collect()),
        Value::Number(number) => Value::Number(integral(&number).unwrap_or(number)),
        other => other,
    }
}

/// The integer that a float stands for, where it is exact.
fn integral(number: &Number) -> Option<Number> {
    // Beyond 2^53 a float no longer holds every integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float = number.is_f64().then(|| number.as_f64()).flatten()?;
    #[allow(clippy::cast_possible_truncation, reason = "whole and within the exact range")]
    (float.fract() == 0.0 && float.abs() <= EXACT).then(|| Number::from(float as i64))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whole_floats_become_integers_and_keys_are_sorted() {
        let settled = settled(json!({"b": 1.0, "a": {"z": 1.5, "y": [65535.0]}}));
        assert_eq!(settled.to_string(), r#"{"a":{"y":[65535],"z":1.5},"b":1}"#);
    }
}
