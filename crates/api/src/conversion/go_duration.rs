//! Go's duration strings (`1h30m0s`), read and written the way Go does it.
//!
//! The older API version carries durations as such strings, the newer one as whole seconds. Reading accepts exactly
//! what Go's `time.ParseDuration` accepts and nothing else: a string that Go would refuse must not become a value
//! that Go never had.

const NANOSECOND: u64 = 1;
const MICROSECOND: u64 = 1_000 * NANOSECOND;
const MILLISECOND: u64 = 1_000 * MICROSECOND;
const SECOND: u64 = 1_000 * MILLISECOND;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// Nanoseconds of a Go duration string; `None` where Go reports an error.
pub fn parse(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (term, after) = term(rest)?;
        total = total.checked_add(term)?;
        // Go allows 2^63 itself, for the one negative value that has no positive twin.
        if total > 1 << 63 {
            return None;
        }
        rest = after;
    }
    if negative { 0i64.checked_sub_unsigned(total) } else { i64::try_from(total).ok() }
}

/// One `number unit` pair at the start of the text, in nanoseconds, and what follows it.
fn term(text: &str) -> Option<(u64, &str)> {
    let (whole, rest) = digits(text);
    let (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), digits);
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(end);
    let unit = match unit {
        "ns" => NANOSECOND,
        "us" | "\u{b5}s" | "\u{3bc}s" => MICROSECOND,
        "ms" => MILLISECOND,
        "s" => SECOND,
        "m" => MINUTE,
        "h" => HOUR,
        _ => return None,
    };
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let nanoseconds = whole.checked_mul(unit)?.checked_add(fraction_of(fraction, unit))?;
    (nanoseconds <= 1 << 63).then_some((nanoseconds, rest))
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// `0.<fraction>` of a unit, rounded down. Digits past the 18th cannot move the result by a nanosecond.
fn fraction_of(fraction: &str, unit: u64) -> u64 {
    let mut numerator: u128 = 0;
    let mut denominator: u128 = 1;
    for digit in fraction.bytes().take(18) {
        numerator = numerator * 10 + u128::from(digit - b'0');
        denominator *= 10;
    }
    u64::try_from(numerator * u128::from(unit) / denominator).unwrap_or(0)
}

/// Writes nanoseconds as Go's `Duration.String` does.
pub fn format(nanoseconds: i64) -> String {
    let magnitude = nanoseconds.unsigned_abs();
    let sign = if nanoseconds < 0 { "-" } else { "" };
    if magnitude == 0 {
        return "0s".to_owned();
    }
    if magnitude < SECOND {
        let (unit, name) = match magnitude {
            0..MICROSECOND => (NANOSECOND, "ns"),
            MICROSECOND..MILLISECOND => (MICROSECOND, "\u{b5}s"),
            _ => (MILLISECOND, "ms"),
        };
        return format!("{sign}{}{name}", decimal(magnitude, unit));
    }
    let seconds = decimal(magnitude % MINUTE, SECOND);
    let minutes = magnitude / MINUTE % 60;
    let hours = magnitude / HOUR;
    match (hours, minutes) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, _) => format!("{sign}{minutes}m{seconds}s"),
        _ => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

/// `value / unit` with as many decimals as it takes and no trailing zeros.
fn decimal(value: u64, unit: u64) -> String {
    let mut text = (value / unit).to_string();
    let mut rest = value % unit;
    if rest > 0 {
        text.push('.');
    }
    let mut scale = unit / 10;
    while rest > 0 && scale > 0 {
        text.push(char::from(b'0' + u8::try_from(rest / scale).unwrap_or(0)));
        rest %= scale;
        scale /= 10;
    }
    text
}

/// Whole seconds of an optional duration string, for a field that counts seconds from zero up.
///
/// `None` where the string is no duration or negative; fractions are cut off and what is too large becomes the
/// largest value. The original string comes back from the stash in all these cases.
pub fn to_seconds(text: Option<&str>) -> Option<i32> {
    let seconds = parse(text?)? / i64::try_from(SECOND).unwrap_or(i64::MAX);
    let negative = text?.starts_with('-') && seconds <= 0 && parse(text?)? != 0;
    (!negative).then(|| i32::try_from(seconds).unwrap_or(i32::MAX))
}

/// The duration string of an optional count of seconds.
pub fn from_seconds(seconds: Option<i32>) -> Option<String> {
    seconds.map(|seconds| format(i64::from(seconds) * 1_000_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_go_reads() {
        for (text, nanoseconds) in [
            ("0", 0),
            ("-0", 0),
            ("5s", 5_000_000_000),
            ("+5s", 5_000_000_000),
            ("-1.5h", -5_400_000_000_000),
            ("1h15m30.918273645s", 4_530_918_273_645),
            ("3000ns", 3_000),
            ("11us", 11_000),
            ("12\u{b5}s10ns", 12_010),
            ("12\u{3bc}s", 12_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("39h9m14.425s", 140_954_425_000_000),
            ("0.3333333333333333333h", 1_200_000_000_000 - 1),
            ("9223372036854775807ns", i64::MAX),
            ("-9223372036854775808ns", i64::MIN),
        ] {
            assert_eq!(parse(text), Some(nanoseconds), "{text}");
        }
    }

    #[test]
    fn refuses_what_go_refuses() {
        for text in [
            "",
            "banana",
            "3",
            "-",
            "s",
            ".",
            "-.",
            ".s",
            "+.s",
            "1d",
            "1 s",
            "1s ",
            "--1s",
            "1.2.3s",
            "\u{85}\u{85}",
            "9223372036854775808ns",
            "-9223372036854775809ns",
            "9223372036854775.808us1ns",
            "3000000h",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn writes_what_go_writes() {
        for (nanoseconds, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1\u{b5}s"),
            (2_200_000, "2.2ms"),
            (3_300_000_000, "3.3s"),
            (245_000_000_000, "4m5s"),
            (245_001_000_000, "4m5.001s"),
            (18_367_001_000_000, "5h6m7.001s"),
            (480_000_000_001, "8m0.000000001s"),
            (-36_000_000_000_000, "-10h0m0s"),
            (i64::MAX, "2562047h47m16.854775807s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
        ] {
            assert_eq!(format(nanoseconds), text);
        }
    }

    #[test]
    fn seconds_hold_only_what_they_can() {
        assert_eq!(to_seconds(Some("10m")), Some(600));
        assert_eq!(to_seconds(Some("0s")), Some(0));
        assert_eq!(to_seconds(Some("-0s")), Some(0));
        assert_eq!(to_seconds(Some("1.9s")), Some(1));
        assert_eq!(to_seconds(Some("-10s")), None);
        assert_eq!(to_seconds(Some("-10ms")), None);
        assert_eq!(to_seconds(Some("banana")), None);
        assert_eq!(to_seconds(Some("2562047h")), Some(i32::MAX));
        assert_eq!(to_seconds(None), None);
        assert_eq!(from_seconds(Some(600)).as_deref(), Some("10m0s"));
    }

    proptest! {
        #[test]
        fn reading_undoes_writing(nanoseconds: i64) {
            prop_assert_eq!(parse(&format(nanoseconds)), Some(nanoseconds));
        }

        #[test]
        fn any_text_is_answered(text in "[-+.0-9hmsnu\u{b5}]{0,12}") {
            if let Some(nanoseconds) = parse(&text) {
                prop_assert_eq!(parse(&format(nanoseconds)), Some(nanoseconds));
            }
        }

        #[test]
        fn seconds_survive(seconds in 0..=i32::MAX) {
            prop_assert_eq!(to_seconds(from_seconds(Some(seconds)).as_deref()), Some(seconds));
        }
    }
}
