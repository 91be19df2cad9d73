//! The notes of requests whose outcome is not known yet.
//!
//! A cloud may carry out a request long after its caller gave up. So before something is requested that carries the owner
//! id, a note of the request is written on the object; once an answer came, the note is what it was before (the runtime
//! does both, around the call). If none came, or the process ended meanwhile, the note stays, and an object that is
//! deleted is not released until a settling time has passed: what still came would be nobody's.
//!
//! A server has a note of its own, because another one must not even be requested meanwhile ([`super::server`]).

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::flow::{StepId, Write};

/// How long a lost request may still be carried out: three times the longest write to a cloud.
pub const SETTLING: Duration = Duration::from_secs(90);
/// What comes late may be listed before that.
pub(super) const LISTED: Duration = Duration::from_secs(15);

/// On an object of ours: when a server was asked for, from before the call until it is known what became of it.
pub const SERVER_REQUESTED_ANNOTATION: &str = "hangar.cluster.x-k8s.io/server-requested-at";
/// On an object of ours: when something else was asked for, and what.
pub const REQUESTED_ANNOTATION: &str = "hangar.cluster.x-k8s.io/requested-at";

type Annotations = BTreeMap<String, String>;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    Server,
    /// Anything else, by its kind.
    Other(&'static str),
}

impl Request {
    fn annotation(self) -> &'static str {
        match self {
            Self::Server => SERVER_REQUESTED_ANNOTATION,
            Self::Other(_) => REQUESTED_ANNOTATION,
        }
    }

    /// The fields with the note that it is sent now.
    pub fn noted(self, now: Timestamp) -> Value {
        let text = match self {
            Self::Server => now.to_string(),
            Self::Other(kind) => format!("{now} {kind}"),
        };
        self.note(Some(&text))
    }

    /// The fields with the note as it was on an object before.
    pub fn as_before(self, before: Option<&Annotations>) -> Value {
        self.note(before.and_then(|all| all.get(self.annotation())).map(String::as_str))
    }

    fn note(self, text: Option<&str>) -> Value {
        json!({ "metadata": { "annotations": { self.annotation(): text } } })
    }

    /// It is known what became of it.
    pub(super) fn forget(self) -> Write {
        let what = match self {
            Self::Server => "request",
            Self::Other(_) => "creation",
        };
        Write::itself(StepId::new("settle", what, "self"), self.note(None))
    }
}

/// When a server was asked for whose end is not known. What cannot be read was long ago.
pub fn server_requested_at(annotations: Option<&Annotations>) -> Option<Timestamp> {
    let text = annotations?.get(SERVER_REQUESTED_ANNOTATION)?;
    Some(text.parse().unwrap_or(Timestamp::UNIX_EPOCH))
}

/// What else was asked for whose end is not known, and when.
pub(super) fn requested(annotations: Option<&Annotations>) -> Option<(Timestamp, &str)> {
    let (time, what) = annotations?.get(REQUESTED_ANNOTATION)?.split_once(' ').unwrap_or_default();
    Some((time.parse().unwrap_or(Timestamp::UNIX_EPOCH), what))
}

/// How long a request of that time may still be carried out; none when it no longer can. Clocks differ: a time ahead of
/// ours counts like one as far behind.
pub(super) fn left(requested_at: Timestamp, settling: Duration, now: Timestamp) -> Option<Duration> {
    let left = settling.saturating_sub(now.duration_since(requested_at).unsigned_abs());
    (!left.is_zero()).then_some(left)
}

/// What is waited for while it may.
pub(super) fn awaited(what: &str) -> String {
    format!("the {what} that was asked for to be listed, or to be certain not to come: the answer was lost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_pinned_and_read() {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        let fields = Request::Other("router").noted(now);
        let text = "2026-03-01T12:00:00Z router";
        assert_eq!(
            fields,
            json!({"metadata": {"annotations": {"hangar.cluster.x-k8s.io/requested-at": text}}})
        );
        let all: Annotations = serde_json::from_value(fields["metadata"]["annotations"].clone()).unwrap();
        assert_eq!(requested(Some(&all)), Some((now, "router")));
        assert_eq!(
            Request::Other("port").as_before(Some(&all)),
            fields,
            "an older one whose answer was lost"
        );
        assert_eq!(Request::Server.as_before(Some(&all)), Request::Server.note(None));
        for odd in ["", "yesterday", "yesterday evening"] {
            let all = BTreeMap::from([(REQUESTED_ANNOTATION.to_owned(), odd.to_owned())]);
            assert_eq!(requested(Some(&all)).unwrap().0, Timestamp::UNIX_EPOCH, "{odd}");
        }
    }
}
