//! Merges the versions of a kind into one CRD, with its names and labels.
//!
//! Names are taken from the stored version: it is the newest, and the API server keeps one set per CRD anyway. The
//! function is total, so that it cannot fail at start-up; the tests of this module and `tests/crds` check that each
//! kind is well formed (its stored version exists, groups agree).

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};

use super::Kind;
use crate::names;

/// One CRD with all versions of the kind; nothing for a kind without versions.
pub fn merge(kind: Kind) -> Option<CustomResourceDefinition> {
    let Kind { versions, stored, contracts, provider } = kind;
    let root = versions
        .iter()
        .find(|crd| crd.spec.versions.iter().any(|version| version.name == stored))
        .or(versions.last())?
        .clone();
    let newest = versions.last().and_then(|crd| crd.spec.versions.last()).map(|version| version.name.clone());
    let versions = versions
        .into_iter()
        .flat_map(|crd| crd.spec.versions)
        .map(|version| settle(version, stored, newest.as_deref()))
        .collect();
    let mut merged = root;
    merged.spec.versions = versions;
    merged.spec.names.list_kind = Some(format!("{}List", merged.spec.names.kind));
    drop_empty(&mut merged.spec.names.categories);
    drop_empty(&mut merged.spec.names.short_names);
    merged.metadata.labels.get_or_insert_default().extend(labels(contracts, provider));
    Some(merged)
}

/// Older versions are served but deprecated, as upstream has them; the API server words the warning itself, and it
/// names the version to move to.
fn settle(
    mut version: CustomResourceDefinitionVersion,
    stored: &str,
    newest: Option<&str>,
) -> CustomResourceDefinitionVersion {
    version.storage = version.name == stored;
    version.deprecated = (Some(version.name.as_str()) != newest).then_some(true);
    drop_empty(&mut version.additional_printer_columns);
    drop_empty(&mut version.selectable_fields);
    version
}

/// What clusterctl and the other providers' core look for on a CRD.
fn labels(contracts: &[(&str, &str)], provider: &str) -> BTreeMap<String, String> {
    let mut labels: BTreeMap<String, String> = contracts
        .iter()
        .map(|(contract, versions)| (names::contract_label(contract), (*versions).to_owned()))
        .collect();
    labels.insert(names::PROVIDER_LABEL.to_owned(), provider.to_owned());
    labels.insert(names::CLUSTERCTL_LABEL.to_owned(), String::new());
    labels
}

fn drop_empty<T>(list: &mut Option<Vec<T>>) {
    if list.as_ref().is_some_and(Vec::is_empty) {
        *list = None;
    }
}
