//! Generates objects from the schemas of CRDs: everything that the API server would accept, and some of what it would
//! not.
//!
//! Rules beyond the structure (CEL) are ignored: an object that breaks one must convert all the same, because objects
//! are also converted before they are validated.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use proptest::prelude::*;
use proptest::string::string_regex;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Whole objects of one version of a kind.
pub(crate) fn object(api_version: String, kind: String, schema: &JSONSchemaProps) -> BoxedStrategy<Value> {
    (metadata(), properties(schema))
        .prop_map(move |(metadata, body)| {
            let mut object = json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata });
            let fields = object.as_object_mut().expect("an object");
            fields.extend(body.into_iter().filter(|(name, _)| name == "spec" || name == "status"));
            object
        })
        .boxed()
}

fn metadata() -> impl Strategy<Value = Value> {
    let map = || prop::option::of(prop::collection::btree_map("[a-z./]{1,8}", "[ -~]{0,12}", 1..3));
    (prop::option::of("[a-z]{1,6}"), map(), map(), any::<bool>()).prop_map(
        |(namespace, labels, annotations, finalized)| {
            let mut metadata = json!({ "name": "object", "uid": "4d1b", "generation": 3 });
            for (name, value) in [
                ("namespace", namespace.map(Value::from)),
                ("labels", labels.map(|labels| json!(labels))),
                ("annotations", annotations.map(|annotations| json!(annotations))),
                ("finalizers", finalized.then(|| json!(["a.example/b"]))),
            ] {
                if let Some(value) = value {
                    metadata[name] = value;
                }
            }
            metadata
        },
    )
}

/// Values that a schema allows.
fn value(schema: &JSONSchemaProps) -> BoxedStrategy<Value> {
    if let Some(allowed) = &schema.enum_ {
        let allowed: Vec<Value> = allowed.iter().map(|value| value.0.clone()).collect();
        return prop::sample::select(allowed).boxed();
    }
    if schema.x_kubernetes_int_or_string == Some(true) {
        let number = integer(&JSONSchemaProps { format: Some("int32".into()), ..schema.clone() });
        return prop_oneof![number, text(schema)].boxed();
    }
    match schema.type_.as_deref() {
        Some("object") => object_value(schema),
        Some("array") => list(schema),
        Some("string") => text(schema),
        Some("integer") => integer(schema),
        Some("number") => (-100i32..100).prop_map(|number| json!(f64::from(number) / 4.0)).boxed(),
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        _ => anything(),
    }
}

/// Any small JSON document.
pub(crate) fn anything() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-8i32..8).prop_map(|number| json!(f64::from(number) / 4.0)),
        "[a-z]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-c]|name|type", inner, 0..3).prop_map(|fields| json!(fields)),
        ]
    })
    .boxed()
}

fn object_value(schema: &JSONSchemaProps) -> BoxedStrategy<Value> {
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
        let most = if schema.min_properties.is_some() { 1..3 } else { 0..3 };
        return prop::collection::btree_map("[a-z]{1,5}", value(values), most)
            .prop_map(|fields| json!(fields))
            .boxed();
    }
    if schema.x_kubernetes_preserve_unknown_fields == Some(true) {
        return prop::collection::btree_map("[a-z]{1,3}", anything(), 0..3)
            .prop_map(|fields| json!(fields))
            .boxed();
    }
    properties(schema).prop_map(Value::Object).boxed()
}

/// Objects with all required properties and some of the others, at least as many as the schema wants.
fn properties(schema: &JSONSchemaProps) -> BoxedStrategy<Map<String, Value>> {
    let required: BTreeSet<String> = schema.required.clone().unwrap_or_default().into_iter().collect();
    let names: Vec<String> =
        schema.properties.iter().flat_map(|properties| properties.keys().cloned()).collect();
    let values: Vec<BoxedStrategy<Value>> =
        schema.properties.iter().flat_map(|properties| properties.values().map(value)).collect();
    let forced = if schema.min_properties.is_some() && required.is_empty() { 0..names.len() } else { 0..1 };
    let must_force = schema.min_properties.is_some() && required.is_empty();
    forced
        .prop_flat_map(move |forced| {
            let fields: Vec<BoxedStrategy<Option<(String, Value)>>> = names
                .iter()
                .zip(&values)
                .enumerate()
                .map(|(index, (name, value))| {
                    let named = name.clone();
                    let value = value.clone().prop_map(move |value| (named.clone(), value));
                    if required.contains(name) || (must_force && index == forced) {
                        value.prop_map(Some).boxed()
                    } else {
                        prop::option::weighted(0.4, value).boxed()
                    }
                })
                .collect();
            fields
        })
        .prop_map(|fields| fields.into_iter().flatten().collect())
        .boxed()
}

fn list(schema: &JSONSchemaProps) -> BoxedStrategy<Value> {
    let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items else {
        return Just(json!([])).boxed();
    };
    let least = usize::try_from(schema.min_items.unwrap_or(0)).expect("a count");
    let keys = schema.x_kubernetes_list_map_keys.clone().unwrap_or_default();
    let unique = schema.x_kubernetes_list_type.as_deref() == Some("set");
    prop::collection::vec(value(items), least..least + 3)
        .prop_map(move |items| {
            let mut seen = BTreeSet::new();
            let identity = |item: &Value| {
                if unique {
                    item.to_string()
                } else {
                    json!(keys.iter().map(|key| item.get(key)).collect::<Vec<_>>()).to_string()
                }
            };
            let distinct = unique || !keys.is_empty();
            Value::Array(items.into_iter().filter(|item| !distinct || seen.insert(identity(item))).collect())
        })
        .boxed()
}

fn text(schema: &JSONSchemaProps) -> BoxedStrategy<Value> {
    let least = usize::try_from(schema.min_length.unwrap_or(0)).expect("a length");
    let most = schema.max_length.map_or(usize::MAX, |most| usize::try_from(most).expect("a length"));
    let text = match (schema.format.as_deref(), schema.pattern.as_deref()) {
        (Some("date-time"), _) => date_time(),
        (_, Some(pattern)) => matching(pattern),
        _ => free_text(),
    };
    text.prop_filter_map("length", move |text| {
        let length = text.chars().count();
        (least..=most).contains(&length).then_some(Value::String(text))
    })
    .boxed()
}

/// Strings that mean something somewhere: durations good and bad, API versions, names.
fn free_text() -> BoxedStrategy<String> {
    prop_oneof![
        3 => "[a-z]{1,6}",
        1 => Just(String::new()),
        2 => prop::sample::select(vec![
            "10m", "10m0s", "1h0m0s", "0s", "0", "-3s", "1.5s", "300ms", "banana", "2562047h", "9999999999s", "5",
        ])
        .prop_map(str::to_owned),
        2 => "([a-z]{1,4}(\\.[a-z]{1,3})?/)?v1(alpha[1-3]|beta[1-3])?",
        1 => "[a-z]{1,3}/[a-z]{0,3}/[a-z]{0,3}",
        1 => "\\PC{1,5}",
    ]
    .boxed()
}

fn date_time() -> BoxedStrategy<String> {
    prop_oneof![
        3 => (2000..2100u32, 1..13u32, 1..29u32, 0..24u32, 0..60u32).prop_map(|(year, month, day, hour, second)| {
            format!("{year:04}-{month:02}-{day:02}T{hour:02}:30:{second:02}Z")
        }),
        1 => prop::sample::select(vec![
            "2024-02-29T23:59:59.123456789Z",
            "2024-01-02T03:04:05+02:00",
            "2024-01-02t03:04:05z",
            "2024-06-30T23:59:60Z",
            "0000-01-01T00:00:00Z",
            "9999-12-31T23:59:59-11:00",
            "2024-01-02 03:04:05",
        ])
        .prop_map(str::to_owned),
    ]
    .boxed()
}

/// Strings that match a pattern. Repetition is kept short, so that length limits are met.
fn matching(pattern: &str) -> BoxedStrategy<String> {
    let inner = pattern.trim_start_matches('^').trim_end_matches('$').replace('*', "{0,3}");
    string_regex(&inner).unwrap_or_else(|error| panic!("pattern {pattern}: {error}")).boxed()
}

fn integer(schema: &JSONSchemaProps) -> BoxedStrategy<Value> {
    let (mut least, mut most) = match schema.format.as_deref() {
        Some("int32") => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    // Bounds in these schemas are small whole numbers, exact in both types.
    #[allow(clippy::cast_possible_truncation)]
    {
        least = schema.minimum.map_or(least, |bound| bound as i64);
        most = schema.maximum.map_or(most, |bound| bound as i64);
    }
    let near = (least.max(-2), most.min(least.max(-2).saturating_add(10)));
    prop_oneof![3 => near.0..=near.1, 1 => Just(least), 1 => Just(most), 1 => least..=most]
        .prop_map(Value::from)
        .boxed()
}
