//! Decides which volume a claim gets. Pure.

use std::collections::BTreeMap;
use std::path::Path;

use k8s_openapi::api::core::v1::{
    LocalVolumeSource, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, ObjectReference,
    PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec, VolumeNodeAffinity,
};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::ObjectMeta;

use super::{FINALIZER, NODE_LABEL, Options, PROVISIONER};

/// Set by the volume controller once it is our turn: no volume that exists fits, and a node is chosen if the class
/// waits for one.
const ASKED_ANNOTATION: &str = "volume.kubernetes.io/storage-provisioner";
/// Set by the scheduler.
const NODE_ANNOTATION: &str = "volume.kubernetes.io/selected-node";
/// Tells the volume controller that the volume is not one of its own to delete.
const PROVISIONED_ANNOTATION: &str = "pv.kubernetes.io/provisioned-by";

/// What is kept of a claim: all that decides.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct VolumeClaim {
    pub(super) class: Option<String>,
    /// The provisioner that was asked.
    pub(super) asked: Option<String>,
    pub(super) selected_node: Option<String>,
    pub(super) is_bound: bool,
    pub(super) access_modes: Vec<String>,
    pub(super) volume_mode: Option<String>,
    pub(super) size: Option<Quantity>,
    /// It wants to begin as a copy of something.
    pub(super) has_source: bool,
    /// It wants a volume with certain labels, which are those of volumes that exist.
    pub(super) has_selector: bool,
}

impl From<PersistentVolumeClaim> for VolumeClaim {
    fn from(claim: PersistentVolumeClaim) -> Self {
        let annotations = claim.metadata.annotations.unwrap_or_default();
        let spec = claim.spec.unwrap_or_default();
        let requests = spec.resources.and_then(|resources| resources.requests);
        Self {
            class: spec.storage_class_name,
            asked: annotations.get(ASKED_ANNOTATION).cloned(),
            selected_node: annotations.get(NODE_ANNOTATION).cloned(),
            is_bound: spec.volume_name.is_some_and(|name| !name.is_empty()),
            access_modes: spec.access_modes.unwrap_or_default(),
            volume_mode: spec.volume_mode,
            size: requests.and_then(|mut requests| requests.remove("storage")),
            has_source: spec.data_source.is_some() || spec.data_source_ref.is_some(),
            has_selector: spec.selector.is_some(),
        }
    }
}

/// A claim's name, as the volume refers to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct VolumeClaimIdentity<'a> {
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) uid: &'a str,
}

/// What to do about a claim.
#[derive(Debug, PartialEq)]
pub(super) enum VolumeClaimAction {
    /// It is not ours, or has what it needs, or not yet.
    Nothing,
    /// It asks for something that directories cannot give; the text says what.
    Refuse(&'static str),
    /// It gets this volume.
    Provision(Box<PersistentVolume>),
}

/// Whether the claim is ours to serve now, judged without its class.
pub(super) fn is_ours(claim: &VolumeClaim, options: &Options) -> bool {
    let is_here = claim.selected_node.as_ref().map_or(options.unassigned, |node| *node == options.node);
    claim.asked.as_deref() == Some(PROVISIONER) && !claim.is_bound && is_here
}

/// Decides about a claim of one of our classes.
pub(super) fn decide(
    claim: &VolumeClaim,
    identity: VolumeClaimIdentity<'_>,
    class: &StorageClass,
    options: &Options,
) -> VolumeClaimAction {
    if !is_ours(claim, options) || class.provisioner != PROVISIONER {
        return VolumeClaimAction::Nothing;
    }
    let waits = class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer");
    if waits && claim.selected_node.is_none() {
        return VolumeClaimAction::Nothing;
    }
    if claim.volume_mode.as_deref() == Some("Block") {
        return VolumeClaimAction::Refuse("directories cannot be block devices");
    }
    if claim.has_source {
        return VolumeClaimAction::Refuse("a directory cannot begin as a copy");
    }
    if claim.has_selector {
        return VolumeClaimAction::Refuse("a new directory has no labels to select by");
    }
    VolumeClaimAction::Provision(Box::new(volume(claim, identity, class, options)))
}

/// The name of a claim's volume and directory. Pinned by a test: another name would orphan data.
pub(super) fn volume_name(uid: &str) -> String {
    format!("pvc-{uid}")
}

fn volume(
    claim: &VolumeClaim,
    identity: VolumeClaimIdentity<'_>,
    class: &StorageClass,
    options: &Options,
) -> PersistentVolume {
    let name = volume_name(identity.uid);
    let reference = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("PersistentVolumeClaim".to_owned()),
        namespace: Some(identity.namespace.to_owned()),
        name: Some(identity.name.to_owned()),
        uid: Some(identity.uid.to_owned()),
        ..ObjectReference::default()
    };
    let size = claim.size.clone().unwrap_or_else(|| Quantity("1Gi".to_owned()));
    PersistentVolume {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            labels: Some(BTreeMap::from([(NODE_LABEL.to_owned(), options.node.clone())])),
            annotations: Some(BTreeMap::from([(PROVISIONED_ANNOTATION.to_owned(), PROVISIONER.to_owned())])),
            finalizers: Some(vec![FINALIZER.to_owned()]),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeSpec {
            access_modes: Some(claim.access_modes.clone()),
            capacity: Some(BTreeMap::from([("storage".to_owned(), size)])),
            claim_ref: Some(reference),
            local: Some(LocalVolumeSource { path: path(&options.directory, &name), fs_type: None }),
            mount_options: class.mount_options.clone(),
            node_affinity: Some(on_node(&options.node)),
            persistent_volume_reclaim_policy: class.reclaim_policy.clone(),
            storage_class_name: claim.class.clone(),
            volume_mode: Some("Filesystem".to_owned()),
            ..PersistentVolumeSpec::default()
        }),
        status: None,
    }
}

fn path(directory: &Path, name: &str) -> String {
    directory.join(name).to_string_lossy().into_owned()
}

fn on_node(node: &str) -> VolumeNodeAffinity {
    let requirement = NodeSelectorRequirement {
        key: "kubernetes.io/hostname".to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![node.to_owned()]),
    };
    let term = NodeSelectorTerm { match_expressions: Some(vec![requirement]), match_fields: None };
    VolumeNodeAffinity { required: Some(NodeSelector { node_selector_terms: vec![term] }) }
}
