//! Renders the Machines of a set as they should be.
//!
//! Version, references and failure domain of a Machine are decided when it is created. Labels, annotations, timeouts,
//! readiness gates, taints and the time to availability follow the template in place.

use std::collections::BTreeMap;

use hangar_api::cluster::v1beta2::machine::MachineDeletion;
use hangar_api::cluster::v1beta2::{Machine, MachineSet};
use hangar_api::{names, naming as api_naming};
use kube::core::ObjectMeta;
use serde_json::{Value, json};

use super::{Observed, clone, naming};
use crate::referred;

/// Whether an annotation may go from a template, or a deployment, to what is made from it. Some say something about the
/// very object they are on.
pub(crate) fn travels(annotation: &str) -> bool {
    let stays = [
        names::STASH_ANNOTATION,
        names::CONVERSION_DATA_ANNOTATION,
        naming::NEXT_SLOT_ANNOTATION,
        "kubectl.kubernetes.io/last-applied-configuration",
    ];
    !stays.contains(&annotation) && !annotation.starts_with("applied.hangar.cluster.x-k8s.io/")
}

/// Labels that the set gives to everything it makes.
pub(super) fn labels(set: &MachineSet) -> BTreeMap<String, String> {
    let metadata = set.spec.template.metadata.clone().unwrap_or_default();
    let mut labels = metadata.labels.unwrap_or_default();
    let name = set.metadata.name.as_deref().unwrap_or_default();
    labels.insert(names::SET_NAME_LABEL.to_owned(), api_naming::label_value(name));
    labels.insert(names::CLUSTER_NAME_LABEL.to_owned(), set.spec.cluster_name.clone());
    let deployment = set.metadata.labels.as_ref().and_then(|labels| labels.get(names::DEPLOYMENT_NAME_LABEL));
    if let Some(deployment) = deployment {
        labels.insert(names::DEPLOYMENT_NAME_LABEL.to_owned(), deployment.clone());
    }
    labels
}

/// Annotations that the set gives to everything it makes.
pub(super) fn annotations(set: &MachineSet) -> BTreeMap<String, String> {
    let metadata = set.spec.template.metadata.clone().unwrap_or_default();
    let mut annotations = metadata.annotations.unwrap_or_default();
    annotations.retain(|name, _| travels(name));
    annotations
}

/// A new Machine in a slot.
pub(super) fn machine(set: &MachineSet, name: &str, slot: u32) -> Machine {
    let mut spec = set.spec.template.spec.clone();
    spec.cluster_name.clone_from(&set.spec.cluster_name);
    spec.provider_id = None;
    for reference in spec.bootstrap.config_ref.iter_mut().chain([&mut spec.infrastructure_ref]) {
        if let Some(kind) = clone::kind(&reference.kind) {
            reference.kind = kind.to_owned();
        }
        name.clone_into(&mut reference.name);
    }
    let mut annotations = annotations(set);
    annotations.insert(naming::SLOT_ANNOTATION.to_owned(), slot.to_string());
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: set.metadata.namespace.clone(),
        labels: Some(labels(set)),
        annotations: Some(annotations),
        owner_references: Some(vec![referred::owner::<MachineSet>(&set.metadata, true)]),
        ..ObjectMeta::default()
    };
    Machine { metadata, spec, status: None }
}

/// All timeouts of a deletion, as fields to merge.
pub(crate) fn timeouts(deletion: Option<&MachineDeletion>) -> Value {
    let deletion = deletion.cloned().unwrap_or_default();
    json!({
        "nodeDeletionTimeoutSeconds": deletion.node_deletion_timeout_seconds,
        "nodeDrainTimeoutSeconds": deletion.node_drain_timeout_seconds,
        "nodeVolumeDetachTimeoutSeconds": deletion.node_volume_detach_timeout_seconds,
    })
}

/// The Machines that we made, with what follows the template in place.
pub(super) fn in_place(observed: &Observed) -> Vec<Machine> {
    let members = observed.members();
    let ours = members.into_iter().filter(|machine| machine.metadata.deletion_timestamp.is_none());
    ours.filter_map(|live| {
        let slot = naming::slot(live)?;
        let mut machine = self::machine(&observed.set, live.metadata.name.as_deref()?, slot);
        machine.spec.version.clone_from(&live.spec.version);
        machine.spec.failure_domain.clone_from(&observed.set.spec.template.spec.failure_domain);
        machine.spec.infrastructure_ref.clone_from(&live.spec.infrastructure_ref);
        machine.spec.bootstrap.config_ref.clone_from(&live.spec.bootstrap.config_ref);
        Some(machine)
    })
    .collect()
}
