//! The term of a leader: a token that is cancelled on loss, and for how long controllers may write.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The right to write, while it lasts. Clones are the same right.
#[derive(Clone, Debug)]
pub struct Term {
    lost: CancellationToken,
    /// Nothing for a process that leads without an election.
    safe_until: Option<Arc<RwLock<Instant>>>,
}

impl Term {
    pub(super) fn new(safe_until: Instant) -> Self {
        Self { lost: CancellationToken::new(), safe_until: Some(Arc::new(RwLock::new(safe_until))) }
    }

    /// Leads without competing, for a process that is known to be the only one. Ends when `stop` is cancelled.
    pub fn without_election(stop: &CancellationToken) -> Self {
        Self { lost: stop.child_token(), safe_until: None }
    }

    /// Time until nothing we sent may be under way any more. Without an election there is no end.
    pub fn remaining(&self) -> Duration {
        if self.lost.is_cancelled() {
            return Duration::ZERO;
        }
        self.safe_until.as_ref().map_or(Duration::MAX, |safe_until| {
            let end = *safe_until.read().unwrap_or_else(PoisonError::into_inner);
            end.saturating_duration_since(Instant::now())
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

    pub(super) fn extend(&self, until: Instant) {
        if let Some(safe_until) = &self.safe_until {
            *safe_until.write().unwrap_or_else(PoisonError::into_inner) = until;
        }
    }

    pub(super) fn end(&self) {
        self.lost.cancel();
    }
}
