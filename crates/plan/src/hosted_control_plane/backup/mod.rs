//! Backups of etcd: when one is due, from which member, and what is told about it.
//!
//! A backup takes minutes, so it runs beside the passes. The plan orders it, the edge makes it, and a later plan finds its
//! end in the observation and writes it into the status. What is not written did not count: after a crash the same order
//! follows from the same status, and the backup is made again. What it had begun is removed by the next one.
//!
//! Nothing else waits for a backup, except that etcd's members are not restarted meanwhile and no change of them begins,
//! and that a deletion waits for the last one where that is asked for. A store that fails is told in a condition and tried again, ever more rarely.

mod due;
mod last;
mod order;
mod schedule;
mod told;

use hangar_api::conditions::Waiting;
use hangar_api::controlplane::v1alpha1::{
    EtcdBackup, EtcdBackupFailure, EtcdBackupStatus, EtcdBackupSuccess, HostedControlPlaneSettings,
    HostedControlPlaneStatus,
};
use hangar_api::names::BACKUP_REQUESTED_ANNOTATION;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::conditions::{etcd_backed_up, etcd_backup_complete};
use super::validate::Validated;
use super::{Draft, Observed};
use crate::admission::FieldError;
use crate::flow::Wake;
use due::{Failed, History};
pub(super) use last::draft as last;
pub use order::{BackupStep, Order};
pub use schedule::Schedule;

/// How much of what a store or a member said is repeated.
const LONGEST_MESSAGE: usize = 300;
/// A request is a token, and part of the status.
const LONGEST_REQUEST: usize = 128;

/// What there is of the backup that [`Order::identity`] names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Work {
    /// Nothing was begun.
    #[default]
    None,
    Running,
    Made(Box<Made>),
    Failed(Box<Failure>),
}

/// A backup that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Its name in the bucket.
    pub id: String,
    pub began: Timestamp,
    pub seconds: u64,
    pub size: u64,
    pub stored_size: u64,
    pub revision: u64,
    pub is_encrypted: bool,
    pub has_keys: bool,
    /// The request that it was made for.
    pub request: Option<String>,
    pub is_last: bool,
    /// Why older ones could not be deleted.
    pub retention_failure: Option<String>,
}

/// Whose failure it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A Secret is missing, or what is in it cannot be used.
    Secret,
    Store,
    Etcd,
    /// The namespace is being deleted, and the Secrets with it.
    Namespace,
    Hangar,
}

impl Origin {
    const ALL: [Self; 5] = [Self::Secret, Self::Store, Self::Etcd, Self::Namespace, Self::Hangar];

    fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "Secret",
            Self::Store => "Store",
            Self::Etcd => "Etcd",
            Self::Namespace => "Namespace",
            Self::Hangar => "Hangar",
        }
    }

    fn read(text: &str) -> Self {
        Self::ALL.into_iter().find(|origin| origin.as_str() == text).unwrap_or(Self::Hangar)
    }
}

/// A try that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub at: Timestamp,
    pub origin: Origin,
    /// One word in `PascalCase`.
    pub reason: String,
    pub message: String,
    /// The request that it was tried for.
    pub request: Option<String>,
    /// [`Order::settings_hash`] of what was tried, where that is known.
    pub settings: Option<String>,
}

/// The settings, where backups are asked for at all.
fn settings(observed: &Observed) -> Option<&EtcdBackup> {
    observed.control_plane.spec.settings.etcd.as_ref()?.backup.as_ref()
}

/// The same, unless they are suspended.
fn wanted(observed: &Observed) -> Option<&EtcdBackup> {
    settings(observed).filter(|backup| backup.suspend != Some(true))
}

/// What users asked for and did not get yet.
fn request(observed: &Observed, status: &HostedControlPlaneStatus) -> Option<String> {
    let annotations = observed.control_plane.metadata.annotations.as_ref()?;
    let asked: String = annotations.get(BACKUP_REQUESTED_ANNOTATION)?.chars().take(LONGEST_REQUEST).collect();
    let answered = status.etcd_backup.as_ref().and_then(|backup| backup.last_request.as_ref());
    (!asked.is_empty() && answered != Some(&asked)).then_some(asked)
}

fn history(backup: &EtcdBackupStatus, settings: &str, request: Option<&String>) -> History {
    let success = backup.last_success.as_ref().map(|success| success.time.0);
    let failure = failure(backup).map(|failure| Failed {
        at: failure.time.0,
        attempts: u32::try_from(failure.attempts).unwrap_or(1),
        is_same: failure.settings.as_deref().is_none_or(|tried| {
            tried == settings && (request.is_none() || failure.request.as_ref() == request)
        }),
    });
    History { success, failure }
}

/// The last failure, if no backup was made since. Times do not tell: a status has seconds, and both may be in one.
fn failure(backup: &EtcdBackupStatus) -> Option<&EtcdBackupFailure> {
    backup.last_failure.as_ref().filter(|failure| failure.attempts > 0)
}

/// How many have failed since the last backup that was made.
pub fn failures(backup: &EtcdBackupStatus) -> i32 {
    failure(backup).map_or(0, |failure| failure.attempts)
}

/// Writes down what became of the backup that was ordered. The work is forgotten when another is begun.
fn record(draft: &mut Draft<'_>) -> bool {
    let mut backup = draft.status.etcd_backup.clone().unwrap_or_default();
    match &draft.observed.backup {
        Work::None | Work::Running => return false,
        Work::Made(made) => {
            draft.report.decide(format!("record backup {}", made.id), "it is complete in the bucket");
            backup.last_request = made.request.clone().or(backup.last_request);
            backup.last_success = Some(success(made));
            if let Some(failure) = &mut backup.last_failure {
                failure.attempts = 0;
            }
            draft.status.etcd_last_backup_time = Some(Time(made.began));
        }
        Work::Failed(failed) => {
            draft.report.decide("record that a backup failed", failed.message.clone());
            let before = failures(&backup);
            backup.last_failure = Some(EtcdBackupFailure {
                time: Time(seconds(failed.at)),
                reason: failed.reason.clone(),
                message: failed.message.chars().take(LONGEST_MESSAGE).collect(),
                attempts: before.saturating_add(1),
                origin: failed.origin.as_str().to_owned(),
                settings: failed.settings.clone(),
                request: failed.request.clone(),
            });
        }
    }
    draft.status.etcd_backup = Some(backup);
    // The next one begins when this is written.
    draft.again(std::time::Duration::from_secs(1));
    true
}

fn success(made: &Made) -> EtcdBackupSuccess {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let shortened = |text: &String| text.chars().take(LONGEST_MESSAGE).collect();
    EtcdBackupSuccess {
        id: made.id.clone(),
        time: Time(made.began),
        duration_seconds: number(made.seconds),
        size: number(made.size),
        stored_size: number(made.stored_size),
        revision: number(made.revision),
        encrypted: made.is_encrypted,
        has_keys: made.has_keys,
        before_deletion: made.is_last.then_some(true),
        retention_failure: made.retention_failure.as_ref().map(shortened),
    }
}

/// As a status has it.
fn seconds(moment: Timestamp) -> Timestamp {
    Timestamp::from_second(moment.as_second()).unwrap_or(moment)
}

/// What other procedures wait for while a backup is made. How long it takes is limited.
pub(super) const END: &str = "the backup that is being made to end";

/// Whether a backup is being made: no member is restarted, added or removed then.
pub(super) fn is_running(observed: &Observed) -> bool {
    observed.backup == Work::Running
}

pub(super) fn draft(draft: &mut Draft<'_>, _: &Validated<'_>) {
    let observed = draft.observed;
    let is_new = record(draft);
    let Some(backup) = settings(observed) else {
        draft.status.etcd_next_backup_time = None;
        draft.forget(etcd_backed_up::TYPE);
        return draft.forget(etcd_backup_complete::TYPE);
    };
    told::complete(draft, backup);
    if wanted(observed).is_none() {
        if is_running(observed) {
            draft.report.decide("stop the backup that is being made", "backups are suspended");
            draft.step(BackupStep::Stop);
        }
        draft.status.etcd_next_backup_time = None;
        return draft.say(etcd_backed_up::SUSPENDED.waits("spec.etcd.backup.suspend to be removed"));
    }
    let schedule = match Schedule::parse(&backup.schedule, &order::of(observed)) {
        Ok(schedule) => schedule,
        Err(why) => {
            draft.status.etcd_next_backup_time = None;
            let finding = etcd_backed_up::INVALID_SCHEDULE.waits("a schedule that can be read");
            return draft.say(finding.because(format!("spec.etcd.backup.schedule: {why}")));
        }
    };
    let request = request(observed, &draft.status);
    let status = draft.status.etcd_backup.clone().unwrap_or_default();
    let history = history(&status, &order::settings_hash(backup), request.as_ref());
    let due = due::due(&schedule, &history, request.is_some(), observed.now);
    let scheduled = due::due(&schedule, &history, false, observed.now);
    draft.status.etcd_next_backup_time = scheduled.at.map(Time);
    let mut waits = None;
    if due.is_now(observed.now) {
        match order::order(observed, backup, request, false) {
            Ok(order) if observed.backup == Work::None && !is_new => {
                draft.report.decide(format!("back etcd up from {}", order.through.member), "a backup is due");
                draft.step(BackupStep::Make(Box::new(order)));
            }
            Ok(_) => {}
            Err(waiting) => waits = Some(waiting),
        }
    } else if let Some(next) = due.next() {
        draft.wake_at(Wake::At(next));
    }
    told::backed_up(draft, &status, due, waits);
}

/// What is wrong with the settings: asked at admission. What was stored before has a condition, and stops nothing else.
pub(crate) fn errors(settings: &HostedControlPlaneSettings) -> Vec<FieldError> {
    let Some(backup) = settings.etcd.as_ref().and_then(|etcd| etcd.backup.as_ref()) else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    let at = |field: &str| format!("spec.etcd.backup.{field}");
    if let Err(why) = Schedule::parse(&backup.schedule, "") {
        errors.push(FieldError::invalid(at("schedule"), backup.schedule.as_str(), why));
    }
    let encryption =
        backup.encryption.as_ref().map(|encryption| ("encryption.secretName", &encryption.secret_name));
    for (field, name) in [("secret.name", &backup.secret.name)].into_iter().chain(encryption) {
        let is_fine = |part: &str| {
            let is_edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
            is_edge(part.as_bytes().first()) && is_edge(part.as_bytes().last())
        };
        let is_letter =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
        if name.len() > 253 || !name.bytes().all(is_letter) || !name.split('.').all(is_fine) {
            errors.push(FieldError::invalid(at(field), name.as_str(), "it must be the name of a Secret"));
        }
    }
    errors
}

/// For steps that are ordered again and again: an edit of these is another order.
fn hashed(backup: &EtcdBackup) -> String {
    let EtcdBackup { secret, retention, encryption, schedule: _, before_deletion: _, suspend: _ } = backup;
    crate::hash::value(&json!([secret, retention, encryption]))
}

/// Nothing is wrong with etcd or Hangar: only somebody who can read the message can go on.
fn by_owner(on: impl Into<String>) -> Waiting {
    Waiting::new(hangar_api::conditions::Actor::ClusterOwner, on.into())
}
