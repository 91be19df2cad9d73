//! What a controller found: a condition before it has a time and an object.
//!
//! There is no way to make a False or Unknown finding about something that ought to be True, or a True one about
//! something that ought not to be, without saying who must act and what is waited for.

use std::fmt;

use super::Waiting;

/// Status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody can tell.
    Unknown,
}

impl Status {
    /// The status as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// The status that was written; anything unexpected is unknown.
    pub fn parse(text: &str) -> Self {
        match text {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A condition without its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub(super) type_: String,
    pub(super) status: Status,
    pub(super) reason: String,
    pub(super) message: String,
}

impl Finding {
    /// What ought to hold holds: True.
    pub fn holds(type_: &str, reason: &str) -> Self {
        Self::made(type_, Status::True, reason, String::new())
    }

    /// What ought to hold does not: False, and somebody must act.
    pub fn fails(type_: &str, reason: &str, waiting: &Waiting) -> Self {
        Self::made(type_, Status::False, reason, waiting.to_string())
    }

    /// Nobody can tell: Unknown, and somebody must act.
    pub fn unknown(type_: &str, reason: &str, waiting: &Waiting) -> Self {
        Self::made(type_, Status::Unknown, reason, waiting.to_string())
    }

    /// What ought not to be is not: False, of a condition such as `Deleting` or `Paused`. Nobody has to act.
    pub fn clear(type_: &str, reason: &str) -> Self {
        Self::made(type_, Status::False, reason, String::new())
    }

    /// What ought not to be is: True, of a condition such as `Deleting` or `Paused`, and somebody must act.
    pub fn raised(type_: &str, reason: &str, waiting: &Waiting) -> Self {
        Self::made(type_, Status::True, reason, waiting.to_string())
    }

    /// The same with a remark, for findings that have no message yet.
    #[must_use]
    pub fn remark(mut self, message: impl Into<String>) -> Self {
        if self.message.is_empty() {
            self.message = message.into();
        }
        self
    }

    /// For merging, where actors are already in the messages that are merged.
    pub(super) fn made(type_: &str, status: Status, reason: &str, message: String) -> Self {
        Self { type_: type_.to_owned(), status, reason: reason.to_owned(), message }
    }

    /// Type of the condition.
    pub fn type_(&self) -> &str {
        &self.type_
    }

    /// Status of the condition.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Reason, for programs.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Message, for people.
    pub fn message(&self) -> &str {
        &self.message
    }
}
