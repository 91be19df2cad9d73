//! Merges several conditions of one object into one.

use super::{Finding, HasConditions, Polarity, Priority, Status, get, order};

/// A condition that takes part in a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'name> {
    /// Type of the condition.
    pub type_: &'name str,
    /// Which status of it is good.
    pub polarity: Polarity,
    /// Whether its absence counts as unknown; otherwise it is left out.
    pub is_required: bool,
}

impl<'name> Part<'name> {
    /// A condition that ought to be True, and to be there.
    pub fn positive(type_: &'name str) -> Self {
        Self { type_, polarity: Polarity::Positive, is_required: true }
    }

    /// A condition that ought to be False; its absence is fine.
    pub fn negative(type_: &'name str) -> Self {
        Self { type_, polarity: Polarity::Negative, is_required: false }
    }

    /// The same, but its absence is fine.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.is_required = false;
        self
    }
}

/// One condition of type `type_` over the parts: False with the issues if there are any, else Unknown with what is
/// unknown, else True. Each line of the message is one part, in the order in which conditions are listed.
pub fn summary(object: &(impl HasConditions + ?Sized), type_: &str, parts: &[Part<'_>]) -> Finding {
    let mut parts: Vec<_> = parts.iter().filter_map(|part| judged(object, *part)).collect();
    parts.sort_by(|left, right| order::compare(left.0, right.0));
    let worst = parts.iter().map(|part| part.1).min().unwrap_or(Priority::Info);
    let lines: Vec<_> = parts
        .iter()
        .filter(|(_, priority, message)| *priority == worst && !message.is_empty())
        .map(|(type_, _, message)| format!("* {type_}: {}", indented(message)))
        .collect();
    let polarity = Polarity::Positive;
    Finding::made(type_, worst.status(polarity), &worst.reason(type_, polarity), lines.join("\n"))
}

/// Type, priority and message of a part; nothing if it is absent and that is fine.
fn judged<'name>(
    object: &(impl HasConditions + ?Sized),
    part: Part<'name>,
) -> Option<(&'name str, Priority, String)> {
    let Some(condition) = get(object, part.type_) else {
        return part.is_required.then(|| (part.type_, Priority::Unknown, "not yet reported".to_owned()));
    };
    let priority = Priority::of(Status::parse(&condition.status), part.polarity);
    let message = match (condition.message.is_empty(), priority) {
        // A line without any words would hide which part is meant.
        (true, Priority::Issue | Priority::Unknown) => condition.reason.clone(),
        _ => condition.message.clone(),
    };
    Some((part.type_, priority, message))
}

/// Further lines of a message stay below the first.
fn indented(message: &str) -> String {
    message.replace('\n', "\n  ")
}
