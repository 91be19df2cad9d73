//! Growing delays between attempts, per object, with jitter.
//!
//! kube's controller has one error policy for all objects and no memory; here each key remembers its failures in a row
//! and forgets them on success. Jitter spreads objects that failed together (an API server restart) and is symmetric
//! around the nominal delay, so tests can bound it and averages stay where the table says.

use std::{collections::BTreeMap, time::Duration};

use rand::RngExt as _;

/// How delays grow.
#[derive(Clone, Debug, PartialEq)]
pub struct Backoff {
    /// The delay after the first failure.
    pub first: Duration,
    /// No delay is nominally longer.
    pub limit: Duration,
    /// Each failure multiplies by this.
    pub factor: u32,
    /// Share of the delay by which it may vary in each direction, 0 to 1.
    pub jitter: f64,
}

impl Default for Backoff {
    /// 0.5 s doubling to 5 min: quick enough for conflicts, slow enough for a cloud that is down for a day.
    fn default() -> Self {
        Self { first: Duration::from_millis(500), limit: Duration::from_mins(5), factor: 2, jitter: 0.2 }
    }
}

impl Backoff {
    /// The delay after this many failures in a row, before jitter.
    pub fn nominal(&self, failures: u32) -> Duration {
        let exponent = failures.saturating_sub(1).min(31);
        self.first.saturating_mul(self.factor.saturating_pow(exponent)).min(self.limit)
    }

    /// The delay after this many failures in a row.
    pub fn delay(&self, failures: u32) -> Duration {
        let nominal = self.nominal(failures);
        if self.jitter <= 0.0 {
            return nominal;
        }
        nominal.mul_f64(1.0 + rand::rng().random_range(-self.jitter..=self.jitter).max(-1.0))
    }
}

/// Failures in a row, by key.
#[derive(Debug)]
pub struct Attempts<K> {
    failures: BTreeMap<K, u32>,
}

impl<K> Default for Attempts<K> {
    fn default() -> Self {
        Self { failures: BTreeMap::new() }
    }
}

impl<K: Ord> Attempts<K> {
    /// Counts one more failure; returns how many there were in a row.
    pub fn failed(&mut self, key: K) -> u32 {
        let count = self.failures.entry(key).or_default();
        *count = count.saturating_add(1);
        *count
    }

    /// Success: the key starts afresh, and takes no memory.
    pub fn forget(&mut self, key: &K) {
        self.failures.remove(key);
    }

    /// Failures in a row so far.
    pub fn count(&self, key: &K) -> u32 {
        self.failures.get(key).copied().unwrap_or_default()
    }

    /// How many keys are failing.
    pub fn failing(&self) -> usize {
        self.failures.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_to_the_limit() {
        let backoff = Backoff::default();
        let table: Vec<u64> =
            (1..=12).map(|n| u64::try_from(backoff.nominal(n).as_millis()).unwrap()).collect();
        assert_eq!(
            table,
            [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000, 300_000]
        );
        assert_eq!(backoff.nominal(u32::MAX), Duration::from_mins(5));
    }

    #[test]
    fn jitter_stays_within_its_share_and_varies() {
        let backoff = Backoff::default();
        let delays: Vec<Duration> = (0..200).map(|_| backoff.delay(5)).collect();
        assert!(delays.iter().all(|d| (6_400..=9_600).contains(&d.as_millis())), "{delays:?}");
        assert!(delays.iter().any(|d| *d != delays[0]));
    }

    #[test]
    fn success_forgets() {
        let mut attempts = Attempts::default();
        assert_eq!((attempts.failed("a"), attempts.failed("a"), attempts.failed("b")), (1, 2, 1));
        attempts.forget(&"a");
        assert_eq!((attempts.failed("a"), attempts.failing()), (1, 2));
    }
}
