//! The plain HTTP server of health and metrics.
//!
//! It has no encryption and no authentication on purpose: probes come from the kubelet and scrapes from inside the
//! cluster, and a scraper has no token to authenticate with. Nothing served here is secret.

use std::net::SocketAddr;

use axum::Router;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// A server that is bound to its port and has begun to answer.
#[derive(Debug)]
pub struct PlainServer {
    address: SocketAddr,
    task: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl PlainServer {
    /// Binds `address` (port 0 picks a free one) and serves `router` until `stop` is cancelled.
    pub async fn start(
        address: SocketAddr,
        router: Router,
        stop: CancellationToken,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let server =
            axum::serve(listener, router).with_graceful_shutdown(async move { stop.cancelled().await });
        Ok(Self { address, task: tokio::spawn(async move { server.await }) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until it has stopped and answered what it had accepted.
    pub async fn stopped(self) -> std::io::Result<()> {
        self.task.await.unwrap_or_else(|error| Err(std::io::Error::other(error)))
    }
}
