//! Decides when the directory of a volume is removed. Pure.

use k8s_openapi::api::core::v1::PersistentVolume;

use super::{FINALIZER, NODE_LABEL};

/// What to do about a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VolumeAction {
    /// It is in use, to be kept, or not ours.
    Nothing,
    /// Remove the directory, then delete the record.
    Reclaim,
    /// Remove the directory, then the finalizer of the record, which is being deleted already.
    Finish,
    /// Remove the finalizer of the record and keep the directory: the policy is to retain.
    LetGo,
}

/// Decides about a volume.
pub(super) fn decide(volume: &PersistentVolume, node: &str) -> VolumeAction {
    let meta = &volume.metadata;
    let has_finalizer = meta.finalizers.iter().flatten().any(|name| name == FINALIZER);
    let is_here =
        meta.labels.as_ref().and_then(|labels| labels.get(NODE_LABEL)).is_some_and(|label| label == node);
    if !has_finalizer || !is_here {
        return VolumeAction::Nothing;
    }
    let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default();
    let policy = volume.spec.as_ref().and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref());
    let is_terminating = meta.deletion_timestamp.is_some();
    match (is_terminating, phase, policy == Some("Delete")) {
        (false, "Released", true) => VolumeAction::Reclaim,
        // Deleting the record of a volume that a claim still has must not take its data.
        (false, _, _) | (true, "Bound", _) => VolumeAction::Nothing,
        (true, _, true) => VolumeAction::Finish,
        (true, _, false) => VolumeAction::LetGo,
    }
}
