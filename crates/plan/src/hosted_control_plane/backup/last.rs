//! The last backup before a control plane's deletion, where it is asked for.
//!
//! It is made when the API servers have ended and before etcd does: nothing is written any more, so everything that was
//! ever acknowledged is in it. The deletion waits until it is on record. It does not wait where backups are suspended,
//! where there never was data, and where the namespace goes with the Secrets of the store.

use hangar_api::conditions::Finding;
use hangar_api::names::DELETE_FOR_MOVE_ANNOTATION;

use super::{BackupStep, Origin, Work, by_owner, due, failure, history, order, record, wanted};
use crate::flow::Wake;
use crate::hosted_control_plane::Draft;
use crate::hosted_control_plane::conditions::deleting;

/// What the deletion waits for, if it does.
pub(crate) fn draft(draft: &mut Draft<'_>) -> Option<Finding> {
    let observed = draft.observed;
    let is_new = record(draft);
    let backup = wanted(observed).filter(|backup| backup.before_deletion == Some(true))?;
    let annotations = observed.control_plane.metadata.annotations.as_ref();
    let is_moved = annotations.is_some_and(|present| present.contains_key(DELETE_FOR_MOVE_ANNOTATION));
    let status = draft.status.etcd_backup.clone().unwrap_or_default();
    let is_made = status.last_success.as_ref().is_some_and(|success| success.before_deletion == Some(true));
    if is_made || is_moved || !observed.is_bootstrapped() {
        return None;
    }
    let failed = failure(&status);
    if failed.is_some_and(|failure| Origin::read(&failure.origin) == Origin::Namespace) {
        draft
            .report
            .decide("go on without a last backup", "the namespace is being deleted, with the store's Secret");
        return None;
    }
    let waiting = by_owner("the last backup, or spec.etcd.backup.suspend to go on without it");
    let mut finding = deleting::LAST_BACKUP.waiting(waiting.clone());
    if let Some(failure) = failed {
        finding = deleting::LAST_BACKUP.waiting(waiting.because(&failure.message));
    }
    let history = history(&status, &order::settings_hash(backup), None);
    let not_before = due::retry(&history, observed.now);
    if let Some(moment) = not_before.filter(|moment| *moment > observed.now) {
        draft.wake_at(Wake::At(moment));
        return Some(finding);
    }
    match order::order(observed, backup, None, true) {
        Ok(order) if observed.backup == Work::None && !is_new => {
            draft
                .report
                .decide(format!("back etcd up from {}", order.through.member), "it is about to be deleted");
            draft.step(BackupStep::Make(Box::new(order)));
            Some(finding)
        }
        Ok(_) => Some(finding),
        Err(waits) => {
            let waiting = by_owner("the last backup, or spec.etcd.backup.suspend to go on without it");
            Some(deleting::LAST_BACKUP.waiting(waiting.because(waits.on.clone())))
        }
    }
}
