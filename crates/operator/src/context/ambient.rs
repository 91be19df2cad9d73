//! Provides the time and new ids. A preview fixes both, so that the same input gives the same bytes.

use jiff::Timestamp;

/// Time and chance, as observations see them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ambient {
    /// As they are.
    Real,
    /// The time stands still, and ids are shown as what they stand for.
    Fixed(Timestamp),
}

impl Ambient {
    pub(crate) fn now(self) -> Timestamp {
        match self {
            Self::Real => Timestamp::now(),
            Self::Fixed(now) => now,
        }
    }

    /// A new owner id for an object.
    pub(crate) fn owner_id(self, of: &str) -> String {
        match self {
            Self::Real => uuid::Uuid::new_v4().to_string(),
            Self::Fixed(_) => format!("<owner id of {of}>"),
        }
    }
}
