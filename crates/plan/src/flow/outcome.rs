//! The outcome of a step. Every answer of the management cluster, a tenant or a cloud becomes one.

use std::fmt;
use std::time::Duration;

use super::{Identified, StepId};

/// The result of running one step. Never an error: the next plan sees it and decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Something new exists, with the identity the other side gave it.
    Created(String),
    /// It happened, or had happened before.
    Done,
    /// The other side understood and said no (quota, policy, an eviction that a budget forbids).
    Refused(Refusal),
    /// What the step was planned from has changed. Nothing happened; the world has to be read again.
    Stale,
    /// The call was sent and no answer came: it may or may not have happened. Only a new observation can tell.
    Lost,
    /// It did not happen.
    Failed(Failure),
}

impl Outcome {
    /// A refusal in the words of who refused, without a moment to try again.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::Refused(Refusal { message: message.into(), retry_after: None })
    }

    /// It did not happen, and may work by itself later.
    pub fn failed(category: &'static str, message: impl Into<String>) -> Self {
        Self::Failed(Failure { category, message: message.into(), is_retryable: true, retry_after: None })
    }

    /// True when the step had its effect.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Created(_) | Self::Done)
    }

    /// The identity of what is new, empty where nothing is; none when the step had no effect.
    pub fn made(&self) -> Option<&str> {
        match self {
            Self::Created(id) => Some(id),
            Self::Done => Some(""),
            Self::Refused(_) | Self::Stale | Self::Lost | Self::Failed(_) => None,
        }
    }

    /// The step and the words of who refused it.
    pub fn refusal(&self, step: &impl Identified) -> Option<(StepId, String)> {
        match self {
            Self::Refused(refusal) => Some((step.id(), refusal.message.clone())),
            _ => None,
        }
    }

    /// True when the effect is not known.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost)
    }

    /// True when the observation no longer holds, so that only reading again helps.
    pub fn ends_the_pass(&self) -> bool {
        matches!(self, Self::Stale | Self::Lost)
    }

    /// Why it had no effect, in one line for people; nothing where reading again is all there is to do.
    pub fn trouble(&self) -> Option<&str> {
        match self {
            Self::Refused(refusal) => Some(&refusal.message),
            Self::Failed(failure) => Some(&failure.message),
            Self::Created(_) | Self::Done | Self::Stale | Self::Lost => None,
        }
    }

    /// How long the other side asked us to stay away.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(refusal) => refusal.retry_after,
            Self::Failed(failure) => failure.retry_after,
            Self::Created(_) | Self::Done | Self::Stale | Self::Lost => None,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Created(id) => write!(formatter, "created {id}"),
            Self::Done => formatter.write_str("done"),
            Self::Refused(refusal) => write!(formatter, "refused: {}", refusal.message),
            Self::Stale => formatter.write_str("what it was planned from has changed"),
            Self::Lost => formatter.write_str("answer lost"),
            Self::Failed(failure) => write!(formatter, "failed: {failure}"),
        }
    }
}

/// What the other side said when it refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Its words, the same for the same reason: no request ids, no times.
    pub message: String,
    /// How long it asked us to stay away.
    pub retry_after: Option<Duration>,
}

/// Why a step did not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Stable, one word in `PascalCase`: the event reason and the metric label.
    pub category: &'static str,
    /// One line for people.
    pub message: String,
    /// Whether trying the same again can help.
    pub is_retryable: bool,
    /// How long to stay away at least, where somebody said so.
    pub retry_after: Option<Duration>,
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.message, self.category)
    }
}
