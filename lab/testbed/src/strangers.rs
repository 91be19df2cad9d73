//! Servers of strangers that tests play: one that never answers, and the TLS of one that does.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hangar_pki::{Authority, Intent, Usage, issue};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// Accepts and never says a word: a cloud, a webhook, or a server that must never be called. Dropping it ends it.
#[derive(Debug)]
pub struct Tarpit {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Tarpit {
    /// On a free port of loopback.
    pub async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, connections) = (listener.local_addr()?, Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&connections);
        let task = tokio::spawn(async move {
            let mut open = Vec::new();
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                open.push(stream);
            }
        });
        Ok(Self { address, connections, task })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connected so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Tarpit {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Accepts TLS with a certificate for the address, and says whom to trust for it, in PEM.
#[allow(clippy::panic)] // Only tests call this.
pub fn serving(address: SocketAddr) -> (TlsAcceptor, String) {
    made(address).unwrap_or_else(|error| panic!("a certificate for {address}: {error}"))
}

fn made(address: SocketAddr) -> Result<(TlsAcceptor, String), Box<dyn std::error::Error>> {
    let (now, life) = (jiff::Timestamp::now(), Duration::from_hours(24));
    let authority = Authority::self_signed(&Intent::authority("stranger", life), now)?;
    let intent = Intent::new("stranger", Usage::Server, life).ip_addresses([address.ip()]);
    let pair = issue(&authority, &intent, now)?;
    let certificates =
        CertificateDer::pem_slice_iter(pair.certificate.as_bytes()).collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(pair.key.expose().as_bytes())?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder =
        rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let config = builder.with_no_client_auth().with_single_cert(certificates, key)?;
    Ok((TlsAcceptor::from(Arc::new(config)), authority.pair().certificate.clone()))
}
