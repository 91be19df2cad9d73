//! How often others may wake a key: some times at once, then once in an interval.
//!
//! What a kubelet says about itself reaches us as changes of its Node, and each may be written to the management cluster.
//! A Node that changes every second must not make it write every second; one that was quiet is answered at once.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The keys that were woken lately.
#[derive(Debug)]
pub struct Pace<K> {
    interval: Duration,
    /// What the free wakes are worth.
    credit: Duration,
    /// When all wakes so far are paid for, at one per interval.
    paid_at: Mutex<BTreeMap<K, Instant>>,
}

impl<K: Ord> Pace<K> {
    /// So many wakes at once, then one in each interval.
    pub fn new(free: u32, interval: Duration) -> Self {
        Self { interval, credit: interval * free.saturating_sub(1), paid_at: Mutex::default() }
    }

    /// How long a wake of the key has to wait. Keys that were left alone take no memory.
    pub fn delay(&self, key: K) -> Duration {
        let now = Instant::now();
        let mut all = self.paid_at.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, paid_at| *paid_at > now);
        let paid_at = all.entry(key).or_insert(now);
        let wait = paid_at.duration_since(now).saturating_sub(self.credit);
        if wait.is_zero() {
            *paid_at += self.interval;
        }
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_changes_every_second_wakes_some_times_and_then_rarely() {
        let pace = Pace::new(5, Duration::from_secs(30));
        let mut woken = 0;
        for _ in 0..600 {
            woken += usize::from(pace.delay("restless").is_zero());
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(woken, 4 + 600 / 30);
        assert_eq!(pace.delay("quiet"), Duration::ZERO, "it is answered at once, whatever others do");
        let wait = pace.delay("restless");
        assert!(wait <= Duration::from_secs(30), "{wait:?}");
        tokio::time::advance(Duration::from_secs(300)).await;
        assert_eq!(pace.delay("quiet"), Duration::ZERO);
        assert_eq!(pace.paid_at.lock().unwrap().len(), 1);
    }
}
