//! Connections to an API server as programs have them: HTTP/1.1 or HTTP/2, for one request or kept.
//!
//! Whoever keeps a connection meets the moment in which its server closes it. A request that is on its way then is
//! not lost if the server never began it, and which errors say so is decided here: in HTTP/1.1 the connection was
//! closed before any byte of an answer; in HTTP/2 the server's GOAWAY leaves the request out.

use std::error::Error;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Whoever waits longer has got no answer.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    One,
    Two,
}

/// The way to an API server, and who asks.
#[derive(Clone)]
pub(crate) struct Door {
    address: SocketAddr,
    name: String,
    one: TlsConnector,
    two: TlsConnector,
}

/// A request that failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The server never began it.
    NotBegun(String),
    Failed(String),
}

impl Fault {
    pub(crate) fn text(self) -> String {
        match self {
            Self::NotBegun(text) | Self::Failed(text) => text,
        }
    }
}

impl Door {
    /// With the credentials of a kubeconfig, at the address in it or at another one.
    pub(crate) fn new(kubeconfig: &Path, elsewhere: Option<SocketAddr>) -> Self {
        let kubeconfig: Value = serde_saphyr::from_str(&fs::read_to_string(kubeconfig).unwrap()).unwrap();
        let text = |pointer: &str| kubeconfig.pointer(pointer).unwrap().as_str().unwrap().to_owned();
        let pem = |pointer: &str| STANDARD.decode(text(pointer)).unwrap();
        let server = text("/clusters/0/cluster/server");
        let (host, port) = server.trim_start_matches("https://").rsplit_once(':').unwrap();
        let name = kubeconfig.pointer("/clusters/0/cluster/tls-server-name").and_then(Value::as_str);
        let mut roots = rustls::RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(&pem("/clusters/0/cluster/certificate-authority-data")) {
            roots.add(root.unwrap()).unwrap();
        }
        let certificates = pem("/users/0/user/client-certificate-data");
        let certificates: Vec<_> =
            CertificateDer::pem_slice_iter(&certificates).collect::<Result<_, _>>().unwrap();
        let key = PrivateKeyDer::from_pem_slice(&pem("/users/0/user/client-key-data")).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut settings = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_client_auth_cert(certificates, key)
            .unwrap();
        let mut connector = |protocol: &[u8]| {
            settings.alpn_protocols = vec![protocol.to_vec()];
            TlsConnector::from(Arc::new(settings.clone()))
        };
        Self {
            address: elsewhere
                .unwrap_or_else(|| SocketAddr::new(host.parse().unwrap(), port.parse().unwrap())),
            name: name.unwrap_or(host).to_owned(),
            one: connector(b"http/1.1"),
            two: connector(b"h2"),
        }
    }

    pub(crate) fn request(&self, method: Method, path: &str, body: &str) -> Request<Full<Bytes>> {
        Request::builder()
            .method(method)
            .uri(format!("https://{}{path}", self.name))
            .header("host", &self.name)
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body.to_owned())))
            .unwrap()
    }

    pub(crate) async fn connect(&self, protocol: Protocol) -> Result<Connection, String> {
        let connecting = self.open(protocol);
        match tokio::time::timeout(PATIENCE, connecting).await {
            Ok(connection) => connection.map_err(|error| format!("connect: {}", chain(&*error))),
            Err(_) => Err(format!("connect: nothing within {} s", PATIENCE.as_secs())),
        }
    }

    /// The one that was kept, while nobody has closed it; otherwise another.
    pub(crate) async fn kept_or_new(
        &self,
        kept: Option<Connection>,
        protocol: Protocol,
    ) -> Result<Connection, String> {
        if let Some(mut connection) = kept
            && connection.is_open().await
        {
            return Ok(connection);
        }
        self.connect(protocol).await
    }

    async fn open(&self, protocol: Protocol) -> Result<Connection, Box<dyn Error + Send + Sync>> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(self.name.clone())?;
        match protocol {
            Protocol::One => {
                let stream = self.one.connect(name, stream).await?;
                let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
                tokio::spawn(connection);
                Ok(Connection::One(sender))
            }
            Protocol::Two => {
                let stream = self.two.connect(name, stream).await?;
                let (sender, connection) =
                    http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
                tokio::spawn(connection);
                Ok(Connection::Two(sender))
            }
        }
    }
}

pub(crate) enum Connection {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

impl Connection {
    /// Whether nobody has closed it.
    async fn is_open(&mut self) -> bool {
        match self {
            Self::One(sender) => sender.ready().await.is_ok(),
            Self::Two(sender) => sender.ready().await.is_ok(),
        }
    }

    /// The head of the answer, with the rest to come.
    pub(crate) async fn begin(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Fault> {
        let sent = match self {
            Self::One(sender) => tokio::time::timeout(PATIENCE, sender.send_request(request)).await,
            Self::Two(sender) => tokio::time::timeout(PATIENCE, sender.send_request(request)).await,
        };
        match sent {
            Ok(answer) => answer.map_err(|error| self.fault(&error)),
            Err(_) => Err(Fault::Failed(format!("no answer within {} s", PATIENCE.as_secs()))),
        }
    }

    pub(crate) async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<(StatusCode, Bytes), Fault> {
        let answer = self.begin(request).await?;
        let status = answer.status();
        // As an API server says that it ends, to what reaches it on a connection in the moment before it closes that.
        let is_refused =
            status == StatusCode::SERVICE_UNAVAILABLE && answer.headers().contains_key("retry-after");
        match tokio::time::timeout(PATIENCE, answer.into_body().collect()).await {
            Ok(Ok(body)) if is_refused => {
                let text = String::from_utf8_lossy(&body.to_bytes()).trim().to_owned();
                Err(Fault::NotBegun(format!("{status}: {text}")))
            }
            Ok(Ok(body)) => Ok((status, body.to_bytes())),
            Ok(Err(error)) => Err(Fault::Failed(format!("{status}, then: {}", chain(&error)))),
            Err(_) => Err(Fault::Failed(format!("{status}, then nothing within {} s", PATIENCE.as_secs()))),
        }
    }

    /// What an error means that came instead of an answer's head.
    fn fault(&self, error: &hyper::Error) -> Fault {
        let is_closed =
            |kind: io::ErrorKind| matches!(kind, io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset);
        let is_begun = match self {
            Self::One(_) => {
                let kind = causes(error).find_map(|cause| Some(cause.downcast_ref::<io::Error>()?.kind()));
                !error.is_incomplete_message() && !kind.is_some_and(is_closed)
            }
            Self::Two(_) => {
                let cause = causes(error).find_map(|cause| cause.downcast_ref::<h2::Error>());
                !cause.is_some_and(|cause| {
                    cause.is_remote() && cause.is_go_away() && cause.reason() == Some(h2::Reason::NO_ERROR)
                })
            }
        };
        let text = chain(error);
        if error.is_canceled() || !is_begun { Fault::NotBegun(text) } else { Fault::Failed(text) }
    }
}

fn causes<'error>(
    error: &'error (dyn Error + 'static),
) -> impl Iterator<Item = &'error (dyn Error + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let found = next?;
        next = found.source();
        Some(found)
    })
}

/// An error with what caused it.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    causes(error).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
