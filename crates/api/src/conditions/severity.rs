//! The shape of the v1beta1 contract: with a severity, without an observed generation.

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

use super::{Finding, Polarity, Priority, order, set};
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
}

/// Writes a finding about something that ought to be True in the v1beta1 contract's shape; says whether anything
/// changed. The severity is left out when there is nothing bad about it.
pub fn set_severity(
    conditions: &mut Vec<LegacyCondition>,
    finding: Finding,
    severity: Severity,
    now: Timestamp,
) -> bool {
    let index = conditions.iter().position(|condition| condition.r#type == finding.type_);
    let previous = index.map(|index| conditions.swap_remove(index));
    let since =
        previous.as_ref().map(|condition| (condition.status.as_str(), condition.last_transition_time.0));
    let is_good = Priority::of(finding.status, Polarity::Positive) == Priority::Info;
    let present = |text: String| Some(text).filter(|text| !text.is_empty());
    let next = LegacyCondition {
        last_transition_time: Time(set::transition(since, finding.status.as_str(), now)),
        status: finding.status.as_str().to_owned(),
        severity: (!is_good).then(|| severity.as_str().to_owned()),
        // The contract has reasons only for what is not True.
        reason: present(finding.reason).filter(|_| !is_good),
        message: present(set::shortened(finding.message, MAXIMUM_MESSAGE)),
        r#type: finding.type_,
    };
    let has_changed = previous.as_ref() != Some(&next);
    conditions.push(next);
    conditions.sort_by(|left, right| order::compare(&left.r#type, &right.r#type));
    has_changed
}
