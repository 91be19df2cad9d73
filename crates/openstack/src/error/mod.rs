//! Errors, distinguished by what a caller does about them.
//!
//! Errors are plain data and can be cloned: one failed login is the answer for all callers that waited for it. The
//! texts of services are kept, without the secrets of the request they answer.

mod refusal;

use std::time::Duration;

pub(crate) use refusal::read as read_refusal;
pub use refusal::{Refusal, RefusalKind};

use crate::{Call, ConfigError, Service};

/// Why a call did not give what was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The credentials cannot be used as they are.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The catalogue has no such service for this region and interface.
    #[error("the catalogue has no {interface} endpoint of {service} in region {region:?}; it has {known}")]
    NoEndpoint {
        service: Service,
        /// In which region; empty for any.
        region: String,
        /// For whom: `public`, `internal`, `admin`.
        interface: &'static str,
        /// What the catalogue has instead.
        known: String,
    },
    /// The service answered, and not with success.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// Nothing was sent: no connection.
    #[error("{call}: not sent: {why}")]
    Unreached { call: Call, why: String },
    /// Sent, and no answer came.
    #[error("{call}: the answer was lost: {why}")]
    Lost { call: Call, why: String },
    /// No answer within the time limit. The request may have been sent.
    #[error("{call}: no answer within {limit:?}")]
    TimedOut { call: Call, limit: Duration },
    /// Nothing was sent: after this answer to an earlier call the session waits. It reads as that answer did, so that
    /// the text that users see stays the same from try to try.
    #[error("{cause}")]
    Paused {
        /// The answer, as if it had been given to this call.
        cause: Box<Self>,
        /// How much longer the session waits.
        retry_after: Duration,
    },
    /// A gate kept it from being sent.
    #[error("{call} stopped: {why}")]
    Stopped { call: Call, why: &'static str },
    /// The service answered with success, and the answer cannot be parsed.
    #[error("{call}: unexpected answer: {why}")]
    Malformed {
        call: Call,
        /// What is wrong with it.
        why: String,
    },
}

impl Error {
    /// The refusal, if the service answered.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Paused { cause, .. } => cause.refusal(),
            _ => None,
        }
    }

    /// The call it is about, if it is about one.
    pub fn call(&self) -> Option<&Call> {
        match self {
            Self::Config(_) | Self::NoEndpoint { .. } => None,
            Self::Refused(refusal) => Some(&refusal.call),
            Self::Paused { cause, .. } => cause.call(),
            Self::Unreached { call, .. }
            | Self::Lost { call, .. }
            | Self::TimedOut { call, .. }
            | Self::Stopped { call, .. }
            | Self::Malformed { call, .. } => Some(call),
        }
    }

    /// The id under which the cloud's operator finds the call in the logs. It is new with every try, so it is in no text.
    pub fn request_id(&self) -> Option<&str> {
        match self {
            Self::Refused(refusal) => refusal.request_id.as_deref(),
            _ => None,
        }
    }

    /// The error that another call gets because of this one.
    pub(crate) fn paused(&self, about: &Call, retry_after: Duration) -> Self {
        let mut cause = self.clone();
        match &mut cause {
            Self::Config(_) | Self::NoEndpoint { .. } | Self::Paused { .. } => {}
            Self::Refused(refusal) => refusal.call = about.clone(),
            Self::Unreached { call, .. }
            | Self::Lost { call, .. }
            | Self::TimedOut { call, .. }
            | Self::Stopped { call, .. }
            | Self::Malformed { call, .. } => *call = about.clone(),
        }
        Self::Paused { cause: Box::new(cause), retry_after }
    }

    fn is_refused_as(&self, kind: RefusalKind) -> bool {
        self.refusal().is_some_and(|refusal| refusal.kind == kind)
    }

    /// The call names something that does not exist.
    pub fn is_not_found(&self) -> bool {
        self.is_refused_as(RefusalKind::NotFound)
    }

    /// The state of things does not allow it now: in use, or already there.
    pub fn is_conflict(&self) -> bool {
        self.is_refused_as(RefusalKind::Conflict)
    }

    /// A quota is used up.
    pub fn is_quota(&self) -> bool {
        self.is_refused_as(RefusalKind::Quota)
    }

    /// The credentials were not accepted.
    pub fn is_unauthorized(&self) -> bool {
        self.is_refused_as(RefusalKind::Unauthorized)
    }

    /// True when a write may have happened although its answer is not known. Only reading tells.
    ///
    /// 502 and 504 are a proxy's statuses for a lost answer, and a 500 can come after the service had begun. Never for
    /// a call that was not sent: stopped by a gate, paused, without a connection or without a login.
    pub fn is_lost(&self) -> bool {
        let (call, is_open) = match self {
            Self::Lost { call, .. } | Self::TimedOut { call, .. } | Self::Malformed { call, .. } => {
                (call, true)
            }
            Self::Refused(refusal) => (&refusal.call, matches!(refusal.status, 500 | 502 | 504)),
            _ => return false,
        };
        is_open && call.verb.is_write()
    }

    /// True when the service understood and said no: quota, policy, conflict, invalid input.
    pub fn is_refused(&self) -> bool {
        self.refusal().is_some_and(|refusal| !refusal.kind.is_transient())
    }

    /// True when the same call may succeed later without an action of a user.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Config(_) | Self::NoEndpoint { .. } | Self::Malformed { .. } => false,
            Self::Refused(refusal) => refusal.kind.is_transient(),
            Self::Paused { cause, .. } => cause.is_retryable(),
            Self::Unreached { .. } | Self::Lost { .. } | Self::TimedOut { .. } | Self::Stopped { .. } => true,
        }
    }

    /// True when a person has to change something: credentials, input, quota, policy.
    pub fn is_user_fault(&self) -> bool {
        match self {
            Self::Config(_) | Self::NoEndpoint { .. } => true,
            Self::Refused(refusal) => !refusal.kind.is_transient() && refusal.kind != RefusalKind::Conflict,
            Self::Paused { cause, .. } => cause.is_user_fault(),
            _ => false,
        }
    }

    /// How long the cloud is to be left alone: as the service asked, or as long as the session waits. Reads and writes.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(refusal) => refusal.retry_after,
            Self::Paused { retry_after, .. } => Some(*retry_after),
            _ => None,
        }
    }

    /// Stable, one word in `PascalCase`: the event reason and the metric label.
    pub fn category(&self) -> &'static str {
        match self {
            Self::Config(_) => "InvalidCloudsYaml",
            Self::NoEndpoint { .. } => "NoEndpoint",
            Self::Refused(refusal) => refusal.kind.category(),
            Self::Paused { cause, .. } => cause.category(),
            Self::Unreached { .. } => "CloudUnreachable",
            Self::Lost { .. } => "AnswerLost",
            Self::TimedOut { .. } => "CloudTimeout",
            Self::Stopped { .. } => "Stopped",
            Self::Malformed { .. } => "UnexpectedAnswer",
        }
    }
}
