//! Writes conditions in the format of the v1beta1 contract: with a severity, without an observed generation.

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

use super::{Finding, Status, order, set};
use crate::cluster::legacy_condition::LegacyCondition;

/// The longest message that the shape's schema allows.
const MAXIMUM_MESSAGE: usize = 10_240;

/// How bad a condition is that is not True.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Somebody has to step in.
    Error,
    /// It may go away by itself.
    Warning,
    /// It is the normal course of things.
    Info,
}

impl Severity {
    /// The severity as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "Error",
            Self::Warning => "Warning",
            Self::Info => "Info",
        }
    }

    /// What is unknown may become known; something that went wrong is an error; the rest is only waited for.
    pub fn of(finding: &Finding) -> Self {
        let has_failed = finding.waiting.as_ref().is_some_and(|waiting| waiting.detail.is_some());
        match (finding.status, has_failed) {
            (Status::Unknown, _) => Self::Warning,
            (_, true) => Self::Error,
            (_, false) => Self::Info,
        }
    }
}

/// Writes a finding in the v1beta1 contract's shape; says whether anything changed. The severity is left out when there is
/// nothing bad about it. The contract has only conditions that ought to be True, so that one which ought to be False and
/// is has no place there.
pub fn set_severity(
    conditions: &mut Vec<LegacyCondition>,
    finding: &Finding,
    severity: Severity,
    now: Timestamp,
) -> bool {
    let index = conditions.iter().position(|condition| condition.r#type == finding.type_);
    let previous = index.map(|index| conditions.swap_remove(index));
    let is_true = finding.status == Status::True;
    let is_clear = finding.is_good && !is_true;
    let next = (!is_clear).then(|| {
        let since =
            previous.as_ref().map(|condition| (condition.status.as_str(), condition.last_transition_time.0));
        let present = |text: String| Some(text).filter(|text| !text.is_empty());
        LegacyCondition {
            last_transition_time: Time(set::transition(since, finding.status.as_str(), now)),
            status: finding.status.as_str().to_owned(),
            severity: (!is_true).then(|| severity.as_str().to_owned()),
            // The contract has reasons only for what is not True.
            reason: present(finding.reason.to_string()).filter(|_| !is_true),
            message: present(set::shortened(finding.message().into_owned(), MAXIMUM_MESSAGE)),
            r#type: finding.type_.to_string(),
        }
    });
    let has_changed = previous != next;
    conditions.extend(next);
    conditions.sort_by(|left, right| order::compare(&left.r#type, &right.r#type));
    has_changed
}
