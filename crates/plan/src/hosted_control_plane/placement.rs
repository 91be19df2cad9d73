//! Where the pods of a control plane run in the management cluster: what users may write, and what pods get.
//!
//! What of it the operator allows is in `limits`. Here is what nobody may write: a toleration without a key, which
//! tolerates the taints of every node, and affinities to pods of other namespaces. A pod that must not be near others
//! keeps them away as well, so it could take nodes from tenants it does not know.

use hangar_api::controlplane::v1alpha1::{
    HostedControlPlaneSettings, Placement, TopologySpread, WhenUnsatisfiable,
};
use k8s_openapi::api::core::v1::{Affinity, PodAffinityTerm, PodSpec, Toleration, TopologySpreadConstraint};
use serde::Serialize;

use super::names::Component;
use super::validate::Validated;
use crate::admission::FieldError;
use crate::label::is_label;
use crate::pieces::spread;

const HOSTS: &str = "kubernetes.io/hostname";
const ZONES: &str = "topology.kubernetes.io/zone";

/// Of an affinity as JSON: more than anybody needs, and little beside the largest object.
const AFFINITY_LIMIT: usize = 8192;

/// What users gave, each with its field.
pub(crate) fn placements(settings: &HostedControlPlaneSettings) -> Vec<(&'static str, &Placement)> {
    let etcd = settings.etcd.as_ref().and_then(|etcd| etcd.placement.as_ref());
    let given = [("spec.placement", settings.placement.as_ref()), ("spec.etcd.placement", etcd)];
    given.into_iter().filter_map(|(path, placement)| Some((path, placement?))).collect()
}

/// What is wrong with it, whoever allows it.
pub(crate) fn errors(settings: &HostedControlPlaneSettings) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (path, placement) in placements(settings) {
        for (key, value) in &placement.node_selector {
            errors.extend(label(&format!("{path}.nodeSelector[{key}]"), key, value));
        }
        for (index, given) in placement.tolerations.iter().enumerate() {
            errors.extend(toleration(&format!("{path}.tolerations[{index}]"), given));
        }
        if let Some(given) = &placement.affinity {
            errors.extend(affinity(&format!("{path}.affinity"), given));
        }
        for (index, given) in placement.topology_spread.iter().enumerate() {
            let path = format!("{path}.topologySpread[{index}]");
            errors.extend(topology_spread(&path, given, placement.topology_spread.get(..index)));
        }
    }
    errors
}

fn label(path: &str, key: &str, value: &str) -> Option<FieldError> {
    let is_good = is_label_name(key) && (value.is_empty() || is_name(value));
    let why = "it must be a label of nodes, such as pool=control-planes";
    (!is_good).then(|| FieldError::invalid(path, value, why))
}

/// A name with an optional domain before it.
fn is_label_name(text: &str) -> bool {
    match text.split_once('/') {
        Some((domain, name)) => domain.len() <= 253 && domain.split('.').all(is_label) && is_name(name),
        None => is_name(text),
    }
}

/// A label value that is not empty.
fn is_name(text: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric();
    text.len() <= 63
        && text.starts_with(is_plain)
        && text.ends_with(is_plain)
        && text.chars().all(|letter| is_plain(letter) || matches!(letter, '-' | '_' | '.'))
}

fn toleration(path: &str, given: &Toleration) -> Option<FieldError> {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let (key, value, effect) = (text(&given.key), text(&given.value), text(&given.effect));
    let at = |field: &str| format!("{path}.{field}");
    if key.is_empty() {
        return Some(FieldError::required(
            at("key"),
            "without a key the taints of all nodes would be tolerated",
        ));
    }
    if !is_label_name(&key) {
        return Some(FieldError::invalid(at("key"), key, "it must be the key of a taint"));
    }
    match given.operator.as_deref().unwrap_or_default() {
        "" | "Equal" if value.is_empty() || is_name(&value) => {}
        "" | "Equal" => {
            return Some(FieldError::invalid(at("value"), value, "it must be the value of a taint"));
        }
        "Exists" if value.is_empty() => {}
        "Exists" => return Some(FieldError::invalid(at("value"), value, "it must be empty with Exists")),
        other => return Some(FieldError::invalid(at("operator"), other, "it must be Equal or Exists")),
    }
    if !["", "NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect.as_str()) {
        let why = "it must be NoSchedule, PreferNoSchedule or NoExecute, or empty for all of them";
        return Some(FieldError::invalid(at("effect"), effect, why));
    }
    let seconds = given.toleration_seconds.filter(|_| effect != "NoExecute");
    seconds.map(|seconds| FieldError::invalid(at("tolerationSeconds"), seconds, "it is only for NoExecute"))
}

fn affinity(path: &str, given: &Affinity) -> Vec<FieldError> {
    let bytes = serde_json::to_vec(given).map_or(usize::MAX, |bytes| bytes.len());
    if bytes > AFFINITY_LIMIT {
        let why = format!("it has {bytes} bytes as JSON: at most {AFFINITY_LIMIT}");
        return vec![FieldError::forbidden(path, why)];
    }
    let terms = pod_terms(given).into_iter().flat_map(|(inner, term)| {
        let path = format!("{path}.{inner}");
        let is_elsewhere = [
            ("namespaces", term.namespaces.as_ref().is_some_and(|names| !names.is_empty())),
            ("namespaceSelector", term.namespace_selector.is_some()),
        ];
        let elsewhere = is_elsewhere.into_iter().filter(|(_, is_given)| *is_given).map({
            let path = path.clone();
            move |(field, _)| {
                let why = "pods of other namespaces cannot be named: a pod keeps those away that it stays away from";
                FieldError::forbidden(format!("{path}.{field}"), why)
            }
        });
        let key = (!is_label_name(&term.topology_key)).then(|| {
            let why = "it must be a label of nodes, such as kubernetes.io/hostname";
            FieldError::invalid(format!("{path}.topologyKey"), term.topology_key.as_str(), why)
        });
        elsewhere.chain(key).collect::<Vec<_>>()
    });
    terms.collect()
}

/// All terms about pods, each with its field.
fn pod_terms(given: &Affinity) -> Vec<(String, &PodAffinityTerm)> {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    let (near, away) = (given.pod_affinity.as_ref(), given.pod_anti_affinity.as_ref());
    let near = near.map(|near| {
        let preferred = near.preferred_during_scheduling_ignored_during_execution.as_ref();
        (near.required_during_scheduling_ignored_during_execution.as_ref(), preferred)
    });
    let away = away.map(|away| {
        let preferred = away.preferred_during_scheduling_ignored_during_execution.as_ref();
        (away.required_during_scheduling_ignored_during_execution.as_ref(), preferred)
    });
    let mut terms = Vec::new();
    for (kind, given) in [("podAffinity", near), ("podAntiAffinity", away)] {
        let Some((required, preferred)) = given else { continue };
        let required = required.into_iter().flatten().enumerate();
        terms.extend(required.map(|(index, term)| (format!("{kind}.{REQUIRED}[{index}]"), term)));
        let preferred = preferred.into_iter().flatten().enumerate();
        terms.extend(preferred.map(|(index, weighted)| {
            (format!("{kind}.{PREFERRED}[{index}].podAffinityTerm"), &weighted.pod_affinity_term)
        }));
    }
    terms
}

fn topology_spread(
    path: &str,
    given: &TopologySpread,
    others: Option<&[TopologySpread]>,
) -> Option<FieldError> {
    let key = given.topology_key.as_str();
    let at = |field: &str| format!("{path}.{field}");
    if !is_label_name(key) {
        let why = "it must be a label of nodes, such as topology.kubernetes.io/zone";
        return Some(FieldError::invalid(at("topologyKey"), key, why));
    }
    if others.into_iter().flatten().any(|other| other.topology_key == key) {
        return Some(FieldError::invalid(at("topologyKey"), key, "it is there already"));
    }
    let skew = given.max_skew.filter(|skew| !(1..=100).contains(skew));
    skew.map(|skew| FieldError::invalid(at("maxSkew"), skew, "it must be between 1 and 100"))
}

/// Puts the pods of a component where they should run.
pub(super) fn place(pod: &mut PodSpec, validated: &Validated<'_>, component: Component, replicas: i32) {
    let given = given(validated, component);
    let pull_secrets = validated.settings.image_pull_secrets.iter();
    let pull_secrets = pull_secrets
        .map(|secret| k8s_openapi::api::core::v1::LocalObjectReference { name: secret.name.clone() });
    pod.image_pull_secrets = given_items(pull_secrets.collect());
    pod.topology_spread_constraints = Some(constraints(validated, component, replicas, &given));
    pod.node_selector = Some(given.node_selector).filter(|labels| !labels.is_empty());
    pod.tolerations = given_items(given.tolerations);
    pod.affinity = given.affinity;
}

fn given_items<T: Serialize>(items: Vec<T>) -> Option<Vec<T>> {
    Some(items).filter(|items| !items.is_empty())
}

/// etcd's own placement replaces that of the control plane: its nodes are often others, with other disks.
fn given(validated: &Validated<'_>, component: Component) -> Placement {
    let settings = validated.settings;
    let etcd = settings.etcd.as_ref().and_then(|etcd| etcd.placement.as_ref());
    let own = etcd.filter(|_| component == Component::Etcd);
    own.or(settings.placement.as_ref()).cloned().unwrap_or_default()
}

/// Each on a host of its own where the operator says that there are enough; a zone that is full must not stop a
/// replacement.
fn constraints(
    validated: &Validated<'_>,
    component: Component,
    replicas: i32,
    given: &Placement,
) -> Vec<TopologySpreadConstraint> {
    let nodes = validated.limits.nodes.map_or(0, |nodes| i32::from(nodes.get()));
    let hosts = (replicas <= nodes).then_some(WhenUnsatisfiable::DoNotSchedule);
    let default = |key: &str, when| TopologySpread {
        topology_key: key.to_owned(),
        max_skew: None,
        when_unsatisfiable: when,
    };
    let defaults = [default(HOSTS, hosts), default(ZONES, None)];
    let is_given = |key: &str| given.topology_spread.iter().any(|given| given.topology_key == key);
    let all = defaults.into_iter().filter(|default| !is_given(&default.topology_key));
    all.chain(given.topology_spread.iter().cloned())
        .map(|wanted| {
            let when = match wanted.when_unsatisfiable.unwrap_or_default() {
                WhenUnsatisfiable::DoNotSchedule => "DoNotSchedule",
                WhenUnsatisfiable::ScheduleAnyway => "ScheduleAnyway",
            };
            TopologySpreadConstraint {
                max_skew: wanted.max_skew.unwrap_or(1),
                when_unsatisfiable: when.to_owned(),
                // Pods that a rollout replaces do not count, or the new ones would go where the old ones are not.
                match_label_keys: (component != Component::Etcd)
                    .then(|| vec!["pod-template-hash".to_owned()]),
                ..spread(&wanted.topology_key, validated.selector(component))
            }
        })
        .collect()
}
