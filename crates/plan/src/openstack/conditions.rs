//! Conditions of the v1beta1 infrastructure kinds, collected before they are written.

use hangar_api::cluster::legacy_condition::LegacyCondition;
use hangar_api::conditions::{Finding, Severity, Status, Waiting, set_severity};
use jiff::Timestamp;

/// One condition, with how bad it is when it does not hold.
#[derive(Clone, Debug)]
pub struct Noted {
    pub finding: Finding,
    /// How bad it is.
    pub severity: Severity,
    /// Whether the object as a whole is ready without it.
    pub is_essential: bool,
}

impl Noted {
    pub fn holds(type_: &str, reason: &str) -> Self {
        Self {
            finding: Finding::loose(type_, Status::True, reason, None),
            severity: Severity::Info,
            is_essential: true,
        }
    }

    /// It does not hold yet, in the normal course of things.
    pub fn waits(type_: &str, reason: &str, waiting: &Waiting) -> Self {
        Self {
            finding: Finding::loose(type_, Status::False, reason, Some(waiting)),
            severity: Severity::Info,
            is_essential: true,
        }
    }

    /// It does not hold; it may go away by itself.
    pub fn warns(type_: &str, reason: &str, waiting: &Waiting) -> Self {
        let finding = Finding::loose(type_, Status::False, reason, Some(waiting));
        Self { finding, severity: Severity::Warning, is_essential: true }
    }

    /// It does not hold; somebody has to step in.
    pub fn fails(type_: &str, reason: &str, waiting: &Waiting) -> Self {
        Self {
            finding: Finding::loose(type_, Status::False, reason, Some(waiting)),
            severity: Severity::Error,
            is_essential: true,
        }
    }

    /// Nobody can tell.
    pub fn unknown(type_: &str, reason: &str, waiting: &Waiting) -> Self {
        let finding = Finding::loose(type_, Status::Unknown, reason, Some(waiting));
        Self { finding, severity: Severity::Warning, is_essential: true }
    }

    /// The same, but the object is ready without it.
    #[must_use]
    pub fn beside(mut self) -> Self {
        self.is_essential = false;
        self
    }

    /// Whether it holds.
    pub fn is_good(&self) -> bool {
        self.finding.status() == Status::True
    }
}

/// Writes the conditions, and `Ready` as the first essential one that does not hold.
pub fn ready_last(conditions: &mut Vec<LegacyCondition>, noted: Vec<Noted>, now: Timestamp) {
    let blocker = noted.iter().find(|noted| noted.is_essential && !noted.is_good()).cloned();
    for Noted { finding, severity, .. } in noted {
        set_severity(conditions, &finding, severity, now);
    }
    let (ready, severity) = match blocker {
        None => (Finding::loose("Ready", Status::True, "Ready", None), Severity::Info),
        Some(blocker) => (blocker.finding.about("Ready"), blocker.severity),
    };
    set_severity(conditions, &ready, severity, now);
}
