//! Gates: functions that are asked before a call is sent, and told of its answer.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::StatusCode;
use jiff::Timestamp;

use super::Call;
use crate::leadership::Leadership;

/// A call that a gate did not let through, or whose answer it kept. Reaches callers as `kube::Error::Service`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} stopped: {why}")]
pub struct Stopped {
    pub call: String,
    pub why: &'static str,
    /// False when it was never sent: then it had no effect, and there is no answer to wonder about.
    pub was_sent: bool,
}

impl Stopped {
    /// The one behind a client error, if a gate is the reason.
    pub fn of(error: &kube::Error) -> Option<&Self> {
        match error {
            kube::Error::Service(source) => source.downcast_ref(),
            _ => None,
        }
    }
}

/// What came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The server answered; writes are committed if this is a success.
    Status(StatusCode),
    /// The connection failed before an answer.
    Disconnected,
    /// The call's time was over.
    TimedOut,
    /// The server answered with more than is read.
    TooLarge,
    /// The server answered, and others' answers took all the room for it.
    NoRoom,
}

impl Answer {
    /// True when the server answered at all.
    pub fn is_reached(self) -> bool {
        matches!(self, Self::Status(_))
    }

    /// True for an answer with a success status.
    pub fn is_success(self) -> bool {
        matches!(self, Self::Status(status) if status.is_success())
    }
}

/// What happens to the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The caller gets it.
    Deliver,
    /// The caller gets an error instead, as if the connection had died after the server committed.
    Withhold(&'static str),
}

/// Asked about every call of a client. Must not block.
pub trait CallGate: Send + Sync + 'static {
    /// Before it is sent. An error keeps it from being sent.
    fn before(&self, call: &Call) -> Result<(), &'static str> {
        let _ = call;
        Ok(())
    }

    /// After it was answered or failed. For a watch: when it was opened.
    fn after(&self, call: &Call, answer: Answer, took: Duration) -> Delivery {
        let _ = (call, answer, took);
        Delivery::Deliver
    }

    /// The answer asks us to stay away for this long. Called before [`CallGate::after`].
    fn told_to_wait(&self, call: &Call, length: Duration) {
        let _ = (call, length);
    }

    /// The answer says what time it is on the server. Called before [`CallGate::after`].
    fn told_the_time(&self, time: Timestamp) {
        let _ = time;
    }

    /// Something came on a watch that is open.
    fn heard(&self) {}

    /// True when open watches of this client must end too.
    fn is_severed(&self) -> bool {
        false
    }
}

/// Lets a write through only while the lease outlasts it: a call sent by a leader never lands in its successor's term.
pub struct FencingGate<L> {
    leadership: L,
    /// The time limit of a call, plus some for the way.
    needed: Duration,
}

impl<L: Leadership> FencingGate<L> {
    /// Writes need this much remaining lease: the call time limit or more.
    pub fn new(leadership: L, needed: Duration) -> Self {
        Self { leadership, needed }
    }
}

impl<L: Leadership> CallGate for FencingGate<L> {
    fn before(&self, call: &Call) -> Result<(), &'static str> {
        if !call.verb.is_write() {
            return Ok(());
        }
        match self.leadership.remaining() {
            Some(remaining) if remaining >= self.needed => Ok(()),
            Some(_) => Err("the lease ends before the call would"),
            None => Err("not the leader"),
        }
    }
}

/// Counts calls, for tests and reports. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct CallLog {
    calls: Arc<Mutex<Vec<(Call, Answer)>>>,
}

impl CallLog {
    /// All calls answered so far.
    pub fn calls(&self) -> Vec<(Call, Answer)> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The calls since the last time, which are then forgotten.
    pub fn take(&self) -> Vec<Call> {
        let calls = std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner));
        calls.into_iter().map(|(call, _)| call).collect()
    }

    /// How often each kind of call was made.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for (call, _) in self.calls() {
            *counts.entry(format!("{} {}", call.verb.as_str(), call.resource)).or_default() += 1;
        }
        counts
    }
}

impl CallGate for CallLog {
    fn after(&self, call: &Call, answer: Answer, _took: Duration) -> Delivery {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push((call.clone(), answer));
        Delivery::Deliver
    }
}
