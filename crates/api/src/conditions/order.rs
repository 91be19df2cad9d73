//! The order in which conditions are listed: the most important first.

use std::cmp::Ordering;

/// These lead, in this order; everything between is alphabetical.
const FIRST: &[&str] = &["Available", "Ready", "UpToDate"];
/// These end the list, in this order.
const LAST: &[&str] = &["RollingOut", "Remediating", "ScalingDown", "ScalingUp", "Deleting", "Paused"];

/// Compares two condition types by their place in the list.
pub(super) fn compare(left: &str, right: &str) -> Ordering {
    rank(left).cmp(&rank(right)).then_with(|| left.cmp(right))
}

fn rank(type_: &str) -> usize {
    let place = |list: &[&str]| list.iter().position(|known| *known == type_);
    match (place(FIRST), place(LAST)) {
        (Some(place), _) => place,
        (None, Some(place)) => FIRST.len() + 1 + place,
        (None, None) => FIRST.len(),
    }
}
