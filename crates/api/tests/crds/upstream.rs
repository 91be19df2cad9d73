//! Compares our kinds with upstream's: every field, every attribute.
//!
//! Users who move between the two implementations, or run parts of both, rely on equal schemas. What differs is listed
//! with its reason in `upstream-differences.txt`; a difference that is not listed fails, and so does a row that is no
//! longer needed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use hangar_api::crd;
use hangar_api::crd::schema::TIME_PATTERN;
use hangar_parts::{Parts, Set};
use serde_json::{Value, json};

use crate::{
    DEFINITIONS,
    difference::{Difference, compare},
};

/// Where upstream's CRDs are in the set; other folders of it hold CRDs of programs we only run.
const SOURCES: &[&str] =
    &["cluster-api/core", "cluster-api/bootstrap-kubeadm", "cluster-api-provider-openstack"];

/// Upstream's CRDs, by name.
fn upstream() -> BTreeMap<String, Value> {
    let parts = Parts::from_env().unwrap();
    parts.ensure(&[Set::UpstreamCrds]).unwrap();
    let files = parts.files(Set::UpstreamCrds).unwrap();
    let definitions = SOURCES.iter().flat_map(|source| read_all(&files.join(source)));
    definitions.map(|definition| (name(&definition), definition)).collect()
}

fn read_all(directory: &Path) -> Vec<Value> {
    let mut paths: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()).collect()
}

fn name(definition: &Value) -> String {
    definition["metadata"]["name"].as_str().unwrap().to_owned()
}

fn versions(definition: &Value) -> BTreeMap<&str, &Value> {
    let versions = definition["spec"]["versions"].as_array().unwrap();
    versions.iter().map(|version| (version["name"].as_str().unwrap(), version)).collect()
}

/// Every difference of one kind, as `Kind version path attribute` with its detail.
fn differences(ours: &Value, upstream: &Value) -> BTreeMap<String, String> {
    let kind = ours["spec"]["names"]["kind"].as_str().unwrap();
    let mut rows = BTreeMap::new();
    let mut add = |version: &str, difference: Difference| {
        let path = if difference.path.is_empty() { "." } else { &difference.path };
        rows.insert(format!("{kind} {version} {path} {}", difference.attribute), difference.detail);
    };
    for field in ["plural", "singular", "listKind", "shortNames", "categories"] {
        let (left, right) = (&ours["spec"]["names"][field], &upstream["spec"]["names"][field]);
        if left != right {
            let detail = format!("ours {left}, upstream {right}");
            add("*", Difference { path: format!("names.{field}"), attribute: "value".to_owned(), detail });
        }
    }
    let upstream_versions = versions(upstream);
    for (version, ours) in versions(ours) {
        let Some(upstream) = upstream_versions.get(version) else {
            continue;
        };
        for field in ["served", "storage", "deprecated", "subresources"] {
            let (left, right) = (said(ours, field), said(upstream, field));
            if left != right {
                let detail = format!("ours {left:?}, upstream {right:?}");
                add(version, Difference { path: field.to_owned(), attribute: "value".to_owned(), detail });
            }
        }
        let mut found = Vec::new();
        let schema = |version: &Value| without_type_fields(version["schema"]["openAPIV3Schema"].clone());
        let mut ours = schema(ours);
        forget_bounds_of_types(&mut ours);
        compare(&ours, &schema(upstream), "", &mut found);
        for difference in found {
            add(version, difference);
        }
    }
    rows
}

/// A field of a version; empty means absent.
fn said<'version>(version: &'version Value, field: &str) -> Option<&'version Value> {
    version.get(field).filter(|value| value.as_object().is_none_or(|fields| !fields.is_empty()))
}

/// The API server adds these to every kind; writing them or not changes nothing.
fn without_type_fields(mut schema: Value) -> Value {
    if let Some(properties) = schema["properties"].as_object_mut() {
        for field in ["apiVersion", "kind", "metadata"] {
            properties.remove(field);
        }
    }
    schema
}

/// What a number of 32 bits and a time cannot be is refused by us and not by upstream, in every field alike.
fn forget_bounds_of_types(schema: &mut Value) {
    if let Some(fields) = schema.as_object_mut() {
        let is = |name: &str, value: &Value| fields.get(name) == Some(value);
        let bounds = [
            ("minimum", is("format", &json!("int32")), json!(i32::MIN)),
            ("maximum", is("format", &json!("int32")), json!(i32::MAX)),
            ("pattern", is("format", &json!("date-time")), json!(TIME_PATTERN)),
        ];
        for (name, _, value) in bounds.into_iter().filter(|(_, is_typed, _)| *is_typed) {
            if fields.get(name) == Some(&value) {
                fields.remove(name);
            }
        }
        fields.values_mut().for_each(forget_bounds_of_types);
    } else if let Some(items) = schema.as_array_mut() {
        items.iter_mut().for_each(forget_bounds_of_types);
    }
}

/// The table: what differs, and why.
fn table() -> BTreeMap<String, String> {
    let text = include_str!("../../upstream-differences.txt");
    let rows = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.map(|row| {
        let (key, reason) = row.split_once(" = ").unwrap_or_else(|| panic!("row without a reason: {row}"));
        assert!(!reason.trim().is_empty(), "row without a reason: {row}");
        (key.to_owned(), reason.to_owned())
    })
    .collect()
}

#[test]
fn schemas_are_upstreams_except_for_what_the_table_says() {
    let upstream = upstream();
    let mut found = BTreeMap::new();
    let mut compared = BTreeSet::new();
    for definition in DEFINITIONS.iter() {
        let ours = crd::yaml::to_json(definition).unwrap();
        if let Some(upstream) = upstream.get(&name(&ours)) {
            found.extend(differences(&ours, upstream));
            compared.insert(name(&ours));
        }
    }
    let table = table();
    let unlisted: Vec<_> = found
        .iter()
        .filter(|(key, _)| !table.contains_key(*key))
        .map(|(key, detail)| format!("{key}: {detail}"))
        .collect();
    let unneeded: Vec<_> = table.keys().filter(|key| !found.contains_key(*key)).collect();
    assert!(
        unlisted.is_empty() && unneeded.is_empty(),
        "differences that upstream-differences.txt does not list: {unlisted:#?}\nrows that it no longer needs: {unneeded:#?}",
    );
    // What upstream has and we serve must have been found there: a moved file must not make this test empty.
    let own_group = "controlplane.cluster.x-k8s.io";
    let definitions = DEFINITIONS.iter().filter(|definition| definition.spec.group != own_group);
    assert_eq!(compared, definitions.filter_map(|definition| definition.metadata.name.clone()).collect());
}
