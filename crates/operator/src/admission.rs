//! The rules of `hangar_plan::admission` behind the webhook server.

use hangar_kit::webhook::Verdict;
use hangar_plan::admission::{self, Request};
use kube::core::DynamicObject;
use kube::core::admission::AdmissionRequest;
use serde_json::Value;

/// Gives an object its defaults.
pub(crate) fn mutate(review: &AdmissionRequest<DynamicObject>) -> Verdict {
    let Some((object, _)) = objects(review) else { return Verdict::allow() };
    let request = request(review, &object, None);
    Verdict::change(&object, &admission::defaulted(&request))
}

/// Checks an object; all complaints come at once, one line each.
pub(crate) fn validate(review: &AdmissionRequest<DynamicObject>) -> Verdict {
    let Some((object, old)) = objects(review) else { return Verdict::allow() };
    let errors = admission::validate(&request(review, &object, old.as_ref()));
    if errors.is_empty() {
        return Verdict::allow();
    }
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    Verdict::deny(lines.join("; "))
}

fn request<'request>(
    review: &'request AdmissionRequest<DynamicObject>,
    object: &'request Value,
    old: Option<&'request Value>,
) -> Request<'request> {
    Request { group: &review.kind.group, kind: &review.kind.kind, object, old }
}

/// The object and the one it replaces. Nothing on a delete, and nothing for an object that is on its way out: its
/// finalizers must be removable whatever else is wrong with it.
fn objects(review: &AdmissionRequest<DynamicObject>) -> Option<(Value, Option<Value>)> {
    let object = review.object.as_ref()?;
    if object.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let old = review.old_object.as_ref().and_then(|old| serde_json::to_value(old).ok());
    Some((serde_json::to_value(object).ok()?, old))
}
