//! The clock that the end of a term is measured by.
//!
//! Timers follow the monotonic clock, which stands still while a machine is suspended. A leader that wakes up after an hour
//! would believe for seconds that it still leads, while another has taken over; so its term is measured by the clock that
//! goes on meanwhile.

use std::ops::Add;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Time since the machine was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(Duration);

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, later: Duration) -> Self {
        Self(self.0.saturating_add(later))
    }
}

/// The machine's clock, or one that a test sets.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    milliseconds: Option<Arc<AtomicU64>>,
}

impl Clock {
    #[cfg(test)]
    pub(super) fn set_by_hand() -> (Self, Arc<AtomicU64>) {
        let hand = Arc::new(AtomicU64::new(0));
        (Self { milliseconds: Some(Arc::clone(&hand)) }, hand)
    }

    pub(super) fn now(&self) -> Moment {
        Moment(match &self.milliseconds {
            Some(hand) => Duration::from_millis(hand.load(Ordering::SeqCst)),
            None => boot_time(),
        })
    }

    /// How long it is until then; nothing when that is over.
    pub(super) fn until(&self, end: Moment) -> Duration {
        end.0.saturating_sub(self.now().0)
    }
}

fn boot_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let (seconds, nanoseconds) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    // Neither is ever negative on this clock.
    Duration::new(seconds.unwrap_or_default(), nanoseconds.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_clock_that_goes_on_while_the_machine_sleeps() {
        let uptime = || {
            let text = std::fs::read_to_string("/proc/uptime").unwrap();
            Duration::from_secs_f64(text.split_whitespace().next().unwrap().parse().unwrap())
        };
        // The file has hundredths of seconds.
        let (before, now, after) = (uptime(), Clock::default().now().0, uptime());
        assert!(before <= now && now <= after + Duration::from_millis(10), "{before:?} {now:?} {after:?}");
    }
}
