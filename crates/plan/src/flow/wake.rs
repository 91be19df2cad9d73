//! When to plan again, if no change comes first.

use std::{borrow::Cow, fmt, time::Duration};

use jiff::{SignedDuration, Timestamp};

/// Nothing is wrong, but it is too early to go on. Nothing ever blocks inside a reconcile; it returns this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotYet {
    /// What is waited for, in one line.
    pub reason: Cow<'static, str>,
    /// Look again after this long, if no change wakes us before.
    pub after: Duration,
}

impl NotYet {
    /// Waits for something, looking again after a while.
    pub fn new(reason: impl Into<Cow<'static, str>>, after: Duration) -> Self {
        Self { reason: reason.into(), after }
    }
}

impl fmt::Display for NotYet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "not yet: {}", self.reason)
    }
}

/// When a plan wants to be made again without any change being seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wake {
    /// Only when something changes: the steady state, which costs nothing.
    #[default]
    OnChange,
    /// At a moment known now, such as a certificate's renewal.
    At(Timestamp),
}

impl Wake {
    /// A moment from now. A length that leaves the calendar means never.
    pub fn after(now: Timestamp, length: Duration) -> Self {
        SignedDuration::try_from(length)
            .ok()
            .and_then(|length| now.checked_add(length).ok())
            .map_or(Self::OnChange, Self::At)
    }

    /// The earlier of two: independent concerns each ask for theirs.
    #[must_use]
    pub fn sooner(self, other: Self) -> Self {
        match (self, other) {
            (Self::OnChange, wake) | (wake, Self::OnChange) => wake,
            (Self::At(one), Self::At(two)) => Self::At(one.min(two)),
        }
    }

    /// How long from now, nothing when only a change wakes. What is past is due at once.
    pub fn remaining(self, now: Timestamp) -> Option<Duration> {
        match self {
            Self::OnChange => None,
            Self::At(at) => Some(Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earlier_wake_wins_and_change_is_latest() {
        let now = Timestamp::from_second(1_000).unwrap();
        let early = Wake::after(now, Duration::from_secs(5));
        let late = Wake::after(now, Duration::from_secs(50));
        assert_eq!(early.sooner(late), early);
        assert_eq!(Wake::OnChange.sooner(late), late);
        assert_eq!(early.remaining(now), Some(Duration::from_secs(5)));
        assert_eq!(Wake::At(Timestamp::UNIX_EPOCH).remaining(now), Some(Duration::ZERO));
        assert_eq!(Wake::after(now, Duration::MAX), Wake::OnChange);
    }
}
