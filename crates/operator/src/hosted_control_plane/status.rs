//! Writes the status where it differs, and events where something happened.

use hangar_api::conditions::Status;
use hangar_api::controlplane::v1alpha1::{HostedControlPlane, HostedControlPlaneStatus};
use hangar_kit::error::{Error, Result, status_code};
use hangar_kit::event::{Event, Severity};
use hangar_kit::execute::Ran;
use hangar_kit::watch::Kept;
use hangar_plan::flow::Outcome;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::Patch;
use kube::{Api, Resource};
use serde_json::{Value, json};

use super::{ControlPlanes, KIND, run};

/// Conditions whose change of status is worth an event.
const TOLD: [&str; 2] = ["Available", "Paused"];

impl ControlPlanes {
    /// Brings the status to what the plan says. Nothing is sent where nothing differs.
    pub(super) async fn write_status(
        &self,
        root: &Kept<HostedControlPlane>,
        status: &HostedControlPlaneStatus,
    ) -> Result<()> {
        let malformed = |error: serde_json::Error| Error::Malformed {
            what: format!("the status of {}", root.key),
            problem: error.to_string(),
        };
        let before = serde_json::to_value(root.status.clone().unwrap_or_default()).map_err(malformed)?;
        let after = serde_json::to_value(status).map_err(malformed)?;
        let Some(difference) = difference(&before, &after) else {
            return Ok(());
        };
        let patch = json!({ "metadata": { "uid": root.uid }, "status": difference });
        let api: Api<HostedControlPlane> =
            Api::namespaced(self.context.client(), root.key.namespace_or_empty());
        match api.patch_status(&root.key.name, &run::parameters(), &Patch::Merge(&patch)).await {
            Ok(written) => {
                self.context.watches.control_planes().written(written);
                self.tell_transitions(root, status).await;
                Ok(())
            }
            // It is gone, or another has its name: there is nobody to tell.
            Err(error) if matches!(status_code(&error), Some(404 | 409)) => Ok(()),
            Err(error) => Err(Error::api(format!("write the status of {}", root.key), error)),
        }
    }

    async fn tell_transitions(&self, root: &Kept<HostedControlPlane>, after: &HostedControlPlaneStatus) {
        let nothing = HostedControlPlaneStatus::default();
        let before = root.status.as_ref().unwrap_or(&nothing);
        for type_ in TOLD {
            let find = |status: &HostedControlPlaneStatus| {
                status.conditions.iter().find(|condition| condition.type_ == type_).cloned()
            };
            let (was, is) = (find(before), find(after));
            let status = |found: &Option<_>| {
                found.as_ref().map(|found: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
                    Status::parse(&found.status)
                })
            };
            // That a control plane which is being deleted goes away is no news.
            let is_news = status(&was) != status(&is) && !root.is_terminating;
            let Some(now) = is.as_ref().filter(|_| is_news) else {
                continue;
            };
            let Some((severity, reason)) = transition(type_, status(&was), Status::parse(&now.status)) else {
                continue;
            };
            let note = if now.message.is_empty() { now.reason.clone() } else { now.message.clone() };
            let event = Event { severity, reason, action: "Observe", note };
            self.recorder.record(&reference(root), &event).await;
        }
    }

    /// Events about what was done in a pass.
    pub(super) async fn tell_steps(&self, root: &Kept<HostedControlPlane>, ran: &[Ran]) {
        for step in ran {
            let event = match (&step.outcome, step.step.verb, step.step.kind) {
                (Outcome::Done, "publish-endpoint", "control-plane") => Event {
                    severity: Severity::Normal,
                    reason: "EndpointPublished",
                    action: "PublishEndpoint",
                    note: "the address of the API server is known".to_owned(),
                },
                (Outcome::Refused(words), ..) => Event {
                    severity: Severity::Warning,
                    reason: "StepRefused",
                    action: "RunStep",
                    note: format!("{}: {words}", step.step),
                },
                _ => continue,
            };
            self.recorder.record(&reference(root), &event).await;
        }
    }
}

/// What a change of a condition is called, where it is news.
fn transition(type_: &str, was: Option<Status>, is: Status) -> Option<(Severity, &'static str)> {
    match (type_, was, is) {
        ("Available", _, Status::True) => Some((Severity::Normal, "Available")),
        ("Available", Some(Status::True), Status::False) => Some((Severity::Warning, "NotAvailable")),
        ("Paused", _, Status::True) => Some((Severity::Normal, "Paused")),
        ("Paused", Some(Status::True), _) => Some((Severity::Normal, "Resumed")),
        _ => None,
    }
}

fn reference(root: &Kept<HostedControlPlane>) -> ObjectReference {
    ObjectReference {
        api_version: Some(HostedControlPlane::api_version(&()).into_owned()),
        kind: Some(KIND.to_owned()),
        namespace: root.key.namespace.clone(),
        name: Some(root.key.name.clone()),
        uid: Some(root.uid.clone()),
        ..ObjectReference::default()
    }
}

/// A merge patch from one document to another: nothing if they are the same. What is no longer there becomes null.
fn difference(before: &Value, after: &Value) -> Option<Value> {
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return (before != after).then(|| after.clone());
    };
    let changed = after.iter().filter_map(|(name, value)| {
        let present = before.get(name).unwrap_or(&Value::Null);
        Some((name.clone(), difference(present, value)?))
    });
    let removed = before.keys().filter(|name| !after.contains_key(*name));
    let patch: serde_json::Map<String, Value> =
        changed.chain(removed.map(|name| (name.clone(), Value::Null))).collect();
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_documents_need_no_patch() {
        let document = json!({ "a": { "b": [1, { "c": 2 }] } });
        assert_eq!(difference(&document, &document), None);
    }

    #[test]
    fn a_patch_names_what_changed_and_removes_what_is_gone() {
        let before = json!({ "same": 1, "gone": true, "deep": { "kept": 1, "changed": 1, "gone": 1 } });
        let after = json!({ "same": 1, "new": [1], "deep": { "kept": 1, "changed": 2 } });
        assert_eq!(
            difference(&before, &after),
            Some(json!({ "new": [1], "gone": null, "deep": { "changed": 2, "gone": null } }))
        );
    }

    #[test]
    fn only_news_becomes_an_event() {
        assert_eq!(transition("Available", None, Status::False), None, "it has only begun");
        assert!(transition("Available", Some(Status::False), Status::True).is_some());
        assert!(transition("Available", Some(Status::True), Status::False).is_some());
        assert_eq!(transition("Paused", None, Status::False), None);
    }
}
