//! The CRDs of the chosen controllers.

use std::collections::BTreeSet;

use hangar_api::crd;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::{Options, WEBHOOK_LABEL};
use crate::controllers::Controller;

/// Who put a CRD there: a CRD without this label belongs to somebody else and is never overwritten.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
pub const MANAGED_BY: &str = "hangar";

/// The names of the CRDs that the chosen controllers own.
fn names(options: &Options) -> BTreeSet<String> {
    options.controllers.iter().flat_map(Controller::custom_resources).collect()
}

/// The names of those that have several versions.
pub(super) fn converted(options: &Options) -> BTreeSet<String> {
    let names = chosen(options).into_iter().filter(crd::is_converted).filter_map(|found| found.metadata.name);
    names.collect()
}

pub(super) fn chosen(options: &Options) -> Vec<CustomResourceDefinition> {
    let names = names(options);
    let is_chosen = |definition: &CustomResourceDefinition| {
        definition.metadata.name.as_ref().is_some_and(|name| names.contains(name))
    };
    crd::all().into_iter().filter(is_chosen).map(|definition| labelled(definition, options)).collect()
}

fn labelled(definition: CustomResourceDefinition, options: &Options) -> CustomResourceDefinition {
    let is_converted = crd::is_converted(&definition);
    let mut definition = crd::with_conversion(definition, &options.target.conversion());
    let labels = definition.metadata.labels.get_or_insert_default();
    labels.extend(super::labels());
    if is_converted {
        labels.insert(WEBHOOK_LABEL.to_owned(), String::new());
    }
    definition
}
