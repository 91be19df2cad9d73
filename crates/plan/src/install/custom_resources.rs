//! The CRDs of the chosen controllers.

use std::collections::BTreeSet;

use hangar_api::crd;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::{Options, WEBHOOK_LABEL};
use crate::controllers::{Controller, Selection};

/// Who put a CRD there: a CRD without this label belongs to somebody else and is never overwritten.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
pub const MANAGED_BY: &str = "hangar";

/// The CRDs that the chosen controllers own.
fn of(controllers: &Selection) -> impl Iterator<Item = CustomResourceDefinition> {
    let names: BTreeSet<String> = controllers.iter().flat_map(Controller::custom_resources).collect();
    let is_chosen = move |definition: &CustomResourceDefinition| {
        definition.metadata.name.as_ref().is_some_and(|name| names.contains(name))
    };
    crd::all().into_iter().filter(is_chosen)
}

/// The names of those that have several versions.
#[must_use]
pub fn converted(controllers: &Selection) -> BTreeSet<String> {
    of(controllers).filter(crd::is_converted).filter_map(|found| found.metadata.name).collect()
}

pub(super) fn chosen(options: &Options) -> Vec<CustomResourceDefinition> {
    of(&options.controllers).map(|definition| labelled(definition, options)).collect()
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
