//! Which status of a condition is the good one, and how bad the others are.

use super::Status;

/// Which status is good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Polarity {
    /// True is good: `Ready`, `Available`.
    #[default]
    Positive,
    /// False is good: `Deleting`, `Paused`, `RollingOut`.
    Negative,
}

/// How much a condition matters in a merge; the first that occurs decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Something is wrong.
    Issue,
    /// Nobody can tell.
    Unknown,
    /// All is well; the message may still say something.
    Info,
}

impl Priority {
    /// The priority of a status under a polarity.
    pub fn of(status: Status, polarity: Polarity) -> Self {
        match (status, polarity) {
            (Status::Unknown, _) => Self::Unknown,
            (Status::True, Polarity::Positive) | (Status::False, Polarity::Negative) => Self::Info,
            (Status::False, Polarity::Positive) | (Status::True, Polarity::Negative) => Self::Issue,
        }
    }

    /// The status of a merged condition whose worst part has this priority.
    pub fn status(self, polarity: Polarity) -> Status {
        match (self, polarity) {
            (Self::Unknown, _) => Status::Unknown,
            (Self::Info, Polarity::Positive) | (Self::Issue, Polarity::Negative) => Status::True,
            (Self::Issue, Polarity::Positive) | (Self::Info, Polarity::Negative) => Status::False,
        }
    }

    /// The reason of a merged condition of this type: `NotReady`, `ReadyUnknown`, `Ready`; for conditions that ought to
    /// be False `Deleting`, `DeletingUnknown`, `NotDeleting`.
    pub fn reason(self, type_: &str, polarity: Polarity) -> String {
        match self.status(polarity) {
            Status::True => type_.to_owned(),
            Status::False => format!("Not{type_}"),
            Status::Unknown => format!("{type_}Unknown"),
        }
    }
}
