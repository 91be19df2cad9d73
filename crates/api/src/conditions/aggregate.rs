//! Merges the same condition of many objects into one.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{Finding, Polarity, Priority, Status};

/// Different messages that are shown; the rest is counted.
const SHOWN_MESSAGES: usize = 3;
/// Names that are shown per message; the rest is counted.
const SHOWN_NAMES: usize = 3;

/// One object that takes part.
#[derive(Clone, Debug)]
pub struct Source<'object> {
    /// Kind of the object.
    pub kind: &'object str,
    /// Name of the object.
    pub name: &'object str,
    /// Its condition; absent counts as unknown.
    pub condition: Option<&'object Condition>,
}

/// One condition of type `type_` over all sources: bad with the issues if there are any, else Unknown with what is
/// unknown, else good. Objects with the same message share a line: `* Machine a, b, c and 2 more: message`.
pub fn aggregate(type_: &'static str, polarity: Polarity, sources: &[Source<'_>]) -> Finding {
    let priorities: Vec<_> = sources.iter().map(|source| priority(source, polarity)).collect();
    let worst = priorities.iter().copied().min().unwrap_or(Priority::Info);
    let mut groups: BTreeMap<(&str, String), Vec<&str>> = BTreeMap::new();
    for (source, _) in sources.iter().zip(&priorities).filter(|(_, priority)| **priority == worst) {
        let message = message(source, worst);
        if !message.is_empty() {
            groups.entry((source.kind, message)).or_default().push(source.name);
        }
    }
    let is_good = worst == Priority::Info;
    Finding {
        is_good,
        ..Finding::made(type_, worst.status(polarity), worst.reason(type_, polarity), rendered(groups))
    }
}

fn priority(source: &Source<'_>, polarity: Polarity) -> Priority {
    let status = source.condition.map_or(Status::Unknown, |condition| Status::parse(&condition.status));
    Priority::of(status, polarity)
}

fn message(source: &Source<'_>, worst: Priority) -> String {
    match source.condition {
        None => "not yet reported".to_owned(),
        Some(condition) if condition.message.is_empty() && worst != Priority::Info => {
            condition.reason.clone()
        }
        Some(condition) => condition.message.clone(),
    }
}

/// Messages that concern most objects first, then by kind and text.
fn rendered(groups: BTreeMap<(&str, String), Vec<&str>>) -> String {
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by(|left, right| right.1.len().cmp(&left.1.len()).then_with(|| left.0.cmp(&right.0)));
    let hidden: usize = groups.iter().skip(SHOWN_MESSAGES).map(|(_, names)| names.len()).sum();
    let mut lines: Vec<_> = groups
        .into_iter()
        .take(SHOWN_MESSAGES)
        .map(|((kind, message), names)| {
            format!("* {kind} {}: {}", listed(names), message.replace('\n', "\n  "))
        })
        .collect();
    if hidden > 0 {
        lines.push(format!("* {hidden} more with other messages"));
    }
    lines.join("\n")
}

fn listed(mut names: Vec<&str>) -> String {
    names.sort_unstable();
    let hidden = names.len().saturating_sub(SHOWN_NAMES);
    names.truncate(SHOWN_NAMES);
    let shown = names.join(", ");
    if hidden > 0 { format!("{shown} and {hidden} more") } else { shown }
}
