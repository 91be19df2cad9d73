//! Finds the MachineSet that belongs to the template, and renders a new one.
//!
//! Two templates are the same if they make the same Machines: version, bootstrap, infrastructure and failure domain.
//! Labels, annotations, timeouts, gates and taints change Machines in place and cause no rollout. A rollout that is
//! asked for by time counts as a difference: once it is due, sets that were created before no longer match.

use std::collections::BTreeMap;

use hangar_api::cluster::v1beta2::{MachineDeployment, MachineSet, MachineSetSpec, MachineTemplateSpec};
use hangar_api::{names, naming};
use jiff::Timestamp;
use kube::core::ObjectMeta;
use serde_json::json;

use super::Limits;
use crate::machine_set::{suffix, travels, with_suffix};
use crate::referred;

/// Annotations of deployments that mean something else on sets.
const NOT_FOR_SETS: [&str; 4] = [
    names::REVISION_ANNOTATION,
    names::REVISION_HISTORY_ANNOTATION,
    names::DESIRED_REPLICAS_ANNOTATION,
    names::MAXIMUM_REPLICAS_ANNOTATION,
];

/// Whether a set has the template that its deployment has now.
pub fn is_current(deployment: &MachineDeployment, set: &MachineSet, now: Timestamp) -> bool {
    let is_before = due(deployment, now).is_some_and(|after| {
        set.metadata.creation_timestamp.as_ref().is_none_or(|created| created.0 < after)
    });
    !is_before && makes_the_same(&deployment.spec.template, &set.spec.template)
}

fn makes_the_same(left: &MachineTemplateSpec, right: &MachineTemplateSpec) -> bool {
    let (left, right) = (&left.spec, &right.spec);
    left.version == right.version
        && left.bootstrap == right.bootstrap
        && left.infrastructure_ref == right.infrastructure_ref
        && left.failure_domain == right.failure_domain
}

/// The moment of a rollout that was asked for by time, once it is past.
fn due(deployment: &MachineDeployment, now: Timestamp) -> Option<Timestamp> {
    let after = deployment.spec.rollout.as_ref()?.after.as_ref()?.0;
    (after <= now).then_some(after)
}

/// The set of the current template; of several the one with most Machines, then the oldest.
pub(super) fn current<'sets>(
    deployment: &MachineDeployment,
    sets: &[&'sets MachineSet],
    now: Timestamp,
) -> Option<&'sets MachineSet> {
    let mut matching: Vec<&MachineSet> =
        sets.iter().copied().filter(|set| is_current(deployment, set, now)).collect();
    // Stable: they come oldest first.
    matching.sort_by_key(|set| std::cmp::Reverse(set.spec.replicas.unwrap_or(1)));
    matching.first().copied()
}

/// The revision of a set.
pub(super) fn of(set: &MachineSet) -> Option<i64> {
    set.metadata.annotations.as_ref()?.get(names::REVISION_ANNOTATION)?.parse().ok()
}

pub(super) fn highest(sets: &[&MachineSet]) -> i64 {
    sets.iter().filter_map(|set| of(set)).max().unwrap_or_default()
}

/// The deployment's numbers, as its sets carry them.
pub(super) fn numbers(limits: &Limits) -> BTreeMap<String, String> {
    BTreeMap::from([
        (names::DESIRED_REPLICAS_ANNOTATION.to_owned(), limits.desired.to_string()),
        (names::MAXIMUM_REPLICAS_ANNOTATION.to_owned(), (limits.desired + limits.max_surge).to_string()),
    ])
}

/// What tells the sets of a deployment apart: the template, and the rollout by time that was due when it was made.
fn hash(deployment: &MachineDeployment, now: Timestamp) -> String {
    let spec = &deployment.spec.template.spec;
    let content = json!({
        "version": spec.version,
        "bootstrap": spec.bootstrap,
        "infrastructureRef": spec.infrastructure_ref,
        "failureDomain": spec.failure_domain,
        "after": due(deployment, now).map(|after| after.to_string()),
    });
    suffix(&[deployment.metadata.uid.as_deref().unwrap_or_default(), &content.to_string()])
}

/// A new set for the current template.
pub(super) fn set(
    deployment: &MachineDeployment,
    replicas: i32,
    revision: i64,
    limits: &Limits,
    now: Timestamp,
) -> MachineSet {
    let hash = hash(deployment, now);
    let name = with_suffix(deployment.metadata.name.as_deref().unwrap_or_default(), &hash);
    let mut selector = deployment.spec.selector.clone();
    selector
        .match_labels
        .get_or_insert_default()
        .insert(names::MACHINE_TEMPLATE_HASH_LABEL.to_owned(), hash.clone());
    let mut template = deployment.spec.template.clone();
    let metadata = template.metadata.get_or_insert_default();
    let labels = metadata.labels.get_or_insert_default();
    labels.insert(names::MACHINE_TEMPLATE_HASH_LABEL.to_owned(), hash);
    let deployment_name = naming::label_value(deployment.metadata.name.as_deref().unwrap_or_default());
    labels.insert(names::DEPLOYMENT_NAME_LABEL.to_owned(), deployment_name);
    labels.insert(names::CLUSTER_NAME_LABEL.to_owned(), deployment.spec.cluster_name.clone());
    let labels = labels.clone();
    if let Some(annotations) = &mut metadata.annotations {
        annotations.retain(|name, _| travels(name));
    }
    let mut annotations = deployment.metadata.annotations.clone().unwrap_or_default();
    annotations.retain(|name, _| {
        travels(name) && !NOT_FOR_SETS.contains(&name.as_str()) && name != names::PAUSED_ANNOTATION
    });
    annotations.extend(numbers(limits));
    annotations.insert(names::REVISION_ANNOTATION.to_owned(), revision.to_string());
    MachineSet {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: deployment.metadata.namespace.clone(),
            labels: Some(labels),
            annotations: Some(annotations),
            owner_references: Some(vec![referred::owner::<MachineDeployment>(&deployment.metadata, true)]),
            ..ObjectMeta::default()
        },
        spec: MachineSetSpec {
            cluster_name: deployment.spec.cluster_name.clone(),
            deletion: deployment.spec.deletion.clone(),
            machine_naming: deployment.spec.machine_naming.clone(),
            replicas: Some(replicas),
            selector,
            template,
        },
        status: None,
    }
}

/// The current set as it should be: its identity stays, everything else follows the deployment.
pub(super) fn kept(
    deployment: &MachineDeployment,
    live: &MachineSet,
    replicas: i32,
    revision: i64,
    limits: &Limits,
) -> MachineSet {
    // The hash was decided when the set was made; a rollout by time that is due now was due then too, or it would not
    // be the current one.
    let mut set = set(deployment, replicas, revision, limits, Timestamp::UNIX_EPOCH);
    set.metadata.name.clone_from(&live.metadata.name);
    set.spec.selector.clone_from(&live.spec.selector);
    let label = names::MACHINE_TEMPLATE_HASH_LABEL;
    let hash = live.spec.template.metadata.as_ref().and_then(|metadata| metadata.labels.as_ref()?.get(label));
    if let Some(hash) = hash {
        let template = set.spec.template.metadata.get_or_insert_default();
        for labels in [&mut set.metadata.labels, &mut template.labels] {
            labels.get_or_insert_default().insert(label.to_owned(), hash.clone());
        }
    }
    set
}

/// Another set as it should be: its Machines stay what they are, and follow the deployment in what changes in place.
pub(super) fn followed(
    deployment: &MachineDeployment,
    live: &MachineSet,
    replicas: i32,
    limits: &Limits,
) -> MachineSet {
    let mut set = kept(deployment, live, replicas, of(live).unwrap_or_default(), limits);
    let (spec, own) = (&mut set.spec.template.spec, &live.spec.template.spec);
    spec.version.clone_from(&own.version);
    spec.bootstrap.clone_from(&own.bootstrap);
    spec.infrastructure_ref.clone_from(&own.infrastructure_ref);
    spec.failure_domain.clone_from(&own.failure_domain);
    set
}
