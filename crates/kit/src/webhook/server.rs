//! The TLS listener, and the slot that holds its certificate.
//!
//! HTTP/1.1 only: API servers call webhooks with nothing else, and each connection then holds one request, whose size
//! is known. What a caller can make us hold before it has named a path of ours is the buffers of a connection
//! (`strangers`); after it, what there is room for (`room`).

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use hangar_pki::KeyPairPem;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::path::{PathToken, Paths};
use super::strangers::{Stranger, Strangers};
use super::{Error, Webhooks};

/// Requests that were accepted get this long to be answered when the server stops; the API server itself gives up
/// on them after 30 s at most.
const DRAIN: Duration = Duration::from_secs(10);
/// A connection without a request is closed after this. API servers close theirs after 90 s, so that no request of
/// theirs meets a connection that we are just closing.
const IDLE_LIMIT: Duration = Duration::from_mins(2);
/// Of a connection. Headers of API servers have some hundred bytes.
const BUFFER: usize = 32 << 10;
/// After a connection could not be accepted, for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The certificate that new connections are served with, and the paths that lead to handlers. Empty at first: handshakes
/// fail until it is filled.
#[derive(Clone, Debug)]
pub struct CertificateSlot {
    current: Arc<ArcSwapOption<Served>>,
    filled: watch::Sender<bool>,
}

#[derive(Debug)]
struct Served {
    certificate: Arc<CertifiedKey>,
    paths: Paths,
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

    /// Serves new connections with this certificate, at the handlers' own paths. A pair that cannot be used leaves the
    /// old one in place.
    pub fn fill(&self, pair: &KeyPairPem) -> Result<(), Error> {
        self.serve(pair, Paths::Plain)
    }

    /// The same, with all handlers behind these tokens.
    pub(super) fn fill_behind(&self, pair: &KeyPairPem, tokens: &[PathToken]) -> Result<(), Error> {
        self.serve(pair, Paths::behind(tokens))
    }

    fn serve(&self, pair: &KeyPairPem, paths: Paths) -> Result<(), Error> {
        let unusable = |error: &dyn std::fmt::Display| Error::Certificate(error.to_string());
        let chain = CertificateDer::pem_slice_iter(pair.certificate.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| unusable(&error))?;
        let key =
            PrivateKeyDer::from_pem_slice(pair.key.expose().as_bytes()).map_err(|error| unusable(&error))?;
        // Also checks that the key belongs to the certificate.
        let certified = CertifiedKey::from_der(chain, key, &rustls::crypto::aws_lc_rs::default_provider())
            .map_err(|error| unusable(&error))?;
        self.current.store(Some(Arc::new(Served { certificate: Arc::new(certified), paths })));
        self.filled.send_replace(true);
        Ok(())
    }

    /// The handler's path in a request's, if the caller may know it.
    fn handler(&self, path: &str) -> Option<String> {
        self.current.load().as_ref()?.paths.handler(path).map(str::to_owned)
    }

    /// Returns when there is a certificate.
    pub async fn filled(&self) {
        // The sender lives in self: waiting cannot fail.
        let _ = self.filled.subscribe().wait_for(|filled| *filled).await;
    }
}

impl ResolvesServerCert for CertificateSlot {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.load().as_ref().map(|served| Arc::clone(&served.certificate))
    }
}

/// A server that is bound to its port and answers once its slot is filled.
#[derive(Debug)]
pub struct WebhookServer {
    address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
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
        let listener = std::net::TcpListener::bind(address).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let listener = TcpListener::from_std(listener).map_err(listen)?;
        let bound = listener.local_addr().map_err(listen)?;

        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::Certificate(error.to_string()))?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(slot.clone()));
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];

        let (tls, router) = (TlsAcceptor::from(Arc::new(tls)), webhooks.into_router());
        let front = Front { tls, router, slot: slot.clone(), stop };
        Ok(Self { address: bound, task: tokio::spawn(front.serve(listener)) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until it has stopped and answered what it had accepted.
    pub async fn stopped(self) -> Result<(), Error> {
        self.task.await.map_err(|error| Error::Serve(std::io::Error::other(error)))
    }
}

/// What each connection needs.
#[derive(Clone)]
struct Front {
    tls: TlsAcceptor,
    router: Router,
    slot: CertificateSlot,
    stop: CancellationToken,
}

impl Front {
    async fn serve(self, listener: TcpListener) {
        let (strangers, mut connections) = (Strangers::default(), JoinSet::new());
        loop {
            tokio::select! {
                () = self.stop.cancelled() => break,
                Some(_) = connections.join_next() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        let (front, stranger) = (self.clone(), Arc::new(strangers.enter()));
                        connections.spawn(async move {
                            tokio::select! {
                                () = stranger.is_over() => {}
                                () = front.connection(stream, &stranger) => {}
                            }
                        });
                    }
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                },
            }
        }
        // Refuse connections rather than let them hang.
        drop(listener);
        let ended = async { while connections.join_next().await.is_some() {} };
        // Those that are left are dropped with the set.
        let _ = tokio::time::timeout(DRAIN, ended).await;
    }

    /// Errors of a connection are its caller's: there is nobody else to tell.
    async fn connection(self, stream: TcpStream, stranger: &Arc<Stranger>) {
        let Ok(stream) = self.tls.accept(stream).await else { return };
        let (router, slot, stranger) = (self.router, self.slot, Arc::clone(stranger));
        let service = hyper::service::service_fn(move |request| {
            let handler = slot.handler(request.uri().path());
            if handler.is_some() {
                stranger.is_known_now();
            }
            dispatch(router.clone(), handler, request)
        });
        let mut serving = std::pin::pin!(
            http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(IDLE_LIMIT)
                .max_buf_size(BUFFER)
                .serve_connection(TokioIo::new(stream), service)
        );
        tokio::select! {
            _ = serving.as_mut() => return,
            () = self.stop.cancelled() => serving.as_mut().graceful_shutdown(),
        }
        let _ = serving.await;
    }
}

/// Answers a request by the handler that its path leads to. The body of one that leads nowhere is not read.
async fn dispatch(
    router: Router,
    handler: Option<String>,
    mut request: Request<Incoming>,
) -> Result<Response, Infallible> {
    let Some(path) = handler.and_then(|path| path.parse().ok()) else {
        return Ok(StatusCode::NOT_FOUND.into_response());
    };
    *request.uri_mut() = path;
    router.oneshot(request.map(Body::new)).await
}
