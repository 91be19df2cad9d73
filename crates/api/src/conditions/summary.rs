//! Merges several conditions of one object into one.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{Finding, Polarity, Priority, Status, order};

/// A condition that takes part in a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term<'name> {
    /// Type of the condition.
    pub type_: &'name str,
    /// Which status of it is good.
    pub polarity: Polarity,
    /// Whether its absence counts as unknown; otherwise it is left out.
    pub is_required: bool,
}

impl<'name> Term<'name> {
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

/// One condition of type `type_` over the terms: False with the issues if there are any, else Unknown with what is
/// unknown, else True. Each line of the message is one of them, in the order in which conditions are listed.
pub fn summary(
    type_: &'static str,
    terms: &[Term<'_>],
    condition: impl Fn(&str) -> Option<Condition>,
) -> Finding {
    let judged = |term: &Term<'_>| judged(condition(term.type_), *term);
    let mut parts: Vec<_> = terms.iter().filter_map(|term| Some((term.type_, judged(term)?))).collect();
    parts.sort_by(|left, right| order::compare(left.0, right.0));
    let worst = parts.iter().map(|(_, (priority, _))| *priority).min().unwrap_or(Priority::Info);
    let lines: Vec<_> = parts
        .iter()
        .filter(|(_, (priority, message))| *priority == worst && !message.is_empty())
        .map(|(type_, (_, message))| format!("* {type_}: {}", indented(message)))
        .collect();
    let polarity = Polarity::Positive;
    Finding::made(type_, worst.status(polarity), worst.reason(type_, polarity), lines.join("\n"))
}

/// Priority and message of a term; nothing if it is absent and that is fine.
fn judged(condition: Option<Condition>, term: Term<'_>) -> Option<(Priority, String)> {
    let Some(condition) = condition else {
        return term.is_required.then(|| (Priority::Unknown, "not yet reported".to_owned()));
    };
    let priority = Priority::of(Status::parse(&condition.status), term.polarity);
    let message = match (condition.message.is_empty(), priority) {
        // A line without a message would hide which part is meant.
        (true, Priority::Issue | Priority::Unknown) => condition.reason,
        _ => condition.message,
    };
    Some((priority, message))
}

/// Further lines of a message stay below the first.
fn indented(message: &str) -> String {
    message.replace('\n', "\n  ")
}
