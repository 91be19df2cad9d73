//! Holds the lease: renews it, loses it, or releases it.

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::candidate::{Attempt, Candidate};
use super::clock::Moment;
use super::record::Observation;
use super::{Error, Term};

/// Calls must have ended this fraction of the duration before others may take over: their clocks may run a
/// little faster than ours, and the answer to our last renewal was on its way for a while.
const SAFETY_FRACTION: u32 = 10;

/// The lease in our hands. Dropping it ends the leadership at once but leaves the Lease to run out;
/// [`Held::release`] hands it over.
#[derive(Debug)]
pub struct Held {
    term: Term,
    stop: Option<oneshot::Sender<()>>,
    renewal: Option<JoinHandle<Option<Observation>>>,
    candidate: Candidate,
}

impl Held {
    pub(super) fn start(candidate: Candidate, observation: Observation, sent_at: Moment) -> Self {
        let term = Term::new(candidate.clock().clone(), safe_until(&candidate, sent_at));
        if let Some(metrics) = candidate.metrics() {
            metrics.leading.set(1);
            metrics.acquired.inc();
        }
        candidate.announce(Some(term.clone()));
        let (stop, stopped) = oneshot::channel();
        let renewal = tokio::spawn(renew(candidate.clone(), term.clone(), observation, sent_at, stopped));
        Self { term, stop: Some(stop), renewal: Some(renewal), candidate }
    }

    /// What controllers are given.
    pub fn term(&self) -> &Term {
        &self.term
    }

    /// Ends the leadership and hands the lease over, so that the next candidate need not wait. Call it when
    /// everything that writes has stopped. Renewal goes on until then.
    pub async fn release(mut self) -> Result<(), Error> {
        self.term.end();
        self.candidate.announce(None);
        drop(self.stop.take());
        let last = match self.renewal.take() {
            Some(renewal) => renewal.await.ok().flatten(),
            None => None,
        };
        match last {
            Some(observation) => self.candidate.release(&observation).await,
            None => Ok(()),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.term.end();
        self.candidate.announce(None);
        if let Some(renewal) = &self.renewal {
            renewal.abort();
        }
        if let Some(metrics) = self.candidate.metrics() {
            metrics.leading.set(0);
        }
    }
}

/// Others can take over one duration after they saw our write, which is later than when it was sent.
fn safe_until(candidate: &Candidate, sent_at: Moment) -> Moment {
    let duration = candidate.settings().duration;
    sent_at + duration.saturating_sub(duration / SAFETY_FRACTION)
}

/// Renews until told to stop; then yields the record as last written. Yields nothing when the lease was lost.
async fn renew(
    candidate: Candidate,
    term: Term,
    mut observation: Observation,
    mut sent_at: Moment,
    mut stopped: oneshot::Receiver<()>,
) -> Option<Observation> {
    loop {
        let deadline = sent_at + candidate.settings().renew_deadline;
        let pause = candidate.settings().retry_period.min(candidate.clock().until(deadline));
        tokio::select! {
            _ = &mut stopped => return Some(observation),
            () = tokio::time::sleep(pause) => {}
        }
        let left = candidate.clock().until(deadline);
        let reason = if left.is_zero() {
            "no renewal within the deadline"
        } else {
            let limit = left.min(candidate.settings().renew_deadline / 2);
            match candidate.attempt(Some(observation.clone()), limit).await {
                Ok(Attempt::Held { observation: written, sent_at: at }) => {
                    (observation, sent_at) = (written, at);
                    term.extend(safe_until(&candidate, sent_at));
                    continue;
                }
                Ok(Attempt::Taken(current)) if current.holder() == Some(&candidate.settings().identity) => {
                    // Somebody touched the object between our read and our write; the lease is still ours.
                    observation = current;
                    continue;
                }
                Ok(Attempt::Taken(_)) => "another candidate holds the lease",
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, ?left, "cannot renew the lease");
                    continue;
                }
            }
        };
        tracing::error!(lease = %candidate.settings().name, reason, "leadership lost");
        term.end();
        candidate.announce(None);
        if let Some(metrics) = candidate.metrics() {
            metrics.leading.set(0);
            metrics.lost.inc();
        }
        return None;
    }
}
