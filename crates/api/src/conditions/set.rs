//! The one place that writes conditions, and their transition times.

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::{RoundMode, Timestamp, TimestampRound, Unit},
};

use super::{Finding, HasConditions, order};

/// A message never makes a status too large to be written: the schema's bound.
const MAXIMUM_MESSAGE: usize = 32_768;

/// A condition as a finding makes it of the one before.
///
/// The transition time is `now` if the status differs from the one before, else it stays: a new reason or message is no
/// transition. The observed generation always follows, since the finding is about that generation.
pub fn written(
    previous: Option<&Condition>,
    finding: &Finding,
    observed_generation: Option<i64>,
    now: Timestamp,
) -> Condition {
    let previous = previous.map(|condition| (condition.status.as_str(), condition.last_transition_time.0));
    Condition {
        last_transition_time: Time(transition(previous, finding.status.as_str(), now)),
        type_: finding.type_.to_string(),
        status: finding.status.as_str().to_owned(),
        reason: finding.reason.to_string(),
        message: shortened(finding.message().into_owned(), MAXIMUM_MESSAGE),
        observed_generation,
    }
}

/// Writes a finding into the conditions of an object; returns whether anything changed.
pub fn set(
    object: &mut (impl HasConditions + ?Sized),
    finding: &Finding,
    observed_generation: Option<i64>,
    now: Timestamp,
) -> bool {
    let conditions = object.conditions_mut();
    let index = conditions.iter().position(|condition| condition.type_ == finding.type_);
    let previous = index.map(|index| conditions.swap_remove(index));
    let next = written(previous.as_ref(), finding, observed_generation, now);
    let has_changed = previous.as_ref() != Some(&next);
    conditions.push(next);
    conditions.sort_by(|left, right| order::compare(&left.type_, &right.type_));
    has_changed
}

/// Removes a condition; returns whether it existed.
pub fn remove(object: &mut (impl HasConditions + ?Sized), type_: &str) -> bool {
    let is_there = object.conditions().iter().any(|condition| condition.type_ == type_);
    if is_there {
        object.conditions_mut().retain(|condition| condition.type_ != type_);
    }
    is_there
}

/// When a condition last changed its status. Whole seconds, as they are stored: a finer time would differ from what is
/// read back, and every comparison would see a change.
pub(super) fn transition(previous: Option<(&str, Timestamp)>, status: &str, now: Timestamp) -> Timestamp {
    match previous {
        Some((before, since)) if before == status => since,
        _ => now.round(whole_seconds()).unwrap_or(now),
    }
}

fn whole_seconds() -> TimestampRound {
    TimestampRound::new().smallest(Unit::Second).mode(RoundMode::Floor)
}

/// The text, cut at a character and marked if it is too long.
pub fn shortened(mut text: String, maximum: usize) -> String {
    if text.len() > maximum {
        let end = (0..=maximum - 3).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push_str("...");
        text.shrink_to_fit();
    }
    text
}
