//! When the next backup is due.
//!
//! - The first one is due at once.
//! - After that the schedule decides, from the last backup that was made. What it missed is made up for once, however
//!   often it was missed.
//! - A try that failed is repeated after a minute, then after twice as long each time, up to an hour; at once for another
//!   specification, and for a request that was not tried yet.
//! - A request (an annotation) is due at once until a backup was made for it.

use jiff::{SignedDuration, Timestamp};

use super::Schedule;

const FIRST_WAIT: SignedDuration = SignedDuration::from_mins(1);
const LONGEST_WAIT: SignedDuration = SignedDuration::from_hours(1);
/// A backup from the future is one of a clock that was wrong. It must not end all backups until then.
const TOLERANCE: SignedDuration = SignedDuration::from_mins(5);

/// What is known of earlier backups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct History {
    /// When the last backup was begun that was made.
    pub(super) success: Option<Timestamp>,
    /// The last try, if it failed after that.
    pub(super) failure: Option<Failed>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failed {
    pub(super) at: Timestamp,
    /// How many since the last that was made.
    pub(super) attempts: u32,
    /// Whether it was of the present specification, and of the request if there is one.
    pub(super) is_same: bool,
}

/// When a backup is due, and when one is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    /// Nothing where it is due since ever.
    pub(super) at: Option<Timestamp>,
    /// Not before this.
    pub(super) not_before: Option<Timestamp>,
}

impl Due {
    pub(super) fn is_now(&self, now: Timestamp) -> bool {
        self.next().is_none_or(|moment| moment <= now)
    }

    /// When there is something to do.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.at.max(self.not_before)
    }
}

/// When the next one is due. `is_asked` says whether something asks for one besides the schedule.
pub(super) fn due(schedule: &Schedule, history: &History, is_asked: bool, now: Timestamp) -> Due {
    let success = history.success.filter(|success| success.duration_since(now) <= TOLERANCE);
    let at = success.filter(|_| !is_asked).and_then(|success| schedule.next_after(success));
    Due { at, not_before: retry(history, now) }
}

/// Until when a try that failed is not repeated.
pub(super) fn retry(history: &History, now: Timestamp) -> Option<Timestamp> {
    let failed = history.failure.as_ref().filter(|failed| failed.is_same)?;
    // Neither is this believed when it is from the future.
    let at = failed.at.min(now.checked_add(TOLERANCE).unwrap_or(now));
    at.checked_add(wait(failed.attempts)).ok()
}

fn wait(attempts: u32) -> SignedDuration {
    let doubled = 1_i32.checked_shl(attempts.saturating_sub(1).min(10)).unwrap_or(i32::MAX);
    FIRST_WAIT.checked_mul(doubled).unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn daily() -> Schedule {
        Schedule::parse("0 3 * * *", "").unwrap()
    }

    fn after(success: &str, failure: Option<(&str, u32, bool)>) -> History {
        let failure = failure.map(|(moment, attempts, is_same)| Failed { at: at(moment), attempts, is_same });
        History { success: Some(at(success)), failure }
    }

    fn next(history: &History, is_asked: bool, now: &str) -> Option<String> {
        due(&daily(), history, is_asked, at(now)).next().map(|moment| moment.to_string())
    }

    #[test]
    fn the_first_is_due_at_once_and_the_rest_by_the_schedule() {
        let now = "2027-01-01T10:00:00Z";
        assert_eq!(next(&History::default(), false, now), None);
        for (success, expected) in [
            ("2027-01-01T02:59:59Z", "2027-01-01T03:00:00Z"),
            ("2027-01-01T03:00:00Z", "2027-01-02T03:00:00Z"),
            ("2026-12-01T03:00:00Z", "2026-12-02T03:00:00Z"),
            // Within what clocks differ by.
            ("2027-01-01T10:04:00Z", "2027-01-02T03:00:00Z"),
        ] {
            assert_eq!(next(&after(success, None), false, now).unwrap(), expected, "{success}");
        }
        assert_eq!(next(&after("2099-01-01T03:00:00Z", None), false, now), None, "a clock was wrong");
        assert_eq!(next(&after("2027-01-01T03:00:00Z", None), true, now), None, "somebody asked");
    }

    #[test]
    fn a_try_that_failed_waits_longer_each_time_but_never_for_long() {
        let (success, now) = ("2026-12-31T03:00:00Z", "2027-01-01T10:00:00Z");
        let waits: Vec<i64> = (1..=9).chain([u32::MAX]).map(|attempts| wait(attempts).as_mins()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]);
        let failed = |is_same| after(success, Some(("2027-01-01T09:58:00Z", 3, is_same)));
        assert_eq!(next(&failed(true), false, now).unwrap(), "2027-01-01T10:02:00Z");
        assert_eq!(next(&failed(true), true, now).unwrap(), "2027-01-01T10:02:00Z");
        assert_eq!(next(&failed(false), false, now).unwrap(), "2027-01-01T03:00:00Z");
        let future = after(success, Some(("2099-01-01T09:58:00Z", 3, true)));
        assert_eq!(next(&future, false, now).unwrap(), "2027-01-01T10:09:00Z");
        let first = History { success: None, ..failed(true) };
        assert_eq!(next(&first, false, now).unwrap(), "2027-01-01T10:02:00Z");
    }

    proptest! {
        /// However long nobody was there, and whatever the schedule is: one backup, and then the schedule again.
        #[test]
        fn a_missed_schedule_runs_once(
            schedule in r"(\*|\*/[1-9]|[0-5]?[0-9]) (\*|\*/[1-6]|1?[0-9]) (\*|1?[1-9]) \* (\*|[0-6])",
            last in 1_800_000_000_i64..1_810_000_000,
            away in 0_i64..40_000_000,
        ) {
            let schedule = Schedule::parse(&schedule, "").unwrap();
            let moment = |second| Timestamp::from_second(second).unwrap();
            let (last, now) = (moment(last), moment(last + away));
            let found = |success, now| {
                due(&schedule, &History { success: Some(success), failure: None }, false, now)
            };
            let was_missed = schedule.next_after(last).unwrap() <= now;
            prop_assert_eq!(found(last, now).is_now(now), was_missed);
            // It was made now: the next is in the future.
            prop_assert!(!found(now, now).is_now(now));
            let next = found(now, now).next().unwrap();
            prop_assert_eq!(Some(next), schedule.next_after(now));
            prop_assert!(found(now, next).is_now(next));
        }
    }
}
