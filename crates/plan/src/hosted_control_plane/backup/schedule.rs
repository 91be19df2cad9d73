//! Schedules as cron writes them, in UTC.
//!
//! Five fields: minute, hour, day of the month, month, day of the week. Each is `*`, a value, a range, any of these with a
//! step, or a list of them; months and weekdays also have names. As in every cron, a day counts if the day of the month
//! or the weekday fits, where both are restricted; a field that begins with `*` does not restrict.
//!
//! `@hourly`, `@daily`, `@weekly`, `@monthly` and `@yearly` name no minute, so each control plane gets its own, and its
//! own hour in the night: not all of them are backed up at midnight. `@midnight` is midnight.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

/// Between two leap days there may be eight years.
const LONGEST_GAP_DAYS: u32 = 9 * 366;
const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The night, in which few people work: from 20:00 for eight hours.
const NIGHT_BEGINS: u32 = 20;
const NIGHT_MINUTES: u32 = 8 * 60;

/// Moments that come again and again. Sets of numbers are bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether days of the month are restricted.
    has_days: bool,
    has_weekdays: bool,
}

/// One of the five fields.
struct Field {
    what: &'static str,
    least: u32,
    most: u32,
    /// Names of the values from the least on.
    names: &'static [&'static str],
}

const MINUTE: Field = Field { what: "minute", least: 0, most: 59, names: &[] };
const HOUR: Field = Field { what: "hour", least: 0, most: 23, names: &[] };
const DAY: Field = Field { what: "day of the month", least: 1, most: 31, names: &[] };
const MONTH: Field = Field { what: "month", least: 1, most: 12, names: &MONTHS };
/// Sunday is 0 and 7.
const WEEKDAY: Field = Field { what: "day of the week", least: 0, most: 7, names: &WEEKDAYS };

impl Schedule {
    /// Reads a schedule; `of` is whose it is.
    pub fn parse(text: &str, of: &str) -> Result<Self, String> {
        let written = match text.trim().strip_prefix('@') {
            Some(name) => named(name, of).ok_or_else(|| format!("there is no schedule @{name}"))?,
            None => text.to_owned(),
        };
        let fields: Vec<&str> = written.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(format!("it has {} fields and not five", fields.len()));
        };
        let weekdays = WEEKDAY.read(weekday)?;
        let read = Self {
            minutes: MINUTE.read(minute)?,
            hours: HOUR.read(hour)?,
            days: DAY.read(day)?,
            months: MONTH.read(month)?,
            weekdays: (weekdays | weekdays >> 7) & 0x7f,
            has_days: !day.starts_with('*'),
            has_weekdays: !weekday.starts_with('*'),
        };
        if read.is_never() { Err("it names no date that exists".to_owned()) } else { Ok(read) }
    }

    /// Whether no month that is named has a day that is named. A restricted weekday comes in every month.
    fn is_never(&self) -> bool {
        let is_alternative = self.has_days && self.has_weekdays;
        let has = |month: u32| {
            let days = match month {
                2 => 29,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            is_in(self.months, month) && (1..=days).any(|day| is_in(self.days, day))
        };
        !is_alternative && !(1..=12).any(has)
    }

    /// The first moment after this one.
    pub fn next_after(&self, moment: Timestamp) -> Option<Timestamp> {
        let after = moment.to_zoned(TimeZone::UTC);
        // Of the first day only what comes later.
        let mut least =
            u32::from(after.hour().unsigned_abs()) * 60 + u32::from(after.minute().unsigned_abs()) + 1;
        let mut date = after.date();
        for _ in 0..LONGEST_GAP_DAYS {
            if self.has(date)
                && let Some(minute) = (least..24 * 60)
                    .find(|minute| is_in(self.hours, minute / 60) && is_in(self.minutes, minute % 60))
            {
                let (hour, minute) = (i8::try_from(minute / 60).ok()?, i8::try_from(minute % 60).ok()?);
                return Some(date.at(hour, minute, 0, 0).to_zoned(TimeZone::UTC).ok()?.timestamp());
            }
            least = 0;
            date = date.checked_add(1.day()).ok()?;
        }
        None
    }

    fn has(&self, date: Date) -> bool {
        let weekday = u32::from(date.weekday().to_sunday_zero_offset().unsigned_abs());
        let day = is_in(self.days, u32::from(date.day().unsigned_abs()));
        let weekday = is_in(self.weekdays, weekday);
        let is_day = if self.has_days && self.has_weekdays { day || weekday } else { day && weekday };
        is_day && is_in(self.months, u32::from(date.month().unsigned_abs()))
    }
}

fn is_in(set: u64, number: u32) -> bool {
    1_u64.checked_shl(number).is_some_and(|bit| set & bit != 0)
}

/// What a name means for this one.
fn named(name: &str, of: &str) -> Option<String> {
    let chance = crate::hash::text(of);
    let chance = chance.get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or_default();
    let minute = chance % 60;
    let night = chance % NIGHT_MINUTES;
    let night = format!("{} {}", night % 60, (NIGHT_BEGINS + night / 60) % 24);
    Some(match name {
        "hourly" => format!("{minute} * * * *"),
        "daily" => format!("{night} * * *"),
        "midnight" => "0 0 * * *".to_owned(),
        "weekly" => format!("{night} * * 0"),
        "monthly" => format!("{night} 1 * *"),
        "yearly" | "annually" => format!("{night} 1 1 *"),
        _ => return None,
    })
}

impl Field {
    fn read(&self, text: &str) -> Result<u64, String> {
        let mut set = 0;
        for part in text.split(',') {
            let (range, step) =
                part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
            let (first, last) = match range.split_once('-') {
                _ if range == "*" => (self.least, self.most),
                Some((first, last)) => (self.value(first)?, self.value(last)?),
                // As everywhere, a value with a step goes on to the end.
                None if step.is_some() => (self.value(range)?, self.most),
                None => (self.value(range)?, self.value(range)?),
            };
            // Sunday ends a week as well as it begins one.
            let last = if last == 0 && first > 0 && self.names.len() == 7 { 7 } else { last };
            if last < first {
                return Err(format!("{}: {range:?} ends before it begins", self.what));
            }
            let step = match step {
                None => 1,
                Some(step) => self.step(step)?,
            };
            set |= (first..=last).step_by(step).fold(0, |set, number| set | 1_u64 << number);
        }
        Ok(set)
    }

    fn step(&self, text: &str) -> Result<usize, String> {
        let most = usize::try_from(self.most).unwrap_or(usize::MAX);
        let step = text.parse().ok().filter(|step| (1..=most).contains(step));
        step.ok_or_else(|| format!("{}: the step {text:?} must be a number from 1 to {most}", self.what))
    }

    fn value(&self, text: &str) -> Result<u32, String> {
        let lower = text.to_ascii_lowercase();
        let named = self.names.iter().position(|name| *name == lower);
        if let Some(number) = named.and_then(|position| u32::try_from(position).ok()) {
            return Ok(self.least + number);
        }
        let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number =
            text.parse().ok().filter(|number| is_digits && (self.least..=self.most).contains(number));
        number.ok_or_else(|| {
            format!("{}: {text:?} is nothing between {} and {}", self.what, self.least, self.most)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn next(schedule: &str, after: &str, times: usize) -> Vec<String> {
        let schedule = Schedule::parse(schedule, "team/demo").unwrap();
        let mut moment = at(after);
        let mut found = Vec::new();
        for _ in 0..times {
            moment = schedule.next_after(moment).unwrap();
            found.push(moment.strftime("%a %Y-%m-%dT%H:%M:%S").to_string());
        }
        found
    }

    #[test]
    fn a_schedule_means_what_cron_means() {
        let friday = "2027-01-01T10:30:00Z";
        for (schedule, expected) in [
            ("* * * * *", vec!["Fri 2027-01-01T10:31:00", "Fri 2027-01-01T10:32:00"]),
            ("30 10 * * *", vec!["Sat 2027-01-02T10:30:00", "Sun 2027-01-03T10:30:00"]),
            ("31 10 * * *", vec!["Fri 2027-01-01T10:31:00", "Sat 2027-01-02T10:31:00"]),
            ("*/20 9-11 * * *", vec!["Fri 2027-01-01T10:40:00", "Fri 2027-01-01T11:00:00"]),
            ("5,50 */12 * * *", vec!["Fri 2027-01-01T12:05:00", "Fri 2027-01-01T12:50:00"]),
            ("0 50/5 * * *", vec![]),
            ("0 3 * * mon-wed", vec!["Mon 2027-01-04T03:00:00", "Tue 2027-01-05T03:00:00"]),
            ("0 3 * * 7", vec!["Sun 2027-01-03T03:00:00", "Sun 2027-01-10T03:00:00"]),
            ("0 3 * * SAT-SUN", vec!["Sat 2027-01-02T03:00:00", "Sun 2027-01-03T03:00:00"]),
            // Either of the two, where both are given.
            ("0 3 5 * mon", vec!["Mon 2027-01-04T03:00:00", "Tue 2027-01-05T03:00:00"]),
            // Both, where one of them begins with a star.
            ("0 3 */2 * sun", vec!["Sun 2027-01-03T03:00:00", "Sun 2027-01-17T03:00:00"]),
            ("0 0 31 * *", vec!["Sun 2027-01-31T00:00:00", "Wed 2027-03-31T00:00:00"]),
            ("0 0 29 feb *", vec!["Tue 2028-02-29T00:00:00", "Sun 2032-02-29T00:00:00"]),
            ("0 0 30 2 mon", vec!["Mon 2027-02-01T00:00:00", "Mon 2027-02-08T00:00:00"]),
            ("@midnight", vec!["Sat 2027-01-02T00:00:00", "Sun 2027-01-03T00:00:00"]),
        ] {
            if expected.is_empty() {
                assert!(Schedule::parse(schedule, "").is_err(), "{schedule}");
                continue;
            }
            assert_eq!(next(schedule, friday, expected.len()), expected, "{schedule}");
        }
    }

    #[test]
    fn leap_days_are_waited_for_over_a_century() {
        assert_eq!(next("0 0 29 2 *", "2096-03-01T00:00:00Z", 1), ["Fri 2104-02-29T00:00:00"]);
    }

    #[test]
    fn what_is_no_schedule_is_refused_with_the_field() {
        for (schedule, complaint) in [
            ("", "it has 0 fields and not five"),
            ("* * * *", "it has 4 fields and not five"),
            ("* * * * * *", "it has 6 fields and not five"),
            ("60 * * * *", "minute: \"60\" is nothing between 0 and 59"),
            ("* 24 * * *", "hour: \"24\" is nothing between 0 and 23"),
            ("* * 0 * *", "day of the month: \"0\" is nothing between 1 and 31"),
            ("* * * 13 *", "month: \"13\" is nothing between 1 and 12"),
            ("* * * * 8", "day of the week: \"8\" is nothing between 0 and 7"),
            ("* * * * fry", "day of the week: \"fry\" is nothing between 0 and 7"),
            ("5-3 * * * *", "minute: \"5-3\" ends before it begins"),
            ("*/0 * * * *", "minute: the step \"0\" must be a number from 1 to 59"),
            ("*/60 * * * *", "minute: the step \"60\" must be a number from 1 to 59"),
            ("+5 * * * *", "minute: \"+5\" is nothing between 0 and 59"),
            ("1,, * * * *", "minute: \"\" is nothing between 0 and 59"),
            ("0 0 30 2 *", "it names no date that exists"),
            ("0 0 31 4,6,9,11 *", "it names no date that exists"),
            ("@sometimes", "there is no schedule @sometimes"),
        ] {
            assert_eq!(Schedule::parse(schedule, "").unwrap_err(), complaint, "{schedule:?}");
        }
    }

    #[test]
    fn named_schedules_are_spread_over_the_night() {
        let hours = |name: &str| -> std::collections::BTreeSet<String> {
            let of = |number: usize| {
                let schedule = Schedule::parse(name, &format!("team/{number}")).unwrap();
                schedule.next_after(at("2027-01-01T10:30:00Z")).unwrap().strftime("%H").to_string()
            };
            (0..200).map(of).collect()
        };
        let night = ["00", "01", "02", "03", "20", "21", "22", "23"].map(str::to_owned).into();
        for name in ["@daily", "@weekly", "@monthly", "@yearly", "@annually"] {
            assert_eq!(hours(name), night, "{name}");
        }
        assert_eq!(hours("@hourly"), ["10", "11"].map(str::to_owned).into());
    }

    proptest! {
        #[test]
        fn the_next_moment_is_later_and_there_is_none_between(
            schedule in r"(\*|\*/[1-9]|[0-5]?[0-9]|[0-9],[1-5][0-9]) (\*|\*/[1-6]|1?[0-9]|2-5) (\*|\*/5|1?[1-9]) (\*|[1-9]) (\*|[0-6]|1-5)",
            second in 1_800_000_000_i64..1_900_000_000,
        ) {
            let schedule = Schedule::parse(&schedule, "team/demo").unwrap();
            let moment = Timestamp::from_second(second).unwrap();
            let next = schedule.next_after(moment).unwrap();
            prop_assert!(next > moment && next.as_second() % 60 == 0);
            let before = Timestamp::from_second(next.as_second() - 1).unwrap();
            prop_assert_eq!(schedule.next_after(before.min(moment.max(before))), Some(next));
            let between = Timestamp::from_second(i64::midpoint(moment.as_second(), next.as_second() - 1)).unwrap();
            prop_assert_eq!(schedule.next_after(between), Some(next));
        }

        #[test]
        fn nothing_that_people_write_panics(text in r"[@*0-9A-Za-z,/ -]{0,40}") {
            if let Ok(schedule) = Schedule::parse(&text, "") {
                prop_assert!(schedule.next_after(at("2027-01-01T10:30:00Z")).is_some(), "{}", text);
            }
        }
    }
}
