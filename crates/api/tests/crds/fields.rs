//! Tests that docs/fields-of-a-control-plane.md has every field of a HostedControlPlane, and no others, and that the
//! tests it names exist.
//!
//! In a path `*` stands for one step, and `**` at the end for the field and everything below it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use hangar_api::crd;
use serde_json::Value;

use crate::DEFINITIONS;
use crate::schema::{name, walk};

const PAGE: &str = "docs/fields-of-a-control-plane.md";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Fields that hold a value: an object whose members are known is its members.
fn fields() -> BTreeSet<String> {
    let definition = DEFINITIONS
        .iter()
        .find(|one| name(one) == "hostedcontrolplanes.controlplane.cluster.x-k8s.io")
        .unwrap();
    let json = crd::yaml::to_json(definition).unwrap();
    let mut found = BTreeSet::new();
    for part in ["spec", "status"] {
        let schema = &json["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"][part];
        walk(schema, part, &mut |path, schema| {
            let is_made_of_others = ["properties", "items"].iter().any(|inner| schema.get(inner).is_some())
                || schema.get("additionalProperties").is_some_and(Value::is_object);
            // What a list or a map consists of is one field with it.
            if !is_made_of_others {
                let path = path.trim_end_matches("[]").trim_end_matches("{}");
                found.insert(path.replace("[]", "").replace("{}", ".*"));
            }
        });
    }
    found
}

struct Row {
    path: String,
    effect: String,
    tests: Vec<String>,
}

fn rows() -> Vec<Row> {
    let text = fs::read_to_string(root().join(PAGE)).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        assert_eq!(cells.len(), 3, "a row has a field, its effect and its tests: {line}");
        let tests = cells[2].split('`').skip(1).step_by(2).map(str::to_owned).collect();
        Row { path: cells[0].trim_matches('`').to_owned(), effect: cells[1].to_owned(), tests }
    })
    .collect()
}

fn is_covered(field: &str, row: &str) -> bool {
    let (row, is_tree) = row.strip_suffix(".**").map_or((row, false), |row| (row, true));
    let (field, row): (Vec<&str>, Vec<&str>) = (field.split('.').collect(), row.split('.').collect());
    let is_long_enough = if is_tree { field.len() >= row.len() } else { field.len() == row.len() };
    is_long_enough && field.iter().zip(&row).all(|(field, row)| *row == "*" || field == row)
}

#[test]
fn every_field_is_in_the_table() {
    let (fields, rows) = (fields(), rows());
    assert!(fields.len() > 100, "the schema was not read: {fields:?}");
    let missing: Vec<&String> =
        fields.iter().filter(|field| !rows.iter().any(|row| is_covered(field, &row.path))).collect();
    let stale: Vec<&String> = rows
        .iter()
        .map(|row| &row.path)
        .filter(|row| !fields.iter().any(|field| is_covered(field, row)))
        .collect();
    assert!(missing.is_empty() && stale.is_empty(), "{PAGE}: missing {missing:#?}, stale {stale:#?}");
}

#[test]
fn every_field_has_an_effect_and_a_test_that_exists() {
    let mut sources = String::new();
    for directory in ["crates", "lab"] {
        read_sources(&root().join(directory), &mut sources);
    }
    for row in rows() {
        assert!(!row.effect.is_empty(), "{}: no effect", row.path);
        assert!(!row.tests.is_empty(), "{}: no test", row.path);
        for test in row.tests {
            assert!(sources.contains(&format!("fn {test}(")), "{}: there is no test {test}", row.path);
        }
    }
}

fn read_sources(directory: &Path, into: &mut String) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}
