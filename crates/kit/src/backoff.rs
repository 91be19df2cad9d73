//! Growing delays between attempts, per object, with jitter.
//!
//! kube's controller has one error policy for all objects and no memory; here each key remembers its attempts in a row
//! and forgets them on progress. Jitter spreads objects that failed together (an API server restart). It is symmetric
//! around the nominal delay, so that tests can bound it and the average delay is the nominal one.

use std::{collections::BTreeMap, time::Duration};

use rand::RngExt as _;
use tokio::time::Instant;

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

    /// The same with a requested minimum, which is exceeded a little, so that callers with the same minimum spread.
    pub fn delay_at_least(&self, failures: u32, minimum: Duration) -> Duration {
        let later = if self.jitter <= 0.0 { 0.0 } else { rand::rng().random_range(0.0..=self.jitter) };
        self.delay(failures).max(minimum.saturating_add(minimum.mul_f64(later)))
    }
}

/// This many runs without progress may follow one another at once: what starts is told of by many events.
const FREE_RUNS: u32 = 8;

/// Afterwards one run in this time. An event that matters is answered that late at most.
const INTERVAL: Duration = Duration::from_secs(2);

/// What became of each key's last runs, and so how long it waits for the next one.
///
/// Attempts are runs in a row without progress, whether they waited or failed, and decide when a key comes back by
/// itself. Whatever wakes a key, only some runs without progress follow one another at once: an object that is woken by
/// what its own run writes would keep a processor and an API server busy.
#[derive(Debug)]
pub struct Patience<K> {
    pub(crate) failures: Backoff,
    pub(crate) waits: Backoff,
    keys: BTreeMap<K, Past>,
    failing: usize,
}

#[derive(Debug)]
struct Past {
    attempts: u32,
    is_failing: bool,
    /// When all runs so far are paid for, at one per [`INTERVAL`].
    paid_at: Instant,
}

impl<K> Default for Patience<K> {
    /// Waits are looked at once a minute at least: most are for something that no watch shows.
    fn default() -> Self {
        let waits = Backoff { limit: Duration::from_mins(1), ..Backoff::default() };
        Self { failures: Backoff::default(), waits, keys: BTreeMap::new(), failing: 0 }
    }
}

impl<K: Ord> Patience<K> {
    /// A run brought the key forward: it starts afresh, and takes no memory.
    pub fn progressed(&mut self, key: &K) {
        self.failing -= usize::from(self.keys.remove(key).is_some_and(|past| past.is_failing));
    }

    /// A run found nothing to do.
    pub fn settled(&mut self, key: K) {
        self.past(key).attempts = 0;
    }

    /// A run waits for something, or failed, and made no progress. How many did so in a row, and when the key comes
    /// back, at the earliest after `after`.
    pub fn tried(&mut self, key: K, after: Duration, is_failure: bool) -> (u32, Duration) {
        let past = self.past(key);
        past.attempts = past.attempts.saturating_add(1);
        past.is_failing = is_failure;
        let attempts = past.attempts;
        self.failing += usize::from(is_failure);
        let backoff = if is_failure { &self.failures } else { &self.waits };
        (attempts, backoff.delay_at_least(attempts, after))
    }

    /// How long a run of the key has to wait, if there were too many in vain.
    pub fn held(&self, key: &K) -> Option<Duration> {
        let credit = INTERVAL * (FREE_RUNS - 1);
        let debt = self.keys.get(key)?.paid_at.checked_duration_since(Instant::now())?;
        debt.checked_sub(credit).filter(|length| !length.is_zero())
    }

    /// How many keys are failing.
    pub fn failing(&self) -> usize {
        self.failing
    }

    /// Forgets everything: another leader was at work meanwhile.
    pub fn begin_anew(&mut self) {
        self.keys.clear();
        self.failing = 0;
    }

    /// Forgets keys that are at rest.
    pub fn compact(&mut self) {
        let now = Instant::now();
        self.keys.retain(|_, past| past.attempts > 0 || past.paid_at > now);
    }

    /// The key's past with one more run, that ends now.
    fn past(&mut self, key: K) -> &mut Past {
        let now = Instant::now();
        let past = self.keys.entry(key).or_insert(Past { attempts: 0, is_failing: false, paid_at: now });
        past.paid_at = past.paid_at.max(now) + INTERVAL;
        self.failing -= usize::from(std::mem::take(&mut past.is_failing));
        past
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
}
