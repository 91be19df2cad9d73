//! What only the leader does, from the moment it leads until it no longer does.

use hangar_kit::lease::{Candidate, Term};
use hangar_kit::metrics::Metrics;
use hangar_kit::webhook::IssuedCertificate;
use kube::Client;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Options, webhooks};
use crate::Error;

/// The task that competes, leads, and competes again.
pub(super) struct Leading(JoinHandle<()>);

impl Leading {
    /// Returns when nothing is written any more and the lease is handed over.
    pub(super) async fn ended(self) {
        let _ = self.0.await;
    }
}

/// Starts to compete; stops when `stop` is cancelled.
pub(super) fn compete(
    client: &Client,
    options: &Options,
    metrics: &Metrics,
    webhooks: &webhooks::Serving,
    stop: &CancellationToken,
) -> Result<Leading, Error> {
    let issued = webhooks.issued().cloned();
    let stop = stop.clone();
    if !options.settings.leader_election {
        tracing::warn!("leader election is off: a second manager would write over this one");
        metrics.leader.leading.set(1);
        let task = async move { lead(&Term::without_election(&stop), issued).await };
        return Ok(Leading(tokio::spawn(task)));
    }
    let candidate =
        Candidate::new(client.clone(), options.lease.clone())?.with_metrics(metrics.leader.clone());
    Ok(Leading(tokio::spawn(async move {
        while let Some(held) = candidate.acquire(&stop).await {
            // A stop ends the work first and the lease after it.
            let term = held.term().clone();
            let work = async { lead(&term, issued.clone()).await };
            tokio::select! {
                () = stop.cancelled() => {}
                () = work => {}
            }
            if let Err(error) = held.release().await {
                let error: &(dyn std::error::Error + 'static) = &error;
                tracing::warn!(error, "the lease runs out by itself");
            }
        }
    })))
}

/// Returns when the term has ended.
async fn lead(term: &Term, issued: Option<IssuedCertificate>) {
    match issued {
        Some(certificate) => certificate.keep(term.token()).await,
        None => term.token().cancelled().await,
    }
}
