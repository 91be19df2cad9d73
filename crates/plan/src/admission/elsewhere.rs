//! References into another namespace. None is followed there; one that was silently resolved at home would lead to
//! another object than its author meant, so it is refused.

use serde_json::Value;

use super::{FieldError, Request};

/// Where objects name a namespace beside a name. v1beta1 has one in each reference; a `*` stands for every entry of a list.
const PLACES: [&str; 11] = [
    "spec.controlPlaneRef.namespace",
    "spec.infrastructureRef.namespace",
    "spec.bootstrap.configRef.namespace",
    "spec.template.spec.bootstrap.configRef.namespace",
    "spec.template.spec.infrastructureRef.namespace",
    "spec.etcd.backup.secret.namespace",
    "spec.etcd.restore.secret.namespace",
    "spec.deployment.apiServer.audit.webhook.targets.*.authentication.secretNamespace",
    "spec.template.spec.etcd.backup.secret.namespace",
    "spec.template.spec.etcd.restore.secret.namespace",
    "spec.template.spec.deployment.apiServer.audit.webhook.targets.*.authentication.secretNamespace",
];

/// What to say about a namespace that is not the object's own.
pub(crate) fn refusal(field: impl Into<String>, own: &str) -> FieldError {
    FieldError::forbidden(field, format!("must be empty or {own}, the object's own namespace"))
}

/// One error for each reference that this request brings and that leads elsewhere.
pub(super) fn errors(request: &Request<'_>) -> Vec<FieldError> {
    let leads_elsewhere = |object: &Value| -> Vec<(String, String)> {
        let found = PLACES.iter().flat_map(|place| named(object, place));
        found.filter(|(_, namespace)| !namespace.is_empty() && namespace != request.namespace).collect()
    };
    // What was there before stays: other changes must not fail because of it.
    let before = request.old.map(leads_elsewhere).unwrap_or_default();
    let now = leads_elsewhere(request.object).into_iter().filter(|found| !before.contains(found));
    now.map(|(field, _)| refusal(field, request.namespace)).collect()
}

/// The texts at a place, each with its field.
fn named(object: &Value, place: &str) -> Vec<(String, String)> {
    let mut found = vec![(String::new(), object)];
    for segment in place.split('.') {
        found = found
            .into_iter()
            .flat_map(|(field, value)| match (segment, value) {
                ("*", Value::Array(entries)) => {
                    let entries = entries.iter().enumerate();
                    entries.map(|(index, entry)| (format!("{field}[{index}]"), entry)).collect()
                }
                (segment, value) => {
                    let separator = if field.is_empty() { "" } else { "." };
                    let inner = value.get(segment).into_iter();
                    inner.map(|inner| (format!("{field}{separator}{segment}"), inner)).collect::<Vec<_>>()
                }
            })
            .collect();
    }
    found.into_iter().filter_map(|(field, value)| Some((field, value.as_str()?.to_owned()))).collect()
}
