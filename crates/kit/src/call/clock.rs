//! The time by the management cluster's API server, from the `Date` of its answers.
//!
//! Certificates are valid by the clocks of those who check them. A leader whose clock is years ahead would renew every
//! certificate of every tenant, with a beginning that nobody has reached yet; so what is minted is minted only while the
//! two clocks agree (`hangar_plan::flow::Clocks`). Every call tells the difference again, and the lease's come every
//! few seconds.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use hangar_plan::flow::Clocks;
use jiff::{SignedDuration, Timestamp};

use super::CallGate;

/// No answer had a date yet.
const NEVER: i64 = i64::MIN;

/// A gate that remembers how far the server's clock is from ours. Cloning shares it.
#[derive(Clone, Debug)]
pub struct ServerClock(Arc<AtomicI64>);

impl Default for ServerClock {
    fn default() -> Self {
        Self(Arc::new(AtomicI64::new(NEVER)))
    }
}

impl ServerClock {
    /// This moment of ours by both clocks.
    pub fn at(&self, now: Timestamp) -> Clocks {
        let ahead = match self.0.load(Ordering::Relaxed) {
            NEVER => None,
            seconds => Some(SignedDuration::from_secs(seconds)),
        };
        Clocks { ours: now, servers: ahead.and_then(|ahead| now.checked_add(ahead).ok()) }
    }
}

impl CallGate for ServerClock {
    fn told_the_time(&self, time: Timestamp) {
        self.0.store(time.duration_since(Timestamp::now()).as_secs(), Ordering::Relaxed);
    }
}

/// The time of a `Date` header.
pub(super) fn date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::parse(text).ok().map(|zoned| zoned.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_api_servers_write_them() {
        let read = date("Mon, 16 Nov 2026 05:43:05 GMT").map(|time| time.to_string());
        assert_eq!(read.as_deref(), Some("2026-11-16T05:43:05Z"));
        for text in ["", "yesterday", "2026-11-16T05:43:05Z"] {
            assert_eq!(date(text), None, "{text}");
        }
    }

    #[test]
    fn the_difference_is_remembered() {
        let (clock, now) = (ServerClock::default(), Timestamp::now());
        assert_eq!(clock.at(now).disagreement(), None, "nobody has said anything");
        clock.told_the_time(now);
        assert_eq!(clock.at(now).disagreement(), None);
        clock.told_the_time(now - SignedDuration::from_hours(24 * 365));
        assert!(clock.at(now).disagreement().is_some());
    }
}
