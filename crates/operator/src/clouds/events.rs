//! Events about what was made and deleted in a cloud.

use hangar_kit::event::{Event, Recorder, Severity};
use hangar_kit::execute::Ran;
use k8s_openapi::api::core::v1::ObjectReference;

/// One event for each object that was made or deleted, or was not. Rules of groups are too many to be told one by one.
pub(crate) async fn record(recorder: &Recorder, about: &ObjectReference, ran: &[Ran]) {
    for Ran { step, outcome } in ran {
        if step.kind == "object" || step.kind == "security-group-rule" {
            continue;
        }
        let (reason, action) = match (step.verb, outcome.is_success()) {
            ("create", true) => ("SuccessfulCreate", "Create"),
            ("create", false) => ("FailedCreate", "Create"),
            ("delete", true) => ("SuccessfulDelete", "Delete"),
            ("delete", false) => ("FailedDelete", "Delete"),
            _ => continue,
        };
        let severity = if outcome.is_success() { Severity::Normal } else { Severity::Warning };
        let note = format!("{} {}: {outcome}", step.kind, step.name);
        recorder.record(about, &Event { severity, reason, action, note }).await;
    }
}
