//! Admission of MachineSets and MachineDeployments: their selectors.
//!
//! A manifest without a selector gets one that selects exactly the Machines of this object, by its name. A given
//! selector must match the template's labels; otherwise the object would never see its own Machines.

use std::collections::BTreeMap;

use hangar_api::{names, naming};
use serde_json::{Map, Value, json};

use super::machine::{self, prefix_version};
use super::{FieldError, Judgement, Lookup, Request, text};

pub(super) fn default_machine_set(object: &mut Value) {
    default(object, names::SET_NAME_LABEL);
}

pub(super) fn default_machine_deployment(object: &mut Value) {
    default(object, names::DEPLOYMENT_NAME_LABEL);
}

fn default(object: &mut Value, name_label: &str) {
    prefix_version(object, "/spec/template/spec/version");
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let cluster = text("/spec/clusterName");
    let name = text("/metadata/name");
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let mut template_labels = BTreeMap::new();
    if let Some(cluster) = cluster {
        template_labels.insert(names::CLUSTER_NAME_LABEL.to_owned(), cluster);
    }
    // With generateName there is no name yet; the API server refuses the missing selector then, as it should.
    if let (true, Some(name)) = (selects_nothing(spec.get("selector")), name) {
        let own = naming::label_value(&name);
        let mut selector = template_labels.clone();
        selector.insert(name_label.to_owned(), own);
        template_labels.clone_from(&selector);
        spec.insert("selector".to_owned(), json!({ "matchLabels": selector }));
    }
    let Some(labels) = template_labels_of(spec) else { return };
    for (key, value) in template_labels {
        labels.entry(key).or_insert(Value::String(value));
    }
}

/// An absent selector, `{}`, and one whose parts are empty or null, as old manifests write it.
pub(super) fn selects_nothing(selector: Option<&Value>) -> bool {
    let is_empty = |value: Option<&Value>| match value {
        None | Some(Value::Null) => true,
        Some(Value::Object(fields)) => fields.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    };
    match selector {
        Some(Value::Object(selector)) => {
            is_empty(selector.get("matchLabels")) && is_empty(selector.get("matchExpressions"))
        }
        None | Some(Value::Null) => true,
        Some(_) => false,
    }
}

/// The template's labels, made where they are missing. `None` where the template has another shape than it should:
/// the schema refuses it next.
fn template_labels_of(spec: &mut Map<String, Value>) -> Option<&mut Map<String, Value>> {
    let mut current = spec;
    for key in ["template", "metadata", "labels"] {
        let value = current.entry(key).or_insert_with(|| json!({}));
        if value.is_null() {
            *value = json!({});
        }
        current = value.as_object_mut()?;
    }
    Some(current)
}

pub(super) fn validate(request: &Request<'_>, lookup: &dyn Lookup) -> Judgement {
    let object = request.object;
    let mut errors = Vec::new();
    let labels = object.pointer("/spec/template/metadata/labels").and_then(Value::as_object);
    let wanted = object.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
    for (key, value) in wanted.into_iter().flatten() {
        if labels.and_then(|labels| labels.get(key)) != Some(value) {
            let why = format!("spec.selector asks for {key}={}", value.as_str().unwrap_or_default());
            errors.push(FieldError::required(format!("spec.template.metadata.labels[{key}]"), why));
        }
    }
    let (own, template) =
        (text(object, "/spec/clusterName"), text(object, "/spec/template/spec/clusterName"));
    if own != template {
        let why = format!("it must be spec.clusterName, which is {own:?}");
        errors.push(FieldError::invalid("spec.template.spec.clusterName", template, why));
    }
    let mut judgement = machine::validate(request, lookup);
    errors.append(&mut judgement.errors);
    Judgement { errors, ..judgement }
}
