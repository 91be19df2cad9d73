//! Kubernetes' order of API version names, and the split of `apiVersion` strings.
//!
//! `v1` beats `v1beta2` beats `v1alpha7`, a higher number beats a lower one, and names that follow no pattern come
//! last, alphabetically. Contract labels list several versions of a kind and the highest one is used.

use std::cmp::{Ordering, Reverse};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stability {
    Alpha,
    Beta,
    General,
}

/// `v1beta2` as (Beta, 1, 2); `None` when the name follows no pattern.
fn parse(version: &str) -> Option<(Stability, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let (major, rest) = number(rest)?;
    if rest.is_empty() {
        return Some((Stability::General, major, 0));
    }
    let (stability, rest) = if let Some(rest) = rest.strip_prefix("beta") {
        (Stability::Beta, rest)
    } else {
        (Stability::Alpha, rest.strip_prefix("alpha")?)
    };
    let (minor, rest) = number(rest)?;
    rest.is_empty().then_some((stability, major, minor))
}

/// Leading decimal number without a leading zero, and what follows it.
fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.starts_with('0') {
        return None;
    }
    digits.parse().ok().map(|value| (value, rest))
}

/// Compares two version names (without group) by precedence: the preferred one is greater.
pub fn compare(left: &str, right: &str) -> Ordering {
    match (parse(left), parse(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        // Kubernetes lists these alphabetically, so the first one is preferred.
        (None, None) => Reverse(left).cmp(&Reverse(right)),
    }
}

/// The preferred one of a contract label's value, such as `v1alpha6_v1beta1`.
pub fn highest_listed(label: &str) -> Option<&str> {
    label.split('_').filter(|version| !version.is_empty()).max_by(|left, right| compare(left, right))
}

/// `group/version` as its two parts; the core group is the empty string.
pub fn split(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// The `apiVersion` string of a group and a version.
pub fn join(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn order_is_the_one_kubernetes_documents() {
        let documented =
            ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"];
        let mut shuffled = documented;
        shuffled.reverse();
        shuffled.swap(1, 6);
        shuffled.sort_by(|left, right| compare(right, left));
        assert_eq!(shuffled, documented);
    }

    #[test]
    fn malformed_names_lose_against_every_pattern() {
        for odd in ["v", "v01", "v1beta", "v1beta01", "v1gamma1", "1", "", "v1beta1x", "V2"] {
            assert_eq!(compare(odd, "v1alpha1"), Ordering::Less, "{odd}");
        }
    }

    #[test]
    fn label_lists_give_their_highest() {
        assert_eq!(highest_listed("v1alpha3_v1beta1_v1alpha7"), Some("v1beta1"));
        assert_eq!(highest_listed("v1alpha1"), Some("v1alpha1"));
        assert_eq!(highest_listed("_"), None);
        assert_eq!(highest_listed(""), None);
    }

    proptest! {
        #[test]
        fn order_is_total_and_antisymmetric(left in "v?[0-9]{0,2}(alpha|beta|x)?[0-9]{0,2}", right in "v?[0-9]{0,2}(alpha|beta|x)?[0-9]{0,2}") {
            prop_assert_eq!(compare(&left, &right), compare(&right, &left).reverse());
            prop_assert_eq!(compare(&left, &right) == Ordering::Equal, left == right);
        }

        #[test]
        fn joining_undoes_splitting(text in "[a-z.]{0,5}/?[a-z0-9/]{0,5}") {
            let (group, version) = split(&text);
            prop_assume!(!group.is_empty() || !text.starts_with('/'));
            prop_assert_eq!(join(group, version), text);
        }
    }
}
