//! Tests what holds for the schema of every kind.

use std::collections::BTreeSet;

use hangar_api::{
    crd::{self, ConversionTarget},
    names,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

use crate::DEFINITIONS;

pub(crate) fn name(definition: &CustomResourceDefinition) -> &str {
    definition.metadata.name.as_deref().unwrap()
}

/// Calls `visit` with every schema below `schema` and its path.
pub(crate) fn walk(schema: &Value, path: &str, visit: &mut impl FnMut(&str, &Value)) {
    visit(path, schema);
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        walk(property, &format!("{path}.{name}"), visit);
    }
    if let Some(items) = schema.get("items") {
        walk(items, &format!("{path}[]"), visit);
    }
    if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
        walk(values, &format!("{path}{{}}"), visit);
    }
}

fn every_schema(mut visit: impl FnMut(&str, &Value)) {
    for definition in DEFINITIONS.iter() {
        let json = crd::yaml::to_json(definition).unwrap();
        for version in json["spec"]["versions"].as_array().unwrap() {
            let path = format!("{}/{}", name(definition), version["name"].as_str().unwrap());
            walk(&version["schema"]["openAPIV3Schema"], &path, &mut visit);
        }
    }
}

#[test]
fn schemas_are_structural() {
    for definition in DEFINITIONS.iter() {
        let violations = crd::structural::violations(definition);
        assert!(violations.is_empty(), "{}: {violations:#?}", name(definition));
    }
}

/// The API server knows no `int32` in a CRD, and takes times with any offset.
#[test]
fn what_the_types_cannot_hold_is_refused() {
    let mut found = Vec::new();
    every_schema(|path, schema| {
        let is_bounded = match schema.get("format").and_then(Value::as_str) {
            Some("int32") => {
                let bound = |name: &str| schema.get(name).and_then(Value::as_i64).map(i32::try_from);
                matches!((bound("minimum"), bound("maximum")), (Some(Ok(_)), Some(Ok(_))))
            }
            Some("date-time") => schema.get("pattern").is_some(),
            _ => true,
        };
        if !is_bounded {
            found.push(path.to_owned());
        }
    });
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn nothing_of_the_derive_macros_shows() {
    let mut found = Vec::new();
    every_schema(|path, schema| {
        let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
        let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        if schema.get("nullable").is_some()
            || schema.get("title").is_some()
            || format.starts_with("uint")
            || description.contains("Auto-generated")
        {
            found.push(path.to_owned());
        }
    });
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn every_field_is_described() {
    let mut found = Vec::new();
    every_schema(|path, schema| {
        let is_field = !path.ends_with(']') && !path.ends_with('}');
        if is_field && schema.get("description").and_then(Value::as_str).is_none_or(str::is_empty) {
            found.push(path.to_owned());
        }
    });
    assert!(found.is_empty(), "{found:#?}");
}

/// Also where the type of the field, an enum, has a comment of its own, which says nothing about this use of it.
#[test]
fn a_field_is_described_by_its_own_comment() {
    let mut found = BTreeSet::new();
    every_schema(|path, schema| {
        if path.ends_with(".spec.exposure.type") {
            found.insert(
                schema["description"].as_str().unwrap_or_default().split(". ").nth(1).map(str::to_owned),
            );
        }
    });
    let expected = "When empty, it is `Gateway` if `gateway` is given, else `LoadBalancer`";
    assert_eq!(found, BTreeSet::from([Some(expected.to_owned())]));
}

/// A default is written into every object and then owned by nobody: only values that change nothing are allowed.
#[test]
fn defaults_are_values_not_shapes() {
    let mut found = Vec::new();
    every_schema(|path, schema| {
        if schema
            .get("default")
            .is_some_and(|default| default.is_null() || default.is_array() || default.is_object())
        {
            found.push(path.to_owned());
        }
    });
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn conditions_are_a_map_by_type() {
    let mut found = Vec::new();
    every_schema(|path, schema| {
        let has_generation = schema.pointer("/items/properties/observedGeneration").is_some();
        if path.ends_with(".conditions")
            && has_generation
            && schema.get("x-kubernetes-list-map-keys") != Some(&serde_json::json!(["type"]))
        {
            found.push(path.to_owned());
        }
    });
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn kinds_are_well_formed() {
    for kind in crd::kinds() {
        let versions: Vec<_> =
            kind.versions.iter().flat_map(|crd| &crd.spec.versions).map(|v| &v.name).collect();
        let subject = kind.versions.first().map(|crd| crd.spec.names.kind.clone()).unwrap_or_default();
        assert!(!versions.is_empty(), "a kind without versions");
        assert!(
            versions.iter().any(|version| *version == kind.stored),
            "{subject}: {} is not there",
            kind.stored
        );
        let shared: BTreeSet<_> = kind
            .versions
            .iter()
            .map(|crd| (&crd.spec.group, &crd.spec.names.kind, &crd.spec.scope))
            .collect();
        assert_eq!(shared.len(), 1, "{subject}: versions differ in group, kind or scope");
        for (contract, implementing) in kind.contracts {
            for version in implementing.split('_') {
                assert!(
                    versions.iter().any(|known| *known == version),
                    "{subject}: contract {contract} names {version}"
                );
            }
        }
    }
}

#[test]
fn definitions_carry_what_clusterctl_looks_for() {
    for definition in DEFINITIONS.iter() {
        let labels = definition.metadata.labels.as_ref().unwrap();
        assert!(labels.contains_key(names::PROVIDER_LABEL), "{}", name(definition));
        assert_eq!(labels.get(names::CLUSTERCTL_LABEL).map(String::as_str), Some(""), "{}", name(definition));
        // Kinds are found by this name, made with the regular English plural.
        let plural = format!("{}s", definition.spec.names.kind.to_lowercase()).replace("classs", "classes");
        assert_eq!(name(definition), format!("{plural}.{}", definition.spec.group));
        let stored: Vec<_> = definition.spec.versions.iter().filter(|version| version.storage).collect();
        assert_eq!(stored.len(), 1, "{}: {} versions are stored", name(definition), stored.len());
    }
}

#[test]
fn several_versions_mean_a_conversion_webhook_that_the_installer_fills_in() {
    let target = ConversionTarget::Url { base: "https://100.72.0.1:9443/".to_owned() };
    for definition in DEFINITIONS.iter() {
        let is_converted = definition.spec.versions.len() > 1;
        assert_eq!(definition.spec.conversion.is_some(), is_converted, "{}", name(definition));
        let filled = crd::with_conversion(definition.clone(), &target);
        let client = filled.spec.conversion.and_then(|conversion| conversion.webhook?.client_config);
        assert_eq!(
            client.as_ref().and_then(|client| client.url.as_deref()),
            is_converted.then_some("https://100.72.0.1:9443/convert"),
        );
        assert!(client.is_none_or(|client| client.service.is_none()));
    }
}
