//! The term of a leader: a token that is cancelled on loss, and for how long controllers may write.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::clock::{Clock, Moment};

/// The right to write, while it lasts. Clones are the same right.
#[derive(Clone, Debug)]
pub struct Term {
    lost: CancellationToken,
    /// Nothing for a process that leads without an election.
    safe_until: Option<Arc<RwLock<Moment>>>,
    clock: Clock,
}

impl Term {
    pub(super) fn new(clock: Clock, safe_until: Moment) -> Self {
        Self { lost: CancellationToken::new(), safe_until: Some(Arc::new(RwLock::new(safe_until))), clock }
    }

    /// Leads without competing, for a process that is known to be the only one. Ends when `stop` is cancelled.
    pub fn without_election(stop: &CancellationToken) -> Self {
        Self { lost: stop.child_token(), safe_until: None, clock: Clock::default() }
    }

    /// Time until nothing we sent may be under way any more. Without an election there is no end.
    pub fn remaining(&self) -> Duration {
        if self.lost.is_cancelled() {
            return Duration::ZERO;
        }
        self.safe_until.as_ref().map_or(Duration::MAX, |safe_until| {
            let end = *safe_until.read().unwrap_or_else(PoisonError::into_inner);
            self.clock.until(end)
        })
    }

    /// True while we lead.
    pub fn holds(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// Returns when the lease is lost or given back.
    pub async fn lost(&self) {
        self.lost.cancelled().await;
    }

    /// Cancelled when the lease is lost or given back; tasks that need leadership run under it.
    pub fn token(&self) -> &CancellationToken {
        &self.lost
    }

    pub(super) fn extend(&self, until: Moment) {
        if let Some(safe_until) = &self.safe_until {
            *safe_until.write().unwrap_or_else(PoisonError::into_inner) = until;
        }
    }

    pub(super) fn end(&self) {
        self.lost.cancel();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    /// The timers of the runtime stand still, as those of a machine that sleeps do.
    #[tokio::test(start_paused = true)]
    async fn a_machine_that_slept_through_its_term_does_not_write() {
        let (clock, hand) = Clock::set_by_hand();
        let term = Term::new(clock.clone(), clock.now() + Duration::from_secs(13));
        hand.store(12_000, Ordering::SeqCst);
        assert_eq!(term.remaining(), Duration::from_secs(1));
        hand.store(3_600_000, Ordering::SeqCst);
        assert!(!term.holds());
        term.extend(clock.now() + Duration::from_secs(13));
        assert!(term.holds(), "a renewal that was sent after that counts");
    }
}
