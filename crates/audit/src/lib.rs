//! The audit proxy: a process beside an API server that sends audit records to several receivers.
//!
//! kube-apiserver knows one receiver, and calls it by the egress selection `controlplane`, by which it also calls whatever
//! its tenant names. So the proxy takes that whole selection, as HTTP-CONNECT over a socket (`accept`):
//!
//! - What is for the proxy's own name is HTTP with records, which every receiver gets (`deliver`).
//! - Everything else is handed to the socket of the tunnel's server, byte for byte. The proxy calls nobody for it.
//!
//! Receivers are called directly, from the pod's network, with a token that is read from its file each time.
//!
//! Memory is bounded: records wait for a receiver in a queue of limited size, and what does not fit is lost for that
//! receiver alone, and told in the log. Nothing is written to disk.

mod accept;
mod deliver;
mod receiver;
mod settings;

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub use settings::{Error, Settings};

use accept::Listener;
use deliver::Delivery;

/// What is still queued at the end has this long to be sent.
const FLUSH_LIMIT: Duration = Duration::from_secs(20);

/// Runs until it is stopped, and then sends what is queued.
pub async fn run(settings: &Settings, stop: CancellationToken) -> Result<(), Error> {
    let receivers = settings.targets.iter().map(receiver::Receiver::new).collect::<Result<Vec<_>, _>>()?;
    let delivery = Arc::new(Delivery::new(receivers, settings.waits));
    let listener = Listener::bind(settings)?;
    tracing::info!(targets = settings.targets.len(), waits = settings.waits, "serving");
    let workers = delivery.work(&stop);
    listener.serve(&delivery, &stop).await;
    if tokio::time::timeout(FLUSH_LIMIT, workers.join_all()).await.is_err() {
        tracing::warn!("not all records could be sent before the end");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
