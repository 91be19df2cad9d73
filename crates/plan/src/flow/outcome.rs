//! What became of a step.

use std::fmt;

/// The result of running one step. Never an error: the next plan sees it and decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<Id = String> {
    /// Something new exists, with the identity the other side gave it.
    Created(Id),
    /// It happened, or had happened before.
    Done,
    /// The other side understood and said no (quota, policy, an eviction that a budget forbids). Its words.
    Refused(String),
    /// The call was sent and no answer came: it may or may not have happened. Only a new observation can tell.
    Lost,
    /// It did not happen.
    Failed(Failure),
}

impl<Id> Outcome<Id> {
    /// True when the step had its effect.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Created(_) | Self::Done)
    }

    /// True when the effect is not known and the world has to be read again.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost)
    }
}

impl<Id: fmt::Display> fmt::Display for Outcome<Id> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Created(id) => write!(formatter, "created {id}"),
            Self::Done => formatter.write_str("done"),
            Self::Refused(words) => write!(formatter, "refused: {words}"),
            Self::Lost => formatter.write_str("answer lost"),
            Self::Failed(failure) => write!(formatter, "failed: {failure}"),
        }
    }
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
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.message, self.category)
    }
}
