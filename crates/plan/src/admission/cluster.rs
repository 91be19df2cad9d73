//! Cluster: references that cannot go away again, networks that must parse.

use serde_json::Value;

use super::network::{check_network, items};
use super::{FieldError, Request};

/// A label value's limit: the name of a Cluster is one on everything that belongs to it.
const NAME_LIMIT: usize = 63;

pub(super) fn validate(request: &Request<'_>) -> Vec<FieldError> {
    let object = request.object;
    let mut errors = Vec::new();
    errors.extend(check_name(object));
    errors.extend(check_references(object, request.old));
    for network in ["pods", "services"] {
        errors.extend(check_blocks(object, network));
    }
    errors
}

fn check_name(object: &Value) -> Option<FieldError> {
    let name = object.pointer("/metadata/name")?.as_str()?;
    let is_label = name.len() <= NAME_LIMIT && !name.contains('.');
    (!is_label).then(|| {
        let why = format!("it becomes a label value: at most {NAME_LIMIT} characters and no dots");
        FieldError::invalid("metadata.name", name, why)
    })
}

fn is_set(object: &Value, pointer: &str) -> bool {
    match object.pointer(pointer) {
        None | Some(Value::Null) => false,
        Some(Value::Object(fields)) => !fields.is_empty(),
        Some(_) => true,
    }
}

fn check_references(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    const REFERENCES: [(&str, &str); 3] = [
        ("/spec/infrastructureRef", "spec.infrastructureRef"),
        ("/spec/controlPlaneRef", "spec.controlPlaneRef"),
        ("/spec/topology", "spec.topology"),
    ];
    let mut errors = Vec::new();
    if !REFERENCES.iter().any(|(pointer, _)| is_set(object, pointer)) {
        let why = "one of spec.controlPlaneRef, spec.infrastructureRef and spec.topology must be set";
        errors.push(FieldError::required("spec.controlPlaneRef", why));
    }
    let Some(old) = old else { return errors };
    for (pointer, path) in REFERENCES {
        if is_set(old, pointer) && !is_set(object, pointer) {
            errors.push(FieldError::forbidden(path, "it cannot be removed once it is set"));
        }
    }
    errors
}

fn check_blocks(object: &Value, network: &str) -> Vec<FieldError> {
    let blocks = items(object.pointer(&format!("/spec/clusterNetwork/{network}/cidrBlocks")));
    let check = |(index, block)| {
        check_network(format!("spec.clusterNetwork.{network}.cidrBlocks[{index}]"), Some(block))
    };
    blocks.iter().enumerate().filter_map(check).collect()
}
