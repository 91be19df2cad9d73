//! Chooses the cases to run: all of them, or a sample that is the same every time.

use std::time::Duration;

use hangar_kit::call::fault::{CallPoint, STRIKES};
use sha2::{Digest as _, Sha256};

use super::Case;

/// Set to `all`, it makes every sweep complete.
const ENVIRONMENT: &str = "HANGAR_SWEEP";

/// How much is swept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Every point with every strike, however long it takes.
    All,
    /// Some of them.
    Sample {
        /// At most this many.
        cases: usize,
        /// No new case begins after this long.
        budget: Duration,
        /// Another seed is another sample.
        seed: u64,
    },
}

impl Extent {
    /// A sample, unless the environment says `HANGAR_SWEEP=all`.
    pub fn sample(cases: usize, budget: Duration, seed: u64) -> Self {
        if std::env::var(ENVIRONMENT).is_ok_and(|value| value == "all") {
            return Self::All;
        }
        Self::Sample { cases, budget, seed }
    }

    pub(super) fn budget(&self) -> Option<Duration> {
        match self {
            Self::All => None,
            Self::Sample { budget, .. } => Some(*budget),
        }
    }
}

/// The chosen cases, in the order they are tried.
///
/// A sample is ordered by a digest of each case's own name: a scenario that gains a write keeps the rest of its sample.
pub(super) fn choose(points: &[CallPoint], extent: &Extent) -> Vec<Case> {
    let cases = points
        .iter()
        .flat_map(|point| STRIKES.iter().map(|strike| Case { point: point.clone(), strike: *strike }));
    let mut cases: Vec<Case> = cases.collect();
    if let Extent::Sample { cases: most, seed, .. } = extent {
        cases.sort_by_cached_key(|case| {
            let digest: [u8; 32] = Sha256::digest(format!("{seed} {case}")).into();
            digest
        });
        cases.truncate(*most);
    }
    cases
}

#[cfg(test)]
mod tests {
    use hangar_kit::call::{Call, Verb};

    use super::*;

    fn points(count: usize) -> Vec<CallPoint> {
        let call = |number: usize| Call {
            verb: Verb::Apply,
            resource: "configmaps".to_owned(),
            namespace: Some("ns".to_owned()),
            name: Some(number.to_string()),
            is_dry_run: false,
        };
        (0..count).map(|number| CallPoint { call: call(number), occurrence: 1 }).collect()
    }

    fn sample(cases: usize, seed: u64) -> Extent {
        Extent::Sample { cases, budget: Duration::MAX, seed }
    }

    #[test]
    fn all_is_every_point_with_both_strikes_in_order() {
        let cases = choose(&points(3), &Extent::All);
        let names: Vec<String> = cases.iter().map(ToString::to_string).collect();
        assert_eq!(names[0], "apply configmaps ns/0 #1 (AfterAnswer)");
        assert_eq!((names.len(), names[5].as_str()), (6, "apply configmaps ns/2 #1 (BeforeAnswer)"));
    }

    #[test]
    fn a_sample_is_the_same_every_time_and_differs_by_seed() {
        let chosen = choose(&points(20), &sample(10, 1));
        assert_eq!(chosen, choose(&points(20), &sample(10, 1)));
        assert_eq!(chosen.len(), 10);
        assert_ne!(chosen, choose(&points(20), &sample(10, 2)));
        assert_eq!(choose(&points(2), &sample(10, 1)).len(), 4, "there are no more");
    }

    #[test]
    fn a_scenario_that_grows_keeps_the_order_of_what_it_had() {
        let before = choose(&points(10), &sample(20, 7));
        let mut after = choose(&points(12), &sample(24, 7));
        after.retain(|case| before.contains(case));
        assert_eq!(after, before);
    }
}
