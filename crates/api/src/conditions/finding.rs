//! What a controller found: a condition before it has a time and an object.
//!
//! Findings are made from declared reasons ([`super::Good`], [`super::Bad`]), or from other conditions
//! ([`super::mirror()`], [`super::aggregate()`], [`super::summary()`]). A finding that is not good always says who must
//! act and what is waited for.

use std::borrow::Cow;
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
    pub(super) type_: Cow<'static, str>,
    pub(super) status: Status,
    pub(super) reason: Cow<'static, str>,
    pub(super) text: String,
    pub(super) waiting: Option<Waiting>,
    pub(super) is_good: bool,
}

impl Finding {
    /// For merging and mirroring, where actors are already in the messages that are taken over.
    pub(super) fn made(
        type_: impl Into<Cow<'static, str>>,
        status: Status,
        reason: impl Into<Cow<'static, str>>,
        text: String,
    ) -> Self {
        let is_good = status == Status::True;
        Self { type_: type_.into(), status, reason: reason.into(), text, waiting: None, is_good }
    }

    /// The same, because something went wrong.
    #[must_use]
    pub fn because(mut self, detail: impl Into<String>) -> Self {
        self.waiting = self.waiting.map(|waiting| waiting.because(detail));
        self
    }

    /// The same, because something went wrong, where something did.
    #[must_use]
    pub fn because_of(self, detail: Option<impl Into<String>>) -> Self {
        match detail {
            Some(detail) => self.because(detail),
            None => self,
        }
    }

    /// The same of another condition.
    #[must_use]
    pub fn about(mut self, type_: &'static str) -> Self {
        self.type_ = Cow::Borrowed(type_);
        self
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

    /// Message for users.
    pub fn message(&self) -> Cow<'_, str> {
        match &self.waiting {
            Some(waiting) if self.text.is_empty() => waiting.to_string().into(),
            _ => Cow::Borrowed(&self.text),
        }
    }

    /// What is waited for, where something is.
    pub fn waiting(&self) -> Option<&Waiting> {
        self.waiting.as_ref()
    }

    /// Whether it is as it should be.
    pub fn is_good(&self) -> bool {
        self.is_good
    }
}
