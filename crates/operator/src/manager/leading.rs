//! Competes for the lease, and does the one work of the leader that is not a controller's: it keeps the webhook
//! certificate.
//!
//! When the manager stops, it holds and renews the lease until the controllers have ended their last passes, because
//! they still write. Then it releases the lease.

use std::sync::Arc;

use hangar_kit::leadership::{Always, Leadership};
use hangar_kit::lease::{Candidate, Term};
use hangar_kit::metrics::Metrics;
use hangar_kit::webhook::IssuedCertificate;
use kube::Client;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Options;
use crate::Error;
use crate::reconcile::CLOUD_LIMIT;

/// A process that is about to compete; none of it where there is no election.
pub(super) struct Leading {
    candidate: Option<Candidate>,
}

/// The task that competes, leads, and competes again.
pub(super) struct Competing {
    task: JoinHandle<()>,
    release: CancellationToken,
}

impl Competing {
    /// Hands the lease over. Call it when nothing writes any more.
    pub(super) async fn release(self) {
        self.release.cancel();
        let _ = self.task.await;
    }
}

impl Leading {
    /// Checks the settings; nothing is sent yet.
    pub(super) fn prepare(client: &Client, options: &Options, metrics: &Metrics) -> Result<Self, Error> {
        if !options.settings.leader_election {
            tracing::warn!("leader election is off: a second manager would write over this one");
            metrics.leader.leading.set(1);
            return Ok(Self { candidate: None });
        }
        let lease = &options.lease;
        let certain = (lease.duration / 10 * 9).saturating_sub(lease.retry_period);
        if certain < CLOUD_LIMIT {
            let (needed, certain) = (CLOUD_LIMIT.as_secs(), certain.as_secs());
            tracing::warn!(needed, certain, "the lease is too short: controllers will hardly ever write");
        }
        let candidate = Candidate::new(client.clone(), lease.clone())?.with_metrics(metrics.leader.clone());
        Ok(Self { candidate: Some(candidate) })
    }

    /// Whether we lead, now and later.
    pub(super) fn leadership(&self) -> Arc<dyn Leadership> {
        match &self.candidate {
            Some(candidate) => Arc::new(candidate.standing()),
            None => Arc::new(Always),
        }
    }

    /// Starts to compete, and stops competing with `stop`; a lease that is held then is kept until it is released.
    pub(super) fn compete(self, issued: Option<IssuedCertificate>, stop: &CancellationToken) -> Competing {
        let (stop, release) = (stop.clone(), CancellationToken::new());
        let released = release.clone();
        let task = tokio::spawn(async move {
            let Some(candidate) = self.candidate else {
                return lead(&Term::without_election(&released), issued).await;
            };
            while let Some(held) = candidate.acquire(&stop).await {
                let term = held.term().clone();
                tokio::select! {
                    () = released.cancelled() => {}
                    () = lead(&term, issued.clone()) => {}
                }
                if let Err(error) = held.release().await {
                    let error: &(dyn std::error::Error + 'static) = &error;
                    tracing::warn!(error, "the lease runs out by itself");
                }
            }
        });
        Competing { task, release }
    }
}

/// Returns when the term has ended.
async fn lead(term: &Term, issued: Option<IssuedCertificate>) {
    match issued {
        Some(certificate) => certificate.keep(term.token()).await,
        None => term.token().cancelled().await,
    }
}
