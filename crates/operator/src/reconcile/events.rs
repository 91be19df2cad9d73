//! Makes Kubernetes events of the steps that ran in a pass.

use hangar_kit::event::{Event, Recorder, Severity};
use hangar_plan::flow::{Outcome, Ran};
use kube::Resource as _;

use super::{Case, Edge};

/// Tells what was made, deleted or refused.
pub(super) async fn record<E: Edge>(recorder: &Recorder, case: &Case<'_, E>, ran: &[Ran]) {
    let root = &case.seen().value;
    for event in ran.iter().filter_map(event) {
        recorder.record(&root.object_ref(&()), &event).await;
    }
}

/// Kinds of which there are too many to be told one by one, or that say nothing to people.
const UNTOLD: [&str; 5] = ["object", "security-group-rule", "tenant", "management", "bootstrap-token"];

fn event(ran: &Ran) -> Option<Event> {
    let Ran { step, outcome } = ran;
    let is_told = !UNTOLD.contains(&step.kind);
    let (reason, action) = match (step.verb, outcome) {
        (_, Outcome::Stale) => return None,
        ("create", outcome) if is_told && outcome.is_success() => ("SuccessfulCreate", "Create"),
        ("create", _) if is_told => ("FailedCreate", "Create"),
        ("delete", outcome) if is_told && outcome.is_success() => ("SuccessfulDelete", "Delete"),
        ("delete", _) if is_told => ("FailedDelete", "Delete"),
        ("publish-endpoint", outcome) if outcome.is_success() => ("EndpointPublished", "PublishEndpoint"),
        (_, Outcome::Refused(_)) => ("StepRefused", "RunStep"),
        _ => return None,
    };
    let severity = if outcome.is_success() { Severity::Normal } else { Severity::Warning };
    Some(Event { severity, reason, action, note: format!("{} {}: {outcome}", step.kind, step.name) })
}
