//! Connections of callers who have not named a path of ours yet.
//!
//! They get little time, and there are few of them: when there is one too many, the oldest is dropped. An API server
//! names its path with its first bytes, so it is a stranger for some milliseconds, and gets in however many others hold
//! connections open.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// Many more than API servers open at once, each with some ten kilobytes of buffers.
pub(super) const MOST_STRANGERS: usize = 128;
/// For the handshake, and the header of the first request that is ours.
const TIME: Duration = Duration::from_secs(10);

#[derive(Clone, Default)]
pub(super) struct Strangers(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    next: u64,
    /// By age.
    present: BTreeMap<u64, CancellationToken>,
}

/// A connection among them, until it is known or dropped.
pub(super) struct Stranger {
    all: Strangers,
    number: u64,
    dropped: CancellationToken,
}

impl Strangers {
    pub(super) fn enter(&self) -> Stranger {
        let dropped = CancellationToken::new();
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.present.insert(number, dropped.clone());
        if state.present.len() > MOST_STRANGERS
            && let Some((_, oldest)) = state.present.pop_first()
        {
            oldest.cancel();
        }
        Stranger { all: self.clone(), number, dropped }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stranger {
    /// It has named a path of ours: it stays as long as it likes.
    pub(super) fn is_known_now(&self) {
        self.all.state().present.remove(&self.number);
    }

    /// Returns when its time is over, or its place is needed.
    pub(super) async fn is_over(&self) {
        if tokio::time::timeout(TIME, self.dropped.cancelled()).await.is_err()
            && !self.all.state().present.contains_key(&self.number)
        {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.is_known_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn is_over(stranger: &Stranger) -> bool {
        tokio::time::timeout(Duration::from_millis(1), stranger.is_over()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_stranger_makes_room_and_acquaintances_stay() {
        let strangers = Strangers::default();
        let known = strangers.enter();
        known.is_known_now();
        let mut others: Vec<Stranger> = (0..MOST_STRANGERS).map(|_| strangers.enter()).collect();
        assert!(!is_over(&others[0]).await);
        others.push(strangers.enter());
        assert!(is_over(&others[0]).await);
        assert!(!is_over(&others[1]).await);
        assert!(!is_over(&known).await);
        let waited = tokio::time::timeout(TIME * 2, known.is_over()).await;
        assert!(waited.is_err(), "it is known");
        assert!(tokio::time::timeout(TIME, others[1].is_over()).await.is_ok());
        drop(others);
        assert!(strangers.state().present.is_empty());
    }
}
