//! Kubernetes events: what happened to an object, for users of `kubectl describe`.
//!
//! An event is identified by its object, type, reason and action; the reason is a stable `PascalCase` word, the note
//! may vary. The same event again within six minutes extends a series instead of making a new object, with at most one
//! call per minute: an object that fails every few seconds must not flood the API server. Recording never fails a
//! reconcile: an event that cannot be written is logged.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        core::v1::ObjectReference,
        events::v1::{Event as EventObject, EventSeries},
    },
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::time::Instant;

/// As long as the API server's own recorder keeps a series open.
const SERIES_LENGTH: Duration = Duration::from_mins(6);
/// One call per series in this time.
const QUIET_LENGTH: Duration = Duration::from_mins(1);
/// The API server refuses longer notes.
const NOTE_BYTES: usize = 1024;

/// How serious it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Normal,
    Warning,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub severity: Severity,
    /// Why, as a stable `PascalCase` word.
    pub reason: &'static str,
    /// What was done or tried, as a stable `PascalCase` word.
    pub action: &'static str,
    /// The details, in a sentence.
    pub note: String,
}

/// Writes events in the name of one controller. Cloning shares it.
#[derive(Clone)]
pub struct Recorder {
    client: Client,
    controller: &'static str,
    instance: String,
    series: Arc<Mutex<BTreeMap<Key, Series>>>,
}

type Key = (String, Severity, &'static str, &'static str);

struct Series {
    name: String,
    count: i32,
    last_sent: Instant,
    last_seen: Instant,
}

enum Next {
    Create(String),
    Extend(String, i32),
    Nothing,
}

impl Recorder {
    /// Events of a controller, written by this process.
    pub fn new(client: Client, controller: &'static str, instance: impl Into<String>) -> Self {
        Self { client, controller, instance: instance.into(), series: Arc::default() }
    }

    /// Writes an event about an object, or extends its series. Returns whether a call was made and worked.
    pub async fn record(&self, about: &ObjectReference, event: &Event) -> bool {
        let key = (identity(about), event.severity, event.reason, event.action);
        // Events about cluster-scoped objects live in the default namespace, by convention.
        let namespace = about.namespace.as_deref().unwrap_or("default");
        let api: Api<EventObject> = Api::namespaced(self.client.clone(), namespace);
        let sent = match self.next(&key, about, Instant::now()) {
            Next::Nothing => return false,
            Next::Create(name) => {
                api.create(&PostParams::default(), &self.object(name, namespace, about, event)).await
            }
            Next::Extend(name, count) => {
                let series = EventSeries { count, last_observed_time: MicroTime(Timestamp::now()) };
                // The API server allows nothing else to change: the note stays that of the first.
                api.patch(&name, &PatchParams::default(), &Patch::Merge(json!({"series": series}))).await
            }
        };
        if let Err(error) = &sent {
            tracing::debug!(controller = self.controller, reason = event.reason, %error, "event not written");
            // It may have expired or never existed: the next one starts afresh.
            self.series().remove(&key);
        }
        sent.is_ok()
    }

    fn series(&self) -> MutexGuard<'_, BTreeMap<Key, Series>> {
        self.series.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides what to send, and counts.
    fn next(&self, key: &Key, about: &ObjectReference, now: Instant) -> Next {
        let mut all = self.series();
        all.retain(|_, series| now.duration_since(series.last_seen) < SERIES_LENGTH);
        if let Some(series) = all.get_mut(key) {
            series.count = series.count.saturating_add(1);
            series.last_seen = now;
            // The second one opens the series at once: it is what tells people that something repeats.
            if series.count > 2 && now.duration_since(series.last_sent) < QUIET_LENGTH {
                return Next::Nothing;
            }
            series.last_sent = now;
            return Next::Extend(series.name.clone(), series.count);
        }
        let name = name_for(about.name.as_deref().unwrap_or(self.controller));
        all.insert(key.clone(), Series { name: name.clone(), count: 1, last_sent: now, last_seen: now });
        Next::Create(name)
    }

    fn object(&self, name: String, namespace: &str, about: &ObjectReference, event: &Event) -> EventObject {
        EventObject {
            metadata: ObjectMeta {
                name: Some(name),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            action: Some(event.action.to_owned()),
            event_time: Some(MicroTime(Timestamp::now())),
            note: Some(shortened(&event.note).to_owned()),
            reason: Some(event.reason.to_owned()),
            regarding: Some(about.clone()),
            reporting_controller: Some(self.controller.to_owned()),
            reporting_instance: Some(self.instance.clone()),
            type_: Some(if event.severity == Severity::Normal { "Normal" } else { "Warning" }.to_owned()),
            ..EventObject::default()
        }
    }
}

/// What an object's series are kept under. References without a uid (nodes, by convention) have their name.
fn identity(about: &ObjectReference) -> String {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    match &about.uid {
        Some(uid) if !uid.is_empty() => uid.clone(),
        _ => format!("{}/{}/{}", text(&about.kind), text(&about.namespace), text(&about.name)),
    }
}

/// A new name for an event about an object. Names end at 253 characters, and each part between dots with a letter or
/// digit.
fn name_for(object: &str) -> String {
    let suffix = uuid::Uuid::new_v4().simple().to_string();
    let object = cut(object, 220).trim_end_matches(['.', '-']);
    format!("{object}.{}", &suffix[..16])
}

/// The note, as long as it may be.
fn shortened(note: &str) -> &str {
    cut(note, NOTE_BYTES)
}

/// The text, cut at a character at or before the limit.
fn cut(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_cut_between_characters() {
        assert_eq!(shortened("short"), "short");
        let long = "ä".repeat(1000);
        let cut = shortened(&long);
        assert_eq!((cut.len(), cut.chars().all(|c| c == 'ä')), (1024, true));
    }

    #[test]
    fn objects_without_a_uid_do_not_share_a_series() {
        let node = |name: &str| ObjectReference {
            kind: Some("Node".to_owned()),
            name: Some(name.to_owned()),
            ..ObjectReference::default()
        };
        assert_ne!(identity(&node("a")), identity(&node("b")));
        let with_uid = ObjectReference { uid: Some("u".to_owned()), ..node("a") };
        assert_eq!(identity(&with_uid), "u");
    }

    #[test]
    fn names_are_valid_wherever_they_are_cut() {
        let long = format!("{}-.tail", "a".repeat(218));
        let name = name_for(&long);
        assert!(name.starts_with(&format!("{}.", "a".repeat(218))), "{name}");
        assert!(name_for("short").starts_with("short."));
    }
}
