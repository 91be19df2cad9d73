//! Server-side apply, as far as a preview needs it: it merges what is applied, and removes what the same user or
//! controller applied before and no longer applies.
//!
//! `managedFields` says who applied what. The merge keeps a live value that already means the same ([`is_contained`]):
//! defaults that the API server added and its spelling of quantities are no changes.

use serde_json::{Map, Value, json};

use crate::apply::is_contained;

/// How the field managers of our controllers begin.
const CONTROLLERS: &str = "hangar-";
/// It applies what people wrote.
const HOST: &str = "hangar-host";

/// Keys of the lists that Kubernetes merges by key, in the order tried.
const LIST_KEYS: [&str; 5] = ["name", "uid", "mountPath", "containerPort", "port"];

fn entries(object: &Value, is_wanted: impl Fn(&str, bool) -> bool) -> Value {
    let all = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let wanted = all.filter(|entry| {
        let manager = entry["manager"].as_str().unwrap_or_default();
        entry["subresource"] != "status" && is_wanted(manager, entry["operation"] == "Apply")
    });
    wanted.fold(json!({}), |mut fields, entry| {
        json_patch::merge(&mut fields, &entry["fieldsV1"]);
        fields
    })
}

/// The fields that one manager applied.
pub(super) fn of_manager(object: &Value, name: &str) -> Value {
    entries(object, |manager, is_applied| is_applied && manager == name)
}

/// The fields that people applied, with whatever tool.
pub(super) fn by_people(object: &Value) -> Value {
    entries(object, |manager, is_applied| {
        let is_controller = manager.starts_with(CONTROLLERS) && manager != HOST;
        !is_controller && (is_applied || manager.starts_with("kubectl"))
    })
}

/// The object with a note of what a manager applied.
pub(super) fn noted(mut object: Value, applied: &Value, manager: &str) -> Value {
    let entry = json!({ "manager": manager, "operation": "Apply", "fieldsV1": fields_of(applied) });
    let mut all = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    all.retain(|entry| entry["operation"] != "Apply" || entry["manager"] != manager);
    all.push(entry);
    object["metadata"]["managedFields"] = json!(all);
    object
}

/// Applies an object over what is there; `owned` are the fields that the same side applied before.
pub(super) fn apply(live: &mut Value, desired: &Value, owned: &Value) {
    prune(live, owned, desired);
    merge(live, desired, "");
}

/// Takes away what was applied before and is no longer desired.
fn prune(live: &mut Value, owned: &Value, desired: &Value) {
    for (key, below) in owned.as_object().into_iter().flatten() {
        let is_leaf = below.as_object().is_none_or(|below| below.keys().all(|key| key == "."));
        if let (Some(name), Some(fields)) = (key.strip_prefix("f:"), live.as_object_mut()) {
            let (Some(value), wanted) = (fields.get_mut(name), &desired[name]) else { continue };
            if !is_leaf {
                prune(value, below, wanted);
            }
            if wanted.is_null() && (is_leaf || is_empty(value)) {
                fields.remove(name);
            }
        } else if let (Some(text), Some(items)) = (key.strip_prefix("k:"), live.as_array_mut()) {
            let Ok(Value::Object(keys)) = serde_json::from_str(text) else { continue };
            let wanted = desired.as_array().and_then(|desired| desired.iter().find(|item| has(item, &keys)));
            match (items.iter().position(|item| has(item, &keys)), wanted) {
                (Some(index), Some(wanted)) => prune(&mut items[index], below, wanted),
                (Some(index), None) => drop(items.remove(index)),
                (None, _) => {}
            }
        } else if let (Some(text), Some(items)) = (key.strip_prefix("v:"), live.as_array_mut()) {
            let Ok(value) = serde_json::from_str::<Value>(text) else { continue };
            if desired.as_array().is_none_or(|desired| !desired.contains(&value)) {
                items.retain(|item| *item != value);
            }
        }
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

fn has(item: &Value, keys: &Map<String, Value>) -> bool {
    keys.iter().all(|(name, value)| item[name] == *value)
}

fn merge(live: &mut Value, desired: &Value, name: &str) {
    match (&mut *live, desired) {
        // What only differs in defaults or spelling stays; lists that are shorter than before do not.
        (live, desired) if !desired.is_array() && is_contained(desired, live) => {}
        (Value::Object(live), Value::Object(desired)) => {
            for (name, desired) in desired {
                merge(live.entry(name.clone()).or_insert(Value::Null), desired, name);
            }
        }
        (Value::Array(live), Value::Array(desired)) if name == "finalizers" => {
            let missing: Vec<Value> = desired.iter().filter(|item| !live.contains(item)).cloned().collect();
            live.extend(missing);
        }
        (Value::Array(live), Value::Array(desired)) => {
            match list_key(desired).filter(|_| list_key(live).is_some()) {
                Some(key) => {
                    for item in desired {
                        match live.iter_mut().find(|present| present[key] == item[key]) {
                            Some(present) => merge(present, item, ""),
                            None => live.push(item.clone()),
                        }
                    }
                }
                None => live.clone_from(desired),
            }
        }
        (live, desired) => live.clone_from(desired),
    }
}

/// The key by which the items of a list are told apart.
fn list_key(items: &[Value]) -> Option<&'static str> {
    LIST_KEYS.into_iter().find(|key| {
        let mut values: Vec<String> =
            items.iter().filter_map(|item| item.get(key)).map(Value::to_string).collect();
        values.sort();
        values.dedup();
        values.len() == items.len()
    })
}

/// The fields of an applied object, as `managedFields` notes them.
fn fields_of(applied: &Value) -> Value {
    match applied {
        Value::Object(fields) => {
            let below = fields.iter().map(|(name, value)| (format!("f:{name}"), fields_of(value)));
            Value::Object(below.collect())
        }
        Value::Array(items) if items.iter().all(Value::is_object) => match list_key(items) {
            Some(key) => {
                let below =
                    items.iter().map(|item| (format!("k:{}", json!({ key: item[key] })), fields_of(item)));
                Value::Object(below.collect())
            }
            None => json!({}),
        },
        _ => json!({}),
    }
}
