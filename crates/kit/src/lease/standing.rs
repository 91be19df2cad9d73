//! Tells whether a candidate leads now, over all its terms.

use std::time::Duration;

use tokio::sync::watch;

use super::Term;
use crate::leadership::{Changed, Leadership};

/// Whether a candidate leads; outlives its terms. Controllers start and stop by it.
#[derive(Clone, Debug)]
pub struct Standing {
    current: watch::Receiver<Option<Term>>,
}

impl Standing {
    pub(super) fn new(current: watch::Receiver<Option<Term>>) -> Self {
        Self { current }
    }

    /// The current term, if we lead.
    pub fn term(&self) -> Option<Term> {
        self.current.borrow().clone().filter(Term::holds)
    }
}

impl Leadership for Standing {
    fn remaining(&self) -> Option<Duration> {
        self.term().map(|term| term.remaining()).filter(|remaining| !remaining.is_zero())
    }

    fn changed(&self, was_leading: bool) -> Changed<'_> {
        let mut current = self.current.clone();
        if was_leading {
            // The term itself, not the next value: a new term may follow a lost one before anybody has looked.
            let term = current.borrow().clone();
            return Box::pin(async move {
                if let Some(term) = term {
                    term.lost().await;
                }
            });
        }
        Box::pin(async move {
            if current.wait_for(Option::is_some).await.is_err() {
                // The candidate is gone and will never lead: nothing changes any more.
                std::future::pending::<()>().await;
            }
        })
    }
}

impl Leadership for Term {
    fn remaining(&self) -> Option<Duration> {
        Some(self.remaining()).filter(|remaining| !remaining.is_zero())
    }

    fn changed(&self, was_leading: bool) -> Changed<'_> {
        Box::pin(async move {
            if was_leading {
                self.lost().await;
            } else if !self.holds() {
                // A term that has ended does not begin again.
                std::future::pending::<()>().await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock::Clock;
    use super::*;

    #[tokio::test]
    async fn a_loss_is_noticed_even_when_a_new_term_follows_at_once() {
        let clock = Clock::default();
        let term = || Term::new(clock.clone(), clock.now() + Duration::from_mins(1));
        let first = term();
        let current = watch::Sender::new(Some(first.clone()));
        let standing = Standing::new(current.subscribe());
        let lost = standing.changed(true);
        first.end();
        current.send_replace(None);
        current.send_replace(Some(term()));
        tokio::time::timeout(Duration::from_mins(1), lost).await.unwrap();
        assert!(standing.is_leading());
        standing.changed(false).await;
    }
}
