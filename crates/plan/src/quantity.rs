//! Compares Kubernetes quantities by value.
//!
//! The API server stores them in its own spelling (`1000m` becomes `1`, `1024Mi` becomes `1Gi`), so comparing the text
//! does not tell whether a stored object is as desired. Values are kept in billionths, the finest that the API server
//! keeps; like the API server we round smaller fractions away from zero.

/// A value in billionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity(i128);

const UNITS: [(&str, i128); 15] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("Pi", 1 << 50),
    ("Ei", 1 << 60),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("P", 1_000_000_000_000_000),
    ("E", 1_000_000_000_000_000_000),
    // Fractions of one are negative powers; see `scale`.
    ("m", -1_000),
    ("u", -1_000_000),
    ("n", -1_000_000_000),
];

const BILLION: i128 = 1_000_000_000;

impl Quantity {
    /// Reads a quantity; none if it is not one, or is beyond what Kubernetes can hold.
    pub fn parse(text: &str) -> Option<Self> {
        let (is_negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let mut digits: i128 = 0;
        for digit in whole.bytes().chain(fraction.bytes()) {
            digits = digits.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
        }
        let (numerator, denominator) = scale(unit)?;
        let fraction_scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        let numerator = digits.checked_mul(numerator)?.checked_mul(BILLION)?;
        let denominator = denominator.checked_mul(fraction_scale)?;
        let rounded = numerator / denominator + i128::from(numerator % denominator != 0);
        Some(Self(if is_negative { -rounded } else { rounded }))
    }

    /// Whole bytes, rounded down; none if it is negative or does not fit.
    pub fn bytes(self) -> Option<u64> {
        u64::try_from(self.0.div_euclid(BILLION)).ok()
    }
}

/// What a suffix multiplies and divides by.
fn scale(unit: &str) -> Option<(i128, i128)> {
    if unit.is_empty() {
        return Some((1, 1));
    }
    if let Some((_, factor)) = UNITS.iter().find(|(name, _)| *name == unit) {
        return Some(if *factor > 0 { (*factor, 1) } else { (1, -factor) });
    }
    let exponent: i32 = unit.strip_prefix(['e', 'E'])?.parse().ok()?;
    let power = 10_i128.checked_pow(exponent.unsigned_abs())?;
    Some(if exponent < 0 { (1, power) } else { (power, 1) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_same(one: &str, two: &str) -> bool {
        Quantity::parse(one).is_some_and(|value| Some(value) == Quantity::parse(two))
    }

    #[test]
    fn the_spellings_of_the_api_server_are_the_same_values() {
        for (one, two) in [
            ("1000m", "1"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("1.", "1"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("1e3", "1k"),
            ("1E3", "1000"),
            ("1E", "1e18"),
            ("5e-1", "500m"),
            ("-1", "-1000m"),
            ("+2", "2"),
            ("0.1n", "1n"),
        ] {
            assert!(is_same(one, two), "{one} {two}");
        }
    }

    #[test]
    fn other_text_is_no_quantity() {
        for text in ["", "Gi", "1gi", "1 Gi", "1.2.3", "0x10", "1e", "one", "--1", "1e99", "1Kib", "."] {
            assert_eq!(Quantity::parse(text), None, "{text}");
        }
        assert!(!is_same("1G", "1Gi") && !is_same("1m", "1M"));
    }

    #[test]
    fn sizes_are_whole_bytes() {
        let bytes = |text: &str| Quantity::parse(text).and_then(Quantity::bytes);
        assert_eq!(bytes("8Gi"), Some(8 << 30));
        assert_eq!(bytes("1.5Gi"), Some(3 << 29));
        assert_eq!(bytes("500M"), Some(500_000_000));
        assert_eq!(bytes("1023.9"), Some(1023));
        assert_eq!(bytes("-1Gi"), None);
        assert_eq!(bytes("100E"), None);
    }

    proptest! {
        #[test]
        fn units_are_powers(value in 0_u32.., unit in 0_usize..5) {
            let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
            let decimal = ["k", "M", "G", "T", "P", "E"];
            let value = u128::from(value);
            let pairs = [
                (format!("{value}{}", binary[unit + 1]), format!("{}{}", value * 1024, binary[unit])),
                (format!("{value}{}", decimal[unit + 1]), format!("{}{}", value * 1000, decimal[unit])),
                (format!("{value}Ki"), format!("{}", value * 1024)),
                (format!("{value}"), format!("{}m", value * 1000)),
            ];
            for (one, two) in pairs {
                prop_assert!(is_same(&one, &two), "{} {}", one, two);
            }
        }

        #[test]
        fn trailing_zeros_and_points_change_nothing(whole in 0_u32.., fraction in 0_u32..1_000_000, zeros in 0_usize..6) {
            let one = format!("{whole}.{fraction:06}{}", "0".repeat(zeros));
            let two = format!("{whole}{fraction:06}u");
            prop_assert!(is_same(&one, &two), "{} {}", one, two);
        }

        #[test]
        fn order_is_kept(one in any::<u32>(), two in any::<u32>()) {
            let parse = |value: u32| Quantity::parse(&format!("{value}m")).unwrap();
            prop_assert_eq!(parse(one).cmp(&parse(two)), one.cmp(&two));
        }

        #[test]
        fn any_text_is_safe(text in ".*") {
            let _ = Quantity::parse(&text);
        }
    }
}
