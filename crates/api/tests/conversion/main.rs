//! What conversion promises, for every kind that converts, over objects generated from the CRD schemas.
//!
//! The kinds come from the registry, so a new one is tested without a change here.

#![allow(clippy::expect_used, clippy::panic, reason = "tests")]

mod bounds;
mod losses;
mod schema_strategy;

use hangar_api::conversion::{self, Converter, NoVersions, VersionLookup};
use hangar_api::{crd, names};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

/// Objects per kind and direction. `PROPTEST_CASES` asks for more.
const CASES: u32 = 24;

/// One direction of one kind's conversion.
struct Direction {
    definition: CustomResourceDefinition,
    kind: &'static str,
    from: &'static str,
    from_api_version: String,
    to_api_version: String,
}

impl Direction {
    fn schema(&self) -> JSONSchemaProps {
        schema_of(&self.definition, self.from)
    }

    /// Objects that this direction converts.
    fn objects(&self) -> BoxedStrategy<Value> {
        schema_strategy::object(self.from_api_version.clone(), self.kind.to_owned(), &self.schema())
    }

    fn target_schema(&self) -> JSONSchemaProps {
        let (_, to) = self.to_api_version.split_once('/').expect("group and version");
        schema_of(&self.definition, to)
    }

    fn there(&self, object: Value, versions: &dyn VersionLookup) -> Value {
        conversion::convert(object, &self.to_api_version, versions).expect("conversion is total")
    }

    fn back(&self, object: Value, versions: &dyn VersionLookup) -> Value {
        conversion::convert(object, &self.from_api_version, versions).expect("conversion is total")
    }
}

fn schema_of(definition: &CustomResourceDefinition, version: &str) -> JSONSchemaProps {
    let served = definition.spec.versions.iter().find(|candidate| candidate.name == version);
    let schema = served.and_then(|version| version.schema.as_ref()?.open_api_v3_schema.clone());
    schema.expect("a served version has a schema")
}

fn directions() -> Vec<Direction> {
    let definitions = crd::all();
    conversion::converters()
        .flat_map(|converter: &'static Converter| {
            let definition = definitions
                .iter()
                .find(|definition| {
                    definition.spec.group == converter.group && definition.spec.names.kind == converter.kind
                })
                .unwrap_or_else(|| panic!("{converter:?} has no CRD"));
            [(converter.spoke, converter.hub), (converter.hub, converter.spoke)].map(|(from, to)| Direction {
                definition: definition.clone(),
                kind: converter.kind,
                from,
                from_api_version: format!("{}/{from}", converter.group),
                to_api_version: format!("{}/{to}", converter.group),
            })
        })
        .collect()
}

/// Checks a property for every kind and direction.
fn for_all(property: impl Fn(&Direction, Value) -> Result<(), TestCaseError>) {
    for direction in directions() {
        let objects = direction.objects();
        check(&direction, &objects, |object| property(&direction, object));
    }
}

fn check<S: Strategy>(
    direction: &Direction,
    strategy: &S,
    property: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(CASES);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    if let Err(error) = runner.run(strategy, property) {
        panic!("{} from {}: {error}", direction.kind, direction.from);
    }
}

/// Knows about every second kind.
struct EverySecond;

impl VersionLookup for EverySecond {
    fn version(&self, group: &str, kind: &str) -> Option<String> {
        (group.len() + kind.len()).is_multiple_of(2).then(|| "v1beta2".to_owned())
    }
}

/// The object without its stash.
fn without_stash(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(annotations) = object["metadata"].get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(names::STASH_ANNOTATION);
        if annotations.is_empty() {
            object["metadata"].as_object_mut().expect("metadata").remove("annotations");
        }
    }
    object
}

fn body(object: &Value) -> (Option<&Value>, Option<&Value>) {
    (object.get("spec"), object.get("status"))
}

#[test]
fn there_and_back_is_the_identity() {
    for_all(|direction, object| {
        let there = direction.there(object.clone(), &EverySecond);
        prop_assert_eq!(direction.back(there, &EverySecond), object.clone());
        let there = direction.there(object.clone(), &NoVersions);
        prop_assert_eq!(direction.back(there, &NoVersions), object);
        Ok(())
    });
}

#[test]
fn only_version_body_and_stash_change() {
    for_all(|direction, object| {
        let there = direction.there(object.clone(), &NoVersions);
        prop_assert_eq!(&there["apiVersion"], &json!(direction.to_api_version));
        let mut expected = object;
        expected["apiVersion"] = there["apiVersion"].clone();
        for part in ["spec", "status"] {
            match there.get(part) {
                Some(value) => expected[part] = value.clone(),
                None => drop(expected.as_object_mut().and_then(|fields| fields.remove(part))),
            }
        }
        prop_assert_eq!(without_stash(&there), expected);
        Ok(())
    });
}

#[test]
fn converting_again_changes_nothing_more() {
    for_all(|direction, object| {
        let once = direction.there(object, &NoVersions);
        let twice = direction.there(direction.back(once.clone(), &NoVersions), &NoVersions);
        prop_assert_eq!(once, twice);
        Ok(())
    });
}

#[test]
fn a_loss_that_is_no_loss_is_not_stashed() {
    for_all(|direction, object| {
        let there = without_stash(&direction.there(object, &NoVersions));
        let normal = without_stash(&direction.back(there, &NoVersions));
        // `normal` holds only what both versions can express; at most its way of writing it is at stake.
        let there = direction.there(normal.clone(), &NoVersions);
        let again = without_stash(&direction.back(without_stash(&there), &NoVersions));
        if body(&again) == body(&normal) {
            prop_assert_eq!(&there, &without_stash(&there), "lossless, yet stashed");
        }
        Ok(())
    });
}

#[test]
fn an_edit_in_the_other_version_wins_over_the_stash() {
    for direction in &directions() {
        let objects = direction.objects();
        check(direction, &(objects.clone(), objects), |(object, other)| {
            let there = direction.there(object, &NoVersions);
            let mut edited = there.clone();
            let source = direction.there(other, &NoVersions);
            for part in ["spec", "status"] {
                if let Some(value) = source.get(part) {
                    graft(&mut edited[part], value);
                }
            }
            let restored = direction.back(edited.clone(), &NoVersions);
            let before = direction.back(without_stash(&there), &NoVersions);
            let after = direction.back(without_stash(&edited), &NoVersions);
            for part in ["spec", "status"] {
                edit_wins(part, before.get(part), after.get(part), restored.get(part))?;
            }
            // And what was edited comes back as edited.
            prop_assert_eq!(without_stash(&direction.there(restored, &NoVersions)), without_stash(&edited));
            Ok(())
        });
    }
}

#[test]
fn what_is_made_obeys_the_structure_of_its_schema() {
    for_all(|direction, object| {
        let schema = direction.target_schema();
        let there = direction.there(object, &NoVersions);
        for part in ["spec", "status"] {
            let schema = schema.properties.as_ref().and_then(|properties| properties.get(part));
            if let (Some(schema), Some(value)) = (schema, there.get(part)) {
                let found = bounds::violations(part, schema, value, true);
                prop_assert!(found.is_empty(), "{:?}", found);
            }
        }
        Ok(())
    });
}

/// Takes over every second field from another object, as an edit by somebody would.
fn graft(target: &mut Value, source: &Value) {
    let (Some(target_fields), Some(source_fields)) = (target.as_object_mut(), source.as_object()) else {
        *target = source.clone();
        return;
    };
    for (index, (name, value)) in source_fields.iter().enumerate() {
        match target_fields.get_mut(name) {
            Some(field) if index % 2 == 0 => graft(field, value),
            Some(_) => {}
            None => drop(target_fields.insert(name.clone(), value.clone())),
        }
    }
}

/// Wherever the edit changed what this version shows, it shows the edit and not what was stashed.
fn edit_wins(
    path: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    restored: Option<&Value>,
) -> Result<(), TestCaseError> {
    if before == after {
        return Ok(());
    }
    match (before, after, restored) {
        (Some(Value::Object(before)), Some(Value::Object(after)), Some(Value::Object(restored))) => {
            for name in before.keys().chain(after.keys()) {
                let path = format!("{path}.{name}");
                edit_wins(&path, before.get(name), after.get(name), restored.get(name))?;
            }
        }
        // Items may hold restored fields that the edit did not touch, found by their names.
        (Some(Value::Array(_)), Some(Value::Array(after)), Some(Value::Array(restored))) => {
            prop_assert_eq!(after.len(), restored.len(), "{}", path);
        }
        _ => prop_assert_eq!(after, restored, "{}", path),
    }
    Ok(())
}

#[test]
fn objects_that_no_schema_allows_convert_and_come_back() {
    for direction in &directions() {
        let objects = direction.objects();
        let damage = prop::collection::vec((any::<prop::sample::Index>(), schema_strategy::anything()), 1..4);
        check(direction, &(objects, damage), |(mut object, damage)| {
            for (place, value) in damage {
                for part in ["spec", "status"] {
                    let count = object.get(part).map_or(0, places);
                    if count > 0 {
                        let mut left = place.index(count);
                        replace(&mut object[part], &mut left, &value);
                    }
                }
            }
            let there = direction.there(object.clone(), &NoVersions);
            prop_assert_eq!(direction.back(there, &NoVersions), object);
            Ok(())
        });
    }
}

/// How many values a document holds, itself included.
fn places(value: &Value) -> usize {
    1 + match value {
        Value::Object(fields) => fields.values().map(places).sum(),
        Value::Array(items) => items.iter().map(places).sum(),
        _ => 0,
    }
}

/// Replaces the value at a position counted over the whole document.
fn replace(value: &mut Value, left: &mut usize, with: &Value) -> bool {
    if *left == 0 {
        *value = with.clone();
        return true;
    }
    *left -= 1;
    match value {
        Value::Object(fields) => fields.values_mut().any(|value| replace(value, left, with)),
        Value::Array(items) => items.iter_mut().any(|value| replace(value, left, with)),
        _ => false,
    }
}
