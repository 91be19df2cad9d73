//! Which nodes of the management cluster control planes may ask for.
//!
//! Taints keep pods away from nodes, so a toleration is what leads to more of them than others have. Labels only choose
//! among the rest, and what is allowed of them is the operator's plan of who runs where. To stay away from nodes is always
//! allowed.

use hangar_api::controlplane::v1alpha1::HostedControlPlaneSettings;
use k8s_openapi::api::core::v1::{Affinity, NodeSelectorRequirement, NodeSelectorTerm};

use super::excess::refusal;
use super::{Limits, Pattern};
use crate::admission::FieldError;
use crate::hosted_control_plane::placements;

/// Taints of the nodes that Kubernetes itself runs on.
const SYSTEM_TAINTS: &str = "node-role.kubernetes.io/";

pub(super) fn excess(limits: &Limits, settings: &HostedControlPlaneSettings) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (path, placement) in placements(settings) {
        for (key, value) in &placement.node_selector {
            errors.extend(label(limits, &format!("{path}.nodeSelector[{key}]"), key, value));
        }
        for (index, toleration) in placement.tolerations.iter().enumerate() {
            let key = toleration.key.as_deref().unwrap_or_default();
            let path = format!("{path}.tolerations[{index}].key");
            let refused = || refusal(&path, key, "tolerations", &limits.tolerations);
            errors.extend((!is_tolerated(limits, key)).then(refused));
        }
        for (inner, term) in placement.affinity.iter().flat_map(node_terms) {
            errors.extend(term_excess(limits, &format!("{path}.affinity.nodeAffinity.{inner}"), term));
        }
    }
    errors
}

fn is_tolerated(limits: &Limits, key: &str) -> bool {
    let is_named =
        |pattern: &Pattern| !key.starts_with(SYSTEM_TAINTS) || pattern.as_str().starts_with(SYSTEM_TAINTS);
    limits.tolerations.any(|pattern| is_named(pattern) && pattern.matches(key))
}

fn label(limits: &Limits, path: &str, key: &str, value: &str) -> Option<FieldError> {
    let label = format!("{key}={value}");
    let is_allowed = limits.node_labels.any(|pattern| pattern.matches(&label));
    (!is_allowed).then(|| refusal(path, &label, "nodeLabels", &limits.node_labels))
}

/// All terms about nodes, each with its field.
fn node_terms(affinity: &Affinity) -> Vec<(String, &NodeSelectorTerm)> {
    let Some(nodes) = &affinity.node_affinity else { return Vec::new() };
    let required = nodes.required_during_scheduling_ignored_during_execution.iter();
    let required = required.flat_map(|required| required.node_selector_terms.iter()).enumerate();
    let required = required.map(|(index, term)| {
        (format!("requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[{index}]"), term)
    });
    let preferred = nodes.preferred_during_scheduling_ignored_during_execution.iter().flatten().enumerate();
    let preferred = preferred.map(|(index, weighted)| {
        let path = format!("preferredDuringSchedulingIgnoredDuringExecution[{index}].preference");
        (path, &weighted.preference)
    });
    required.chain(preferred).collect()
}

fn term_excess(limits: &Limits, path: &str, term: &NodeSelectorTerm) -> Vec<FieldError> {
    let parts = [("matchExpressions", &term.match_expressions), ("matchFields", &term.match_fields)];
    let parts = parts
        .into_iter()
        .flat_map(|(kind, all)| all.iter().flatten().enumerate().map(move |(index, one)| (kind, index, one)));
    parts
        .flat_map(|(kind, index, requirement)| {
            requirement_excess(limits, &format!("{path}.{kind}[{index}]"), requirement)
        })
        .collect()
}

fn requirement_excess(limits: &Limits, path: &str, requirement: &NodeSelectorRequirement) -> Vec<FieldError> {
    let key = &requirement.key;
    let values = requirement.values.iter().flatten().map(String::as_str);
    match requirement.operator.as_str() {
        "NotIn" | "DoesNotExist" => Vec::new(),
        "In" => values
            .enumerate()
            .filter_map(|(index, value)| label(limits, &format!("{path}.values[{index}]"), key, value))
            .collect(),
        // Of any value: only what allows them all does.
        "Exists" | "Gt" | "Lt" => label(limits, &format!("{path}.key"), key, "*").into_iter().collect(),
        other => {
            let why = "it must be In, NotIn, Exists, DoesNotExist, Gt or Lt";
            vec![FieldError::invalid(format!("{path}.operator"), other, why)]
        }
    }
}
