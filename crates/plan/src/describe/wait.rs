//! Reads from an object's conditions whether it is ready, and what it waits for.

use hangar_api::conditions::{Actor, Polarity};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::{Verdict, objects::text};
use crate::conditions::shared::readable;
use crate::conditions::{polarity, reason as declared};
use crate::hosted_control_plane::conditions::addons_ready;

/// Conditions that summarise an object, the first that it has.
const SUMMARIES: [&str; 2] = ["Available", "Ready"];

/// Conditions that are not good and no fault, by type and reason: nobody waits for them.
const NO_FAULTS: [(&str, &str); 1] = [(addons_ready::TYPE, addons_ready::NO_NODES.reason().name)];

/// One thing that is waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Waited {
    /// Which condition says so.
    pub condition: String,
    pub reason: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Who must act, where the reason is one of ours; of several the usual one first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
}

impl Waited {
    pub(super) fn missing(kind: &str, name: &str) -> Self {
        Self {
            condition: "Exists".to_owned(),
            reason: "NotFound".to_owned(),
            message: format!("there is no {kind} {name}"),
            since: None,
            who: Some(Actor::ClusterOwner.to_string()),
        }
    }
}

fn conditions(object: &Value) -> impl Iterator<Item = &Value> {
    let newest = object.pointer("/status/conditions").and_then(Value::as_array);
    let beside = object.pointer("/status/v1beta2/conditions").and_then(Value::as_array);
    beside.or(newest).into_iter().flatten()
}

/// The condition of an object that cannot be read. Its other conditions are from before.
fn unreadable(object: &Value) -> Option<&Value> {
    conditions(object).find(|condition| condition["type"] == readable::TYPE && condition["status"] != "True")
}

fn since(condition: &Value) -> Option<Timestamp> {
    text(condition, "/lastTransitionTime").parse().ok()
}

/// How the object is, and since when.
pub(super) fn verdict(object: &Value) -> (Verdict, Option<Timestamp>) {
    let deleted = text(object, "/metadata/deletionTimestamp");
    if !deleted.is_empty() {
        return (Verdict::Deleting, deleted.parse().ok());
    }
    if let Some(unreadable) = unreadable(object) {
        return (Verdict::Unknown, since(unreadable));
    }
    let summary =
        SUMMARIES.iter().find_map(|type_| conditions(object).find(|condition| condition["type"] == *type_));
    match summary {
        Some(summary) => {
            let verdict = match text(summary, "/status") {
                "True" => Verdict::Ready,
                "False" => Verdict::NotReady,
                _ => Verdict::Unknown,
            };
            (verdict, since(summary))
        }
        None => (unsummarised(object), None),
    }
}

/// Kinds of the older contract say it with a flag, sets of machines with their counts.
fn unsummarised(object: &Value) -> Verdict {
    let count = |path: &str| object.pointer(path).and_then(Value::as_i64);
    let is_ready = object.pointer("/status/ready").and_then(Value::as_bool).or_else(|| {
        let ready = count("/status/readyReplicas")?;
        Some(ready >= count("/spec/replicas")?)
    });
    match is_ready {
        Some(true) => Verdict::Ready,
        Some(false) => Verdict::NotReady,
        None => Verdict::Unknown,
    }
}

/// What the object waits for. Its summary is left out where something else says more, and what its children say too.
pub(super) fn waits(object: &Value, verdict: Verdict, has_waiting_children: bool) -> Vec<Waited> {
    let is_summary = |condition: &&Value| SUMMARIES.contains(&text(condition, "/type"));
    let kind = text(object, "/kind");
    if let Some(unreadable) = unreadable(object) {
        return vec![waited(kind, unreadable)];
    }
    let is_raised = |condition: &&Value| polarity(text(condition, "/type")) == Polarity::Negative;
    let raised = conditions(object)
        .filter(is_raised)
        .filter(|condition| condition["status"] == "True" && !text(condition, "/message").is_empty());
    let mut found: Vec<Waited> = raised.map(|condition| waited(kind, condition)).collect();
    if has_waiting_children {
        return found;
    }
    let is_no_fault =
        |condition: &&Value| NO_FAULTS.contains(&(text(condition, "/type"), text(condition, "/reason")));
    let lacking = |condition: &&Value| {
        condition["status"] != "True" && !is_raised(condition) && !is_no_fault(condition)
    };
    let parts: Vec<Waited> = conditions(object)
        .filter(|condition| lacking(condition) && !is_summary(condition))
        .map(|condition| waited(kind, condition))
        .collect();
    if !parts.is_empty() {
        found.extend(parts);
    } else if found.is_empty() && verdict != Verdict::Ready {
        found.extend(
            conditions(object)
                .filter(|condition| lacking(condition))
                .map(|condition| waited(kind, condition)),
        );
    }
    found
}

fn waited(kind: &str, condition: &Value) -> Waited {
    let (type_, reason) = (text(condition, "/type"), text(condition, "/reason"));
    let message = text(condition, "/message");
    let who = declared(kind, type_, reason).map(|reason| reason.who).unwrap_or_default();
    let who: Vec<String> = who.iter().map(ToString::to_string).collect();
    Waited {
        condition: type_.to_owned(),
        reason: reason.to_owned(),
        message: if message.is_empty() { reason } else { message }.to_owned(),
        since: since(condition),
        who: (!who.is_empty()).then(|| who.join(" or ")),
    }
}
