//! Admission of OpenStack templates: a template cannot be changed, so that it still says how its objects were made.
//!
//! Changes are allowed in a dry run of the topology controller, which marks its requests and writes nothing.

use hangar_api::names::TOPOLOGY_DRY_RUN_ANNOTATION;
use serde_json::{Map, Value};

use super::{FieldError, Judgement, Lookup, Request, has_annotation};

const SPEC: &str = "/spec/template/spec";

/// Of a port the further addresses can change: they matter to machines that come later, and to no name.
pub(super) fn validate_machine_template(request: &Request<'_>, _: &dyn Lookup) -> Judgement {
    unchanged(request, |spec| {
        let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
            port.remove("allowedAddressPairs");
        }
    })
    .into()
}

/// A complaint for each field of the template that changes, after `forgive` has removed what can.
pub(super) fn unchanged(request: &Request<'_>, forgive: fn(&mut Map<String, Value>)) -> Vec<FieldError> {
    if request.is_dry_run && has_annotation(request.object, TOPOLOGY_DRY_RUN_ANNOTATION) {
        return Vec::new();
    }
    let fields = |object: &Value| {
        let mut fields = object.pointer(SPEC).and_then(Value::as_object).cloned().unwrap_or_default();
        forgive(&mut fields);
        fields
    };
    let Some(old) = request.old.map(fields) else { return Vec::new() };
    let new = fields(request.object);
    let mut changed: Vec<&String> =
        old.keys().chain(new.keys()).filter(|name| old.get(*name) != new.get(*name)).collect();
    changed.sort();
    changed.dedup();
    let why = "it cannot be changed: make a new template, and refer to that";
    changed.into_iter().map(|name| FieldError::forbidden(format!("spec.template.spec.{name}"), why)).collect()
}
