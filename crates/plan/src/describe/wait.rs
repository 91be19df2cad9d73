//! What an object's conditions say.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::{Verdict, objects::text};

/// Conditions that summarise an object, the first that it has.
const SUMMARIES: [&str; 2] = ["Available", "Ready"];

/// Conditions that ought not to be True.
const RAISED: [&str; 7] =
    ["Deleting", "EndpointConflict", "Paused", "Remediating", "RollingOut", "ScalingDown", "ScalingUp"];

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
    /// Who must act, where the words say it.
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
            who: Some("the owner of the cluster".to_owned()),
        }
    }
}

fn conditions(object: &Value) -> impl Iterator<Item = &Value> {
    let newest = object.pointer("/status/conditions").and_then(Value::as_array);
    let beside = object.pointer("/status/v1beta2/conditions").and_then(Value::as_array);
    beside.or(newest).into_iter().flatten()
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

/// What an object waits for, for itself.
pub fn waits_of(object: &Value) -> Vec<Waited> {
    let (verdict, _) = verdict(object);
    waits(object, verdict, false)
}

/// What the object waits for. Its summary is left out where something else says more, and what its children say too.
pub(super) fn waits(object: &Value, verdict: Verdict, has_waiting_children: bool) -> Vec<Waited> {
    let is_summary = |condition: &&Value| SUMMARIES.contains(&text(condition, "/type"));
    let is_raised = |condition: &&Value| RAISED.contains(&text(condition, "/type"));
    let raised = conditions(object)
        .filter(is_raised)
        .filter(|condition| condition["status"] == "True" && !text(condition, "/message").is_empty());
    let mut found: Vec<Waited> = raised.map(waited).collect();
    if has_waiting_children {
        return found;
    }
    let lacking = |condition: &&Value| condition["status"] != "True" && !is_raised(condition);
    let parts: Vec<Waited> = conditions(object)
        .filter(|condition| lacking(condition) && !is_summary(condition))
        .map(waited)
        .collect();
    if !parts.is_empty() {
        found.extend(parts);
    } else if found.is_empty() && verdict != Verdict::Ready {
        found.extend(conditions(object).filter(|condition| lacking(condition)).map(waited));
    }
    found
}

fn waited(condition: &Value) -> Waited {
    let message = text(condition, "/message");
    Waited {
        condition: text(condition, "/type").to_owned(),
        reason: text(condition, "/reason").to_owned(),
        message: if message.is_empty() { text(condition, "/reason") } else { message }.to_owned(),
        since: since(condition),
        who: who(message).map(str::to_owned),
    }
}

/// Conditions of ours end with `(somebody must act)`.
fn who(message: &str) -> Option<&str> {
    let before = message.trim_end().strip_suffix(" must act)")?;
    before.rsplit_once('(').map(|(_, who)| who)
}
