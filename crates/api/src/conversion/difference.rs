//! Finds where two JSON documents differ, and puts the differences back.
//!
//! A [`Difference`] says: at this path a round trip through the other version gives `had`, and the original was `was`.
//! It is put back only if the value is still `had`, so that an edit made meanwhile in the other version wins over the
//! stash.
//!
//! Lists need care, because a position is no identity. Items of a list of objects are told apart by their `name`,
//! `type` or `key` if that is unique, and only such items are compared inside. Items without identity are compared as a
//! whole, so that a moved item is not mistaken for its neighbour; lists that differ in length or order are taken as a
//! whole.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Fields that identify an item of a list, in the order they are tried.
const IDENTITIES: [&str; 3] = ["name", "type", "key"];

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Segment {
    /// A field of an object.
    Field(String),
    /// An item of a list, by position.
    Index(usize),
    /// An item of a list, by its identity: exactly one pair.
    Item(BTreeMap<String, String>),
}

/// One place where a round trip does not give the original back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Difference {
    /// Where, from the root of the object.
    #[serde(rename = "p")]
    pub(super) path: Vec<Segment>,
    /// What the round trip gives; absent if nothing.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub(super) had: Option<Value>,
    /// What the original holds; absent if nothing.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub(super) was: Option<Value>,
}

/// Tells an explicit `null` from an absent field.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// All differences between an original and its round trip.
pub(super) fn between(original: &Value, round_trip: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(&mut Vec::new(), original, round_trip, &mut found);
    found
}

fn compare(path: &mut Vec<Segment>, original: &Value, round_trip: &Value, found: &mut Vec<Difference>) {
    if original == round_trip {
        return;
    }
    match (original, round_trip) {
        (Value::Object(original), Value::Object(round_trip)) => {
            compare_objects(path, original, round_trip, found);
        }
        (Value::Array(original), Value::Array(round_trip)) => {
            compare_lists(path, original, round_trip, found);
        }
        _ => found.push(whole(path, Some(round_trip), Some(original))),
    }
}

fn compare_objects(
    path: &mut Vec<Segment>,
    original: &Map<String, Value>,
    round_trip: &Map<String, Value>,
    found: &mut Vec<Difference>,
) {
    let fields: BTreeSet<&String> = original.keys().chain(round_trip.keys()).collect();
    for field in fields {
        path.push(Segment::Field(field.clone()));
        match (original.get(field), round_trip.get(field)) {
            (Some(original), Some(round_trip)) => compare(path, original, round_trip, found),
            (original, round_trip) => found.push(whole(path, round_trip, original)),
        }
        path.pop();
    }
}

fn compare_lists(
    path: &mut Vec<Segment>,
    original: &[Value],
    round_trip: &[Value],
    found: &mut Vec<Difference>,
) {
    let pairs = || original.iter().zip(round_trip);
    if let Some((field, names)) = shared_identity(original, round_trip) {
        for (name, (original, round_trip)) in names.into_iter().zip(pairs()) {
            path.push(Segment::Item(BTreeMap::from([(field.to_owned(), name.to_owned())])));
            compare(path, original, round_trip, found);
            path.pop();
        }
    } else if original.len() == round_trip.len() && pairs().all(|(a, b)| a.is_object() && b.is_object()) {
        for (index, (original, round_trip)) in pairs().enumerate().filter(|(_, (a, b))| a != b) {
            path.push(Segment::Index(index));
            found.push(whole(path, Some(round_trip), Some(original)));
            path.pop();
        }
    } else {
        let list = |items: &[Value]| Value::Array(items.to_vec());
        found.push(whole(path, Some(&list(round_trip)), Some(&list(original))));
    }
}

fn whole(path: &[Segment], had: Option<&Value>, was: Option<&Value>) -> Difference {
    Difference { path: path.to_vec(), had: had.cloned(), was: was.cloned() }
}

/// The identity field under which both lists hold the same items in the same order, and the items' names.
fn shared_identity<'a>(left: &'a [Value], right: &'a [Value]) -> Option<(&'static str, Vec<&'a str>)> {
    IDENTITIES.into_iter().find_map(|field| {
        let names = identities(left, field)?;
        (identities(right, field)? == names).then_some((field, names))
    })
}

/// The value of one identity field in every item, if all have it and no two are the same.
fn identities<'a>(items: &'a [Value], field: &str) -> Option<Vec<&'a str>> {
    let names: Vec<&str> = items.iter().map(|item| item.get(field)?.as_str()).collect::<Option<_>>()?;
    let distinct: BTreeSet<&str> = names.iter().copied().collect();
    (distinct.len() == names.len()).then_some(names)
}

/// Whether the place at a path exists and holds just this, or nothing if nothing is expected.
pub(super) fn holds(document: &Value, path: &[Segment], expected: Option<&Value>) -> bool {
    let Some((last, parents)) = path.split_last() else {
        return false;
    };
    let Some(parent) = parents.iter().try_fold(document, |value, segment| child(value, segment)) else {
        return false;
    };
    match last {
        Segment::Field(field) => parent.as_object().is_some_and(|object| object.get(field) == expected),
        Segment::Index(_) | Segment::Item(_) => expected.is_some() && child(parent, last) == expected,
    }
}

fn child<'a>(value: &'a Value, segment: &Segment) -> Option<&'a Value> {
    match segment {
        Segment::Field(field) => value.as_object()?.get(field),
        Segment::Index(_) | Segment::Item(_) => {
            let items = value.as_array()?;
            items.get(position(items, segment)?)
        }
    }
}

/// The position of a list's item; `None` when its identity is gone or no longer unique.
fn position(items: &[Value], segment: &Segment) -> Option<usize> {
    match segment {
        Segment::Field(_) => None,
        Segment::Index(index) => Some(*index),
        Segment::Item(identity) => {
            let (field, name) = identity.first_key_value()?;
            let mut matching = items
                .iter()
                .enumerate()
                .filter(|(_, item)| item.get(field).and_then(Value::as_str) == Some(name.as_str()));
            let (index, _) = matching.next()?;
            matching.next().is_none().then_some(index)
        }
    }
}

/// Puts a value at a path, or removes what is there. Does nothing when the place does not exist.
pub(super) fn put(document: &mut Value, path: &[Segment], value: Option<Value>) {
    let Some((last, parents)) = path.split_last() else {
        return;
    };
    let mut place = document;
    for segment in parents {
        let next = match segment {
            Segment::Field(field) => place.as_object_mut().and_then(|object| object.get_mut(field)),
            Segment::Index(_) | Segment::Item(_) => place.as_array_mut().and_then(|items| {
                let index = position(items, segment)?;
                items.get_mut(index)
            }),
        };
        let Some(next) = next else { return };
        place = next;
    }
    match (last, place) {
        (Segment::Field(field), Value::Object(object)) => {
            match value {
                Some(value) => object.insert(field.clone(), value),
                None => object.remove(field),
            };
        }
        (Segment::Index(_) | Segment::Item(_), Value::Array(items)) => {
            let Some(index) = position(items, last).filter(|index| *index < items.len()) else {
                return;
            };
            match value {
                Some(value) => items[index] = value,
                None => drop(items.remove(index)),
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn restore(document: &Value, differences: &[Difference]) -> Value {
        let mut restored = document.clone();
        for difference in differences {
            if holds(document, &difference.path, difference.had.as_ref()) {
                put(&mut restored, &difference.path, difference.was.clone());
            }
        }
        restored
    }

    fn paths(differences: &[Difference]) -> Vec<String> {
        differences.iter().map(|d| serde_json::to_string(&d.path).unwrap()).collect()
    }

    #[test]
    fn items_are_followed_by_identity() {
        let original = json!({"list": [{"name": "a", "hidden": 1}, {"name": "b", "hidden": 2}]});
        let lossy = json!({"list": [{"name": "a"}, {"name": "b"}]});
        let differences = between(&original, &lossy);
        assert_eq!(
            paths(&differences),
            [r#"["list",{"name":"a"},"hidden"]"#, r#"["list",{"name":"b"},"hidden"]"#]
        );
        let edited = json!({"list": [{"name": "b"}, {"name": "c"}]});
        assert_eq!(
            restore(&edited, &differences),
            json!({"list": [{"name": "b", "hidden": 2}, {"name": "c"}]})
        );
    }

    #[test]
    fn items_without_identity_are_taken_whole() {
        let original = json!({"list": [{"at": 1, "hidden": 1}, {"at": 2, "hidden": 2}]});
        let lossy = json!({"list": [{"at": 1}, {"at": 2}]});
        let differences = between(&original, &lossy);
        assert_eq!(paths(&differences), [r#"["list",0]"#, r#"["list",1]"#]);
        let swapped = json!({"list": [{"at": 2}, {"at": 1}]});
        assert_eq!(restore(&swapped, &differences), swapped);
    }

    #[test]
    fn lists_of_other_length_are_taken_whole() {
        let original = json!({"list": [{"name": "a"}, {"name": "a"}]});
        let lossy = json!({"list": [{"name": "a"}]});
        let differences = between(&original, &lossy);
        assert_eq!(paths(&differences), [r#"["list"]"#]);
        assert_eq!(restore(&lossy, &differences), original);
    }

    #[test]
    fn null_is_not_absence() {
        let original = json!({"a": null});
        let differences = between(&original, &json!({}));
        let text = serde_json::to_string(&differences).unwrap();
        let read: Vec<Difference> = serde_json::from_str(&text).unwrap();
        assert_eq!(read, differences);
        assert_eq!(restore(&json!({}), &read), original);
    }

    #[test]
    fn an_edit_wins() {
        let differences = between(&json!({"a": 1}), &json!({"a": 2}));
        assert_eq!(restore(&json!({"a": 3}), &differences), json!({"a": 3}));
        assert_eq!(restore(&json!({}), &differences), json!({}));
    }

    fn document() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0..3i32).prop_map(Value::from),
            "[ab]".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("name|type|key|x|y", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    fn item() -> impl Strategy<Value = Value> {
        prop::collection::btree_map("name|type|x|y", "[ab]", 1..4).prop_map(|fields| json!(fields))
    }

    proptest! {
        #[test]
        fn putting_back_gives_the_original(original in document(), other in document()) {
            let (original, other) = (json!({"spec": original}), json!({"spec": other}));
            let differences = between(&original, &other);
            let text = serde_json::to_string(&differences).unwrap();
            let read: Vec<Difference> = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(restore(&other, &read), original);
        }

        #[test]
        fn putting_back_finds_items_with_and_without_identity(
            pairs in prop::collection::vec((item(), item()), 0..4),
        ) {
            let (original, other): (Vec<Value>, Vec<Value>) = pairs.into_iter().unzip();
            let (original, other) = (json!({"spec": original}), json!({"spec": other}));
            prop_assert_eq!(restore(&other, &between(&original, &other)), original);
        }
    }
}
