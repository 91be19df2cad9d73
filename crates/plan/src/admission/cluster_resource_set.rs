//! Admission of ClusterResourceSets: whom they select and how they are applied stays, because nothing would be taken back
//! from Clusters that are no longer selected. A selector that selects nothing is a mistake.

use serde_json::Value;

use super::machine_collection::selects_nothing;
use super::{FieldError, Judgement, Lookup, Request, rules, text};

/// The strategy of a set that names none.
const DEFAULT_STRATEGY: &str = "ApplyOnce";
const SELECTOR: &str = "/spec/clusterSelector";

pub(super) fn validate(request: &Request<'_>, lookup: &dyn Lookup) -> Judgement {
    let mut judgement = rules::unattended(request, lookup);
    let selector = request.object.pointer(SELECTOR);
    match request.old {
        None if selects_nothing(selector) => {
            let why = "an empty selector selects no Cluster";
            judgement.errors.push(FieldError::required("spec.clusterSelector", why));
        }
        // One that was stored without a selector may get one.
        Some(old) if !selects_nothing(old.pointer(SELECTOR)) && old.pointer(SELECTOR) != selector => {
            judgement.errors.push(FieldError::forbidden("spec.clusterSelector", "it cannot be changed"));
        }
        _ => {}
    }
    if request.old.is_some_and(|old| strategy(old) != strategy(request.object)) {
        judgement.errors.push(FieldError::forbidden("spec.strategy", "it cannot be changed"));
    }
    judgement
}

fn strategy(object: &Value) -> &str {
    Some(text(object, "/spec/strategy")).filter(|text| !text.is_empty()).unwrap_or(DEFAULT_STRATEGY)
}
