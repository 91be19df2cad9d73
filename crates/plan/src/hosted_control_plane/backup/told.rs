//! What the two conditions about backups say.

use hangar_api::conditions::{Actor, Waiting};
use hangar_api::controlplane::v1alpha1::{EtcdBackup, EtcdBackupFailure, EtcdBackupStatus};

use super::due::Due;
use super::{Origin, Work, failure};
use crate::hosted_control_plane::Draft;
use crate::hosted_control_plane::conditions::{etcd_backed_up, etcd_backup_complete};

/// Whether backups are made when they are due. A failure is told until a backup was made, also while one is tried.
pub(super) fn backed_up(draft: &mut Draft<'_>, status: &EtcdBackupStatus, due: Due, waits: Option<Waiting>) {
    if let Some(failure) = failure(status) {
        return draft.say(failing(failure));
    }
    let is_running = matches!(draft.observed.backup, Work::Running);
    let Some(success) = &status.last_success else {
        let waiting = waits.unwrap_or_else(|| Waiting::new(Actor::Hangar, "the first backup to be made"));
        return draft.say(etcd_backed_up::NONE_YET.waiting(waiting));
    };
    if let Some(why) = &success.retention_failure {
        let finding = etcd_backed_up::NOT_PRUNED.waits("the right to delete objects in the bucket");
        return draft.say(finding.because(why));
    }
    match waits {
        // Whoever asked sees it in the status; only what the schedule wanted is late.
        Some(waiting) if !is_running && due.at.is_some() => draft.say(etcd_backed_up::LATE.waiting(waiting)),
        _ => draft.say(etcd_backed_up::UP_TO_DATE),
    }
}

fn failing(failure: &EtcdBackupFailure) -> hangar_api::conditions::Finding {
    let finding = match Origin::read(&failure.origin) {
        Origin::Secret => etcd_backed_up::SECRET_UNUSABLE.waits("Secrets that can be used"),
        Origin::Namespace => etcd_backed_up::SECRET_UNUSABLE.waits("the namespace to stay"),
        Origin::Store => etcd_backed_up::STORE_FAILING.waits("the store to take a backup"),
        Origin::Etcd | Origin::Hangar => etcd_backed_up::SNAPSHOT_FAILING.waits("the next try"),
    };
    finding.because(&failure.message)
}

/// Whether the last backup alone is enough to begin anew.
pub(super) fn complete(draft: &mut Draft<'_>, backup: &EtcdBackup) {
    let status = draft.status.etcd_backup.as_ref();
    let Some(success) = status.and_then(|status| status.last_success.as_ref()) else {
        return draft.forget(etcd_backup_complete::TYPE);
    };
    if success.has_keys {
        return draft.say(etcd_backup_complete::COMPLETE);
    }
    let lacks = "the last backup is not encrypted, so the authorities, the service account keys and the encryption \
                 configuration are not in it: without copies of them a restore cannot read Secrets, and nodes and users \
                 have to be added anew";
    let finding = if backup.encryption.is_some() {
        etcd_backup_complete::WITHOUT_KEYS.by(Actor::Hangar, "the next backup, which will be encrypted")
    } else {
        etcd_backup_complete::WITHOUT_KEYS.waits("spec.etcd.backup.encryption")
    };
    draft.say(finding.because(lacks));
}
