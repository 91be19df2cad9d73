//! Decides whether an apply would change anything, without a call to the API server.
//!
//! Nothing would change if two things are true: we applied exactly this object before (its hash is in our annotation),
//! and what we set has not changed since (the desired object is contained in the live one). The first alone would miss
//! drift, the second alone would never remove a field that we no longer want.
//!
//! The comparison knows what the API server does to objects: it adds defaults, drops zero values, spells quantities its
//! own way, and merges keyed lists with those of others. In doubt the answer is "different": then one apply is sent,
//! which changes nothing.

use hangar_plan::quantity::Quantity;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// The hash of a desired object. Maps of `serde_json` are sorted, so equal objects have equal bytes.
pub(super) fn hash(desired: &Value) -> String {
    use std::fmt::Write as _;
    let digest = Sha256::digest(desired.to_string().as_bytes());
    digest.iter().take(16).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// True when everything desired is already so.
pub fn is_contained(desired: &Value, live: &Value) -> bool {
    contained(desired, live, Place::Plain)
}

/// What a value's place says about how to compare it.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Plain,
    /// A map whose values are quantities.
    Quantities,
    Quantity,
    /// A list that others add to, without order.
    Set,
}

impl Place {
    fn of(self, key: &str) -> Self {
        match (self, key) {
            (Self::Quantities, _) | (_, "sizeLimit" | "divisor") => Self::Quantity,
            (_, "limits" | "requests" | "capacity" | "hard" | "overhead") => Self::Quantities,
            (_, "finalizers") => Self::Set,
            _ => Self::Plain,
        }
    }
}

fn contained(desired: &Value, live: &Value, place: Place) -> bool {
    match (desired, live) {
        (Value::Object(desired), Value::Object(live)) => map_contained(desired, live, place),
        (Value::Array(desired), Value::Array(live)) => list_contained(desired, live, place),
        (desired, Value::Null) => is_zero(desired),
        // A typed float is `1.0`; the API server writes `1`.
        (Value::Number(desired), Value::Number(live)) => desired == live || desired.as_f64() == live.as_f64(),
        _ => desired == live || (place == Place::Quantity && is_same_quantity(desired, live)),
    }
}

fn map_contained(desired: &Map<String, Value>, live: &Map<String, Value>, place: Place) -> bool {
    desired.iter().all(|(key, value)| match live.get(key) {
        Some(live) => contained(value, live, place.of(key)),
        // The API server's encoder leaves zero values out.
        None => is_zero(value),
    })
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.values().all(is_zero),
    }
}

fn is_same_quantity(one: &Value, two: &Value) -> bool {
    let parse = |value: &Value| match value {
        Value::String(text) => Quantity::parse(text),
        Value::Number(number) => Quantity::parse(&number.to_string()),
        _ => None,
    };
    parse(one).is_some_and(|value| parse(two) == Some(value))
}

/// Keys of the lists that Kubernetes merges by key, in the order tried.
const LIST_KEYS: [&str; 9] =
    ["name", "uid", "mountPath", "devicePath", "containerPort", "port", "key", "type", "ip"];

fn list_contained(desired: &[Value], live: &[Value], place: Place) -> bool {
    if place == Place::Set {
        return desired.iter().all(|item| live.contains(item));
    }
    let is_same_length = desired.len() == live.len();
    if is_same_length && desired.iter().zip(live).all(|(one, two)| contained(one, two, Place::Plain)) {
        return true;
    }
    let Some(key) = LIST_KEYS.into_iter().find(|key| identifies(key, desired)) else {
        return false;
    };
    desired.iter().all(|item| {
        live.iter()
            .any(|candidate| candidate.get(key) == item.get(key) && contained(item, candidate, Place::Plain))
    })
}

/// True when every item has the key, with values all different.
fn identifies(key: &str, items: &[Value]) -> bool {
    let mut values: Vec<String> =
        items.iter().filter_map(|item| item.get(key)).map(Value::to_string).collect();
    values.sort();
    values.dedup();
    values.len() == items.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_api_server_adds_or_drops_is_no_difference() {
        let desired = json!({
            "metadata": {"finalizers": ["ours"], "labels": {"a": "b"}},
            "spec": {
                "hostNetwork": false, "replicas": 0, "strategy": {},
                "containers": [
                    {"name": "a", "env": [{"name": "X", "value": ""}],
                     "resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}},
                     "volumeMounts": [{"name": "v", "mountPath": "/b"}, {"name": "v", "mountPath": "/a"}]},
                ],
                "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "0.5Gi"}}],
            },
        });
        let live = json!({
            "metadata": {"finalizers": ["theirs", "ours"], "labels": {"a": "b", "c": "d"}, "uid": "1"},
            "spec": {
                "dnsPolicy": "ClusterFirst",
                "containers": [
                    {"name": "injected"},
                    {"name": "a", "imagePullPolicy": "Always", "env": [{"name": "X"}],
                     "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
                     "volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}]},
                ],
                "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "512Mi"}}],
            },
        });
        assert!(is_contained(&desired, &live));
    }

    #[test]
    fn drift_is_a_difference() {
        for (desired, live) in [
            (json!({"a": 1}), json!({"a": 2})),
            (json!({"a": 1}), json!({})),
            (json!({"a": [1, 2]}), json!({"a": [2, 1]})),
            (json!({"a": [1]}), json!({"a": [1, 2]})),
            (json!({"a": [{"name": "x", "v": 1}]}), json!({"a": [{"name": "x", "v": 2}]})),
            (json!({"a": [{"name": "x"}]}), json!({"a": [{"name": "y"}, {"name": "z"}]})),
            (json!({"data": {"x": "1000m"}}), json!({"data": {"x": "1"}})),
            (json!({"requests": {"cpu": "1"}}), json!({"requests": {"cpu": "1100m"}})),
        ] {
            assert!(!is_contained(&desired, &live), "{desired} {live}");
        }
    }

    #[test]
    fn hashes_ignore_order_and_nothing_else() {
        let one: Value = serde_json::from_str(r#"{"a": 1, "b": {"c": 2, "d": 3}}"#).unwrap();
        let two: Value = serde_json::from_str(r#"{"b": {"d": 3, "c": 2}, "a": 1}"#).unwrap();
        assert_eq!(hash(&one), hash(&two));
        assert_ne!(hash(&one), hash(&json!({"a": 1, "b": {"c": 2, "d": 4}})));
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-z0-9]{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("[a-z]{1,6}", inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn everything_contains_itself(value in any_value()) {
            prop_assert!(is_contained(&value, &value));
        }

        #[test]
        fn additions_by_others_do_not_matter(value in any_value(), extra in any_value()) {
            let desired = json!({"spec": value});
            let live = json!({"spec": desired["spec"], "status": extra});
            prop_assert!(is_contained(&desired, &live));
        }
    }
}
