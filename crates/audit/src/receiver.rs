//! One receiver: how it is called.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use crate::Error;
use crate::settings::Target;

/// From the connection to the end of the answer.
const CALL_LIMIT: Duration = Duration::from_secs(15);
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// A connection that nobody uses for so long is closed.
const IDLE_LIMIT: Duration = Duration::from_secs(60);
/// Bytes of an answer that are read, so that the connection can be used again.
const ANSWER: usize = 64 << 10;
/// Bytes of a token.
const TOKEN: u64 = 64 << 10;

/// Why a receiver has not got something.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It may get it later.
    Later(String),
    /// It does not want it.
    Refused(String),
}

/// A receiver of records.
pub(crate) struct Receiver {
    /// Its URL for logs, without a query: there may be secrets in it.
    pub(crate) name: String,
    uri: Uri,
    token_file: Option<PathBuf>,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Receiver {
    pub(crate) fn new(target: &Target) -> Result<Self, Error> {
        let failed = |why: String| Error::Receiver { server: target.server.clone(), why };
        let uri: Uri = target.server.parse().map_err(|error| failed(format!("{error}")))?;
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(CONNECT_LIMIT));
        let tls = tls(target.certificate_authority.as_deref()).map_err(failed)?;
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_LIMIT)
            .pool_max_idle_per_host(4)
            .build(connector);
        let name = target.server.split('?').next().unwrap_or_default().to_owned();
        Ok(Self { name, uri, token_file: target.token_file.clone(), client })
    }

    /// Sends a batch once.
    pub(crate) async fn send(&self, batch: Bytes) -> Result<(), Failure> {
        match tokio::time::timeout(CALL_LIMIT, self.call(batch)).await {
            Ok(sent) => sent,
            Err(_) => Err(Failure::Later(format!("no answer within {} s", CALL_LIMIT.as_secs()))),
        }
    }

    async fn call(&self, batch: Bytes) -> Result<(), Failure> {
        let mut request = Request::post(self.uri.clone()).header(CONTENT_TYPE, "application/json");
        if let Some(file) = &self.token_file {
            request = request.header(AUTHORIZATION, bearer(file).map_err(Failure::Later)?);
        }
        let request = request.body(Full::new(batch)).map_err(|error| Failure::Refused(error.to_string()))?;
        let answer = self.client.request(request).await.map_err(|error| Failure::Later(chain(&error)))?;
        let status = answer.status();
        // Nothing in it matters.
        let _ = Limited::new(answer.into_body(), ANSWER).collect().await;
        if status.is_success() {
            return Ok(());
        }
        let why = format!("it answered {status}");
        // These concern who asks, or the moment. With others the same batch is refused for ever.
        let is_of_the_moment = status.is_server_error()
            || status.is_redirection()
            || [
                StatusCode::UNAUTHORIZED,
                StatusCode::FORBIDDEN,
                StatusCode::NOT_FOUND,
                StatusCode::REQUEST_TIMEOUT,
                StatusCode::TOO_MANY_REQUESTS,
            ]
            .contains(&status);
        Err(if is_of_the_moment { Failure::Later(why) } else { Failure::Refused(why) })
    }
}

/// The token as it is in its file now. Without it nothing is sent: a receiver that asks for one would refuse it.
fn bearer(file: &Path) -> Result<HeaderValue, String> {
    use std::io::Read as _;
    let mut token = String::new();
    let read = std::fs::File::open(file).and_then(|file| file.take(TOKEN).read_to_string(&mut token));
    read.map_err(|error| format!("there is no token: {error}"))?;
    let token = token.trim();
    if token.is_empty() {
        return Err("the token is empty".to_owned());
    }
    let mut value = HeaderValue::try_from(format!("Bearer {token}"))
        .map_err(|_| "the token has characters that no header can have".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

fn tls(authority: Option<&str>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    // Who names an authority trusts nobody else.
    if authority.is_none() {
        roots.add_parsable_certificates(system_roots().iter().cloned());
    }
    for certificate in CertificateDer::pem_slice_iter(authority.unwrap_or_default().as_bytes()) {
        let certificate = certificate.map_err(|error| format!("its certificate authority: {error}"))?;
        roots.add(certificate).map_err(|error| format!("its certificate authority: {error}"))?;
    }
    let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn system_roots() -> &'static [CertificateDer<'static>] {
    static ROOTS: OnceLock<Vec<CertificateDer<'static>>> = OnceLock::new();
    ROOTS.get_or_init(|| rustls_native_certs::load_native_certs().certs)
}

/// An error with its causes: the first alone says nothing.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}
