//! The TLS listener, and the slot that holds its certificate.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use hangar_pki::KeyPairPem;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{Error, Webhooks};

/// Requests that were accepted get this long to be answered when the server stops; the API server itself gives up
/// on them after 30 s at most.
const DRAIN: Duration = Duration::from_secs(10);

/// The certificate that new connections are served with. Empty at first: handshakes fail until it is filled.
#[derive(Clone, Debug)]
pub struct CertificateSlot {
    current: Arc<ArcSwapOption<CertifiedKey>>,
    filled: watch::Sender<bool>,
}

impl Default for CertificateSlot {
    fn default() -> Self {
        Self { current: Arc::default(), filled: watch::Sender::new(false) }
    }
}

impl CertificateSlot {
    /// An empty slot.
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves new connections with this certificate. A pair that cannot be used leaves the old one in place.
    pub fn fill(&self, pair: &KeyPairPem) -> Result<(), Error> {
        let unusable = |error: &dyn std::fmt::Display| Error::Certificate(error.to_string());
        let chain = CertificateDer::pem_slice_iter(pair.certificate.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| unusable(&error))?;
        let key =
            PrivateKeyDer::from_pem_slice(pair.key.expose().as_bytes()).map_err(|error| unusable(&error))?;
        // Also checks that the key belongs to the certificate.
        let certified = CertifiedKey::from_der(chain, key, &rustls::crypto::aws_lc_rs::default_provider())
            .map_err(|error| unusable(&error))?;
        self.current.store(Some(Arc::new(certified)));
        self.filled.send_replace(true);
        Ok(())
    }

    /// Returns when there is a certificate.
    pub async fn filled(&self) {
        // The sender lives in self: waiting cannot fail.
        let _ = self.filled.subscribe().wait_for(|filled| *filled).await;
    }
}

impl ResolvesServerCert for CertificateSlot {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.load_full()
    }
}

/// A server that is bound to its port and answers once its slot is filled.
#[derive(Debug)]
pub struct WebhookServer {
    address: SocketAddr,
    task: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl WebhookServer {
    /// Binds `address` (port 0 picks a free one) and serves until `stop` is cancelled.
    pub fn start(
        address: SocketAddr,
        webhooks: Webhooks,
        slot: &CertificateSlot,
        stop: CancellationToken,
    ) -> Result<Self, Error> {
        let listen = |source| Error::Listen { address, source };
        let listener = TcpListener::bind(address).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let bound = listener.local_addr().map_err(listen)?;

        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::Certificate(error.to_string()))?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(slot.clone()));
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];

        let handle = Handle::new();
        let server = axum_server::from_tcp_rustls(listener, RustlsConfig::from_config(Arc::new(tls)))
            .map_err(listen)?
            .handle(handle.clone());
        tokio::spawn(async move {
            stop.cancelled().await;
            handle.graceful_shutdown(Some(DRAIN));
        });
        let service = webhooks.into_router().into_make_service();
        Ok(Self { address: bound, task: tokio::spawn(server.serve(service)) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until it has stopped and answered what it had accepted.
    pub async fn stopped(self) -> Result<(), Error> {
        self.task.await.unwrap_or_else(|error| Err(std::io::Error::other(error))).map_err(Error::Serve)
    }
}
