//! Which backups are to go.
//!
//! Each rule keeps the newest backup of each of the last so many periods that have one: of days for `daily`, and so on.
//! A backup goes only if no rule keeps it. Periods without a backup do not count, so that a control plane that was
//! asleep for a year keeps what it had. Periods are those of UTC; weeks begin on Monday.

use std::collections::BTreeSet;

use jiff::civil::ISOWeekDate;
use jiff::tz::TimeZone;

use super::BackupId;

/// Names the period that a backup is of.
type Period = fn(&BackupId) -> [i32; 3];

/// How many backups are kept. The default keeps all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// The newest ones, whenever they were made.
    pub last: usize,
    pub hourly: usize,
    pub daily: usize,
    pub weekly: usize,
    pub monthly: usize,
    pub yearly: usize,
}

impl Retention {
    /// Whether there is no rule, and so nothing ever goes.
    pub fn keeps_everything(&self) -> bool {
        *self == Self::default()
    }

    /// Which of these are to go, oldest first. Never the newest.
    pub fn expired(&self, backups: &[BackupId]) -> Vec<BackupId> {
        if self.keeps_everything() {
            return Vec::new();
        }
        let newest_first: BTreeSet<&BackupId> = backups.iter().collect();
        let newest_first: Vec<&BackupId> = newest_first.into_iter().rev().collect();
        let mut kept: BTreeSet<&BackupId> = newest_first.iter().take(self.last.max(1)).copied().collect();
        let rules: [(usize, Period); 5] = [
            (self.hourly, |id| {
                let time = utc(id);
                [day(&time), 0, i32::from(time.hour())]
            }),
            (self.daily, |id| [day(&utc(id)), 0, 0]),
            (self.weekly, |id| {
                let week: ISOWeekDate = utc(id).date().iso_week_date();
                [i32::from(week.year()), i32::from(week.week()), 0]
            }),
            (self.monthly, |id| {
                let time = utc(id);
                [i32::from(time.year()), i32::from(time.month()), 0]
            }),
            (self.yearly, |id| [i32::from(utc(id).year()), 0, 0]),
        ];
        for (count, period) in rules {
            let mut periods = BTreeSet::new();
            for id in &newest_first {
                if periods.len() == count {
                    break;
                }
                if periods.insert(period(id)) {
                    kept.insert(id);
                }
            }
        }
        newest_first.into_iter().rev().filter(|id| !kept.contains(id)).cloned().collect()
    }
}

fn utc(id: &BackupId) -> jiff::Zoned {
    id.time().to_zoned(TimeZone::UTC)
}

/// A number of the day, different for each day of all years.
fn day(time: &jiff::Zoned) -> i32 {
    i32::from(time.year()) * 1000 + i32::from(time.day_of_year())
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use proptest::prelude::*;

    use super::*;

    fn ids(texts: &[&str]) -> Vec<BackupId> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    /// One backup an hour for so many hours before the end of 2026-11-18.
    fn hours(count: i64) -> Vec<BackupId> {
        let end: Timestamp = "2026-11-18T23:00:00Z".parse().unwrap();
        (0..count).map(|hour| BackupId::at(end - SignedDuration::from_hours(hour))).collect()
    }

    fn kept(retention: Retention, backups: &[BackupId]) -> Vec<String> {
        let expired = retention.expired(backups);
        backups.iter().filter(|id| !expired.contains(id)).map(ToString::to_string).collect()
    }

    #[test]
    fn without_a_rule_nothing_goes() {
        assert_eq!(Retention::default().expired(&hours(1000)), []);
    }

    #[test]
    fn each_rule_keeps_the_newest_of_its_periods() {
        let retention = Retention { last: 2, daily: 3, ..Retention::default() };
        assert_eq!(
            kept(retention, &hours(24 * 10)),
            ["20261118T230000Z", "20261118T220000Z", "20261117T230000Z", "20261116T230000Z"]
        );
        let retention = Retention { monthly: 2, yearly: 2, ..Retention::default() };
        assert_eq!(
            kept(retention, &hours(24 * 400)),
            ["20261118T230000Z", "20261031T230000Z", "20251231T230000Z"]
        );
    }

    #[test]
    fn weeks_are_those_of_iso_at_the_turn_of_a_year() {
        // The first of January 2027 is a Friday of the last week of 2026.
        let backups = ids(&[
            "20270104T000000Z",
            "20270103T000000Z",
            "20270101T000000Z",
            "20261231T000000Z",
            "20261227T000000Z",
        ]);
        let retention = Retention { weekly: 3, ..Retention::default() };
        assert_eq!(kept(retention, &backups), ["20270104T000000Z", "20270103T000000Z", "20261227T000000Z"]);
    }

    #[test]
    fn periods_without_a_backup_do_not_count() {
        let backups = ids(&["20261118T000000Z", "20200101T000000Z", "20190101T000000Z"]);
        let retention = Retention { daily: 2, ..Retention::default() };
        assert_eq!(kept(retention, &backups), ["20261118T000000Z", "20200101T000000Z"]);
    }

    fn retentions() -> impl Strategy<Value = Retention> {
        (0_usize..4, 0_usize..4, 0_usize..4, 0_usize..4, 0_usize..4, 0_usize..4).prop_map(
            |(last, hourly, daily, weekly, monthly, yearly)| Retention {
                last,
                hourly,
                daily,
                weekly,
                monthly,
                yearly,
            },
        )
    }

    proptest! {
        #[test]
        fn the_newest_stays_and_a_second_look_removes_nothing_more(
            retention in retentions(),
            seconds in prop::collection::vec(1_600_000_000_i64..1_800_000_000, 0..60),
        ) {
            let backups: Vec<_> =
                seconds.into_iter().map(|second| BackupId::at(Timestamp::from_second(second).unwrap())).collect();
            let expired = retention.expired(&backups);
            prop_assert!(backups.iter().max().is_none_or(|newest| !expired.contains(newest)));
            let left: Vec<_> = backups.iter().filter(|id| !expired.contains(id)).cloned().collect();
            prop_assert_eq!(retention.expired(&left), Vec::new());
            // The order of a listing does not matter.
            let mut turned = backups;
            turned.reverse();
            prop_assert_eq!(retention.expired(&turned), expired);
        }
    }
}
