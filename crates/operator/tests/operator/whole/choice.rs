//! Chooses the writes after which a manager is killed, in which order, and how many in one run.

use std::collections::{BTreeMap, VecDeque};

use super::strikes::{Case, Point};

/// Why a point is not struck: whether a run reaches it depends on what happens to be seen together, not on the manager.
pub(super) fn by_chance(point: &Point) -> Option<&'static str> {
    let is_status = point.name.contains("/status ");
    if is_status && point.occurrence > 1 {
        return Some("how many statuses are written depends on how many changes are seen together");
    }
    None
}

/// Every case of the points, in an order that is the same every time: by a digest of its name, the transports in turn.
pub(super) fn cases(points: &[Point]) -> Vec<Case> {
    let mut by_transport: BTreeMap<&str, Vec<Case>> = BTreeMap::new();
    for point in points.iter().filter(|point| by_chance(point).is_none()) {
        let transport = point.name.split(':').next().unwrap_or_default();
        let both = [true, false].map(|is_answered| Case { point: point.clone(), is_answered });
        by_transport.entry(transport).or_default().extend(both);
    }
    let mut queues: Vec<VecDeque<Case>> = by_transport
        .into_values()
        .map(|mut cases| {
            cases.sort_by_cached_key(|case| digest(&case.to_string()));
            cases.into()
        })
        .collect();
    let mut all = Vec::new();
    while queues.iter().any(|queue| !queue.is_empty()) {
        all.extend(queues.iter_mut().filter_map(VecDeque::pop_front));
    }
    all
}

/// FNV-1a: the same in every build.
fn digest(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Takes the next cases for one story, in the order in which their points are reached.
///
/// A manager that starts in the middle may do in one write what takes two otherwise. So a point is struck after another
/// one only if it is the first of its name, which every way to the end has to pass.
pub(super) fn chain(queue: &mut Vec<Case>, points: &[Point], most: usize) -> Vec<Case> {
    let position = |case: &Case| points.iter().position(|point| *point == case.point);
    let mut chosen: Vec<Case> = Vec::new();
    let mut rest = Vec::new();
    for case in queue.drain(..) {
        let fits = chosen.is_empty()
            || case.point.occurrence == 1
                && chosen.iter().all(|other| {
                    other.point != case.point
                        && (other.point.occurrence == 1 || position(other) < position(&case))
                });
        if fits && chosen.len() < most {
            chosen.push(case);
        } else {
            rest.push(case);
        }
    }
    *queue = rest;
    chosen.sort_by_key(position);
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(name: &str, occurrence: usize) -> Point {
        Point { name: name.to_owned(), occurrence }
    }

    #[test]
    fn every_point_is_struck_with_and_without_its_answer_unless_it_is_reached_by_chance() {
        let points = [point("cloud: a", 1), point("tenant: b", 1), point("management: patch c/status d", 2)];
        let all = cases(&points);
        assert_eq!(all.len(), 4);
        assert_eq!(all, cases(&points));
        assert_ne!(all[0].point, all[1].point, "the transports in turn");
    }

    #[test]
    fn a_chain_is_in_order_strikes_a_point_once_and_a_repeated_one_only_at_its_beginning() {
        let points = [point("a: a", 1), point("a: b", 1), point("a: b", 2), point("a: c", 1)];
        let case = |index: usize| Case { point: points[index].clone(), is_answered: true };
        let mut queue = vec![case(3), case(0), case(0), case(2), case(1)];
        assert_eq!(chain(&mut queue, &points, 3), [case(0), case(1), case(3)]);
        assert_eq!(chain(&mut queue, &points, 3), [case(0)]);
        assert_eq!(chain(&mut queue, &points, 3), [case(2)]);
        assert!(queue.is_empty());
        let mut queue = vec![case(2), case(0), case(3)];
        assert_eq!(chain(&mut queue, &points, 3), [case(2), case(3)]);
    }
}
