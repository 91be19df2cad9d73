//! Admission of Clusters: a reference that was set cannot be removed, networks must parse, and the name must fit a
//! label.

use serde_json::Value;

use super::network::{check_network, items};
use super::{FieldError, Judgement, Lookup, Request, is_given, is_missing, text};

/// A label value's limit: the name of a Cluster is one on everything that belongs to it.
const NAME_LIMIT: usize = 63;

pub(super) fn validate(request: &Request<'_>, lookup: &dyn Lookup) -> Judgement {
    let object = request.object;
    let mut errors = Vec::new();
    errors.extend(check_name(object));
    errors.extend(check_references(object, request.old));
    for network in ["pods", "services"] {
        errors.extend(check_blocks(object, network));
    }
    let mut warnings = missing(request, lookup);
    if request.is_new("/spec/topology") {
        warnings.push("spec.topology: no controller acts on cluster classes yet".to_owned());
    }
    Judgement { errors, warnings }
}

/// References that lead nowhere since this change. A new Cluster may be ahead of what it names: manifests list it first.
fn missing(request: &Request<'_>, lookup: &dyn Lookup) -> Vec<String> {
    let leads_nowhere = |field: &&str| {
        let pointer = format!("/spec/{field}");
        let part = |name: &str| text(request.object, &format!("{pointer}/{name}"));
        // The older version names the API version, the newer one the group.
        let group = part("apiVersion").split_once('/').map_or(part("apiGroup"), |(group, _)| group);
        request.old.is_some()
            && request.is_new(&pointer)
            && is_missing(lookup, group, part("kind"), request.namespace, part("name"))
    };
    let fields = ["infrastructureRef", "controlPlaneRef"].into_iter().filter(leads_nowhere);
    fields.map(|field| format!("spec.{field}: the object that it names does not exist")).collect()
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
    object.pointer(pointer).is_some_and(is_given)
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
