//! The result of a read.
//!
//! There are four results, because three are too few: a failed or stale read says nothing about existence, and
//! duplicates are a state that a plan has to handle (a create whose answer was lost may have happened twice).

use std::fmt;

use hangar_api::conditions::shortened;

/// Why a read says nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unknown {
    /// One line for people: which source, and what is wrong with it.
    pub why: String,
}

/// Bytes of a reason.
const REASON_LIMIT: usize = 2 << 10;

impl Unknown {
    /// A reason in one line. It may be somebody else's text, so it is kept no longer than a line.
    pub fn new(why: impl Into<String>) -> Self {
        Self { why: shortened(why.into(), REASON_LIMIT) }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.why)
    }
}

/// The result of looking for something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read<T> {
    /// The read failed or its source is stale: nothing may be concluded, created or deleted.
    Unknown(Unknown),
    /// It was looked for, successfully, and does not exist.
    Absent,
    One(T),
    /// More than one, at least two. Order is that of the source and stable.
    Many(Vec<T>),
}

impl<T> Default for Read<T> {
    fn default() -> Self {
        Self::unknown("not read")
    }
}

impl<T> Read<T> {
    /// A read that says nothing, with its reason.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown(Unknown::new(why))
    }

    /// Everything a successful search found.
    pub fn found(items: impl IntoIterator<Item = T>) -> Self {
        let mut items = items.into_iter();
        match (items.next(), items.next()) {
            (None, _) => Self::Absent,
            (Some(one), None) => Self::One(one),
            (Some(first), Some(second)) => Self::Many([first, second].into_iter().chain(items).collect()),
        }
    }

    /// True for [`Read::Absent`] alone: a failed read is not an absence.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// True when nothing may be concluded.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown(_))
    }

    /// All items of a successful read, or why there are none to speak of.
    pub fn known(self) -> Result<Vec<T>, Unknown> {
        match self {
            Self::Unknown(unknown) => Err(unknown),
            Self::Absent => Ok(Vec::new()),
            Self::One(one) => Ok(vec![one]),
            Self::Many(many) => Ok(many),
        }
    }

    /// The items seen, none when unknown. For reports and status only: decisions must distinguish.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        match self {
            Self::Unknown(_) | Self::Absent => [].iter(),
            Self::One(one) => std::slice::from_ref(one).iter(),
            Self::Many(many) => many.iter(),
        }
    }

    /// The items seen, to be changed: folding a step's outcome.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        match self {
            Self::Unknown(_) | Self::Absent => [].iter_mut(),
            Self::One(one) => std::slice::from_mut(one).iter_mut(),
            Self::Many(many) => many.iter_mut(),
        }
    }

    /// Adds an item that was made. What is unknown stays unknown.
    pub fn add(&mut self, item: T) {
        *self = match std::mem::replace(self, Self::Absent) {
            Self::Unknown(unknown) => Self::Unknown(unknown),
            known => Self::found(known.known().unwrap_or_default().into_iter().chain([item])),
        };
    }

    /// Takes away the items that do not satisfy a claim.
    pub fn retain(&mut self, claim: impl FnMut(&T) -> bool) {
        *self = std::mem::replace(self, Self::Absent).filter(claim);
    }

    /// The same answer about something derived from each item.
    pub fn map<U>(self, mut convert: impl FnMut(T) -> U) -> Read<U> {
        match self {
            Self::Unknown(unknown) => Read::Unknown(unknown),
            Self::Absent => Read::Absent,
            Self::One(one) => Read::One(convert(one)),
            Self::Many(many) => Read::Many(many.into_iter().map(convert).collect()),
        }
    }

    /// A view by reference.
    pub fn as_ref(&self) -> Read<&T> {
        match self {
            Self::Unknown(unknown) => Read::Unknown(unknown.clone()),
            Self::Absent => Read::Absent,
            Self::One(one) => Read::One(one),
            Self::Many(many) => Read::Many(many.iter().collect()),
        }
    }

    /// The items that satisfy a claim. Filtering what is unknown stays unknown.
    #[must_use]
    pub fn filter(self, mut claim: impl FnMut(&T) -> bool) -> Self {
        match self {
            Self::Unknown(unknown) => Self::Unknown(unknown),
            Self::Absent => Self::Absent,
            Self::One(one) => Self::found(Some(one).filter(|one| claim(one))),
            Self::Many(many) => Self::found(many.into_iter().filter(|item| claim(item))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_found_decides_the_answer() {
        assert_eq!(Read::<u8>::found([]), Read::Absent);
        assert_eq!(Read::found([1]), Read::One(1));
        assert_eq!(Read::found([1, 2, 3]), Read::Many(vec![1, 2, 3]));
    }

    #[test]
    fn unknown_never_becomes_absent() {
        let unknown = Read::<u8>::unknown("watch not synced");
        assert!(!unknown.is_absent());
        assert!(unknown.clone().filter(|_| false).is_unknown());
        assert!(unknown.clone().map(u16::from).is_unknown());
        assert_eq!(unknown.known(), Err(Unknown::new("watch not synced")));
    }

    #[test]
    fn filtering_renormalises_the_count() {
        assert_eq!(Read::Many(vec![1, 2, 3]).filter(|n| *n > 2), Read::One(3));
        assert_eq!(Read::Many(vec![1, 2]).filter(|n| *n > 2), Read::Absent);
        assert_eq!(Read::One(1).map(|n| n * 2), Read::One(2));
        assert_eq!(Read::Many(vec![1, 2]).as_ref().map(|n| n + 1), Read::Many(vec![2, 3]));
    }
}
