//! HTTP to a store, and whether a request that failed was sent.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs};
use rustls_pki_types::{CertificateDer, pem::PemObject as _};

use super::AddressRule;
use super::resolve::{Refused, Resolver};
use crate::text::causes;
use crate::{Call, Error};

/// Shorter than the five seconds after which common web servers drop an idle connection: a request must not race that.
const IDLE_LIMIT: Duration = Duration::from_secs(4);

/// The largest answer that is read whole: a list of a thousand keys has 500 KB.
const LARGEST_ANSWER: usize = 4 << 20;

#[derive(Clone)]
pub(super) struct Transport {
    client: Client<TimeoutConnector<HttpsConnector<HttpConnector<Resolver>>>, Full<Bytes>>,
}

/// An answer whose body is not read yet.
pub(super) struct Response {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    body: Incoming,
}

impl Transport {
    pub(super) fn new(
        authorities: Option<&str>,
        addresses: Option<AddressRule>,
        connect_limit: Duration,
    ) -> Result<Self, Error> {
        let mut tcp = HttpConnector::new_with_resolver(Resolver::new(addresses));
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(tls(authorities)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let mut connector = TimeoutConnector::new(https);
        connector.set_connect_timeout(Some(connect_limit));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_LIMIT)
            // A write is sent once; whoever called decides what follows.
            .retry_canceled_requests(false)
            .build(connector);
        Ok(Self { client })
    }

    pub(super) async fn send(&self, call: &Call, request: Request<Full<Bytes>>) -> Result<Response, Error> {
        let response = self.client.request(request).await.map_err(|error| failure(call, &error))?;
        let (head, body) = response.into_parts();
        Ok(Response { status: head.status, headers: head.headers, body })
    }
}

fn tls(authorities: Option<&str>) -> Result<ClientConfig, Error> {
    const WHAT: &str = "the store's authorities";
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::unusable("TLS", error))?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(pem) = authorities {
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|_| Error::unusable(WHAT, "they cannot be read as PEM"))?;
        if certificates.is_empty() {
            return Err(Error::unusable(WHAT, "no certificate in them"));
        }
        for certificate in certificates {
            roots.add(certificate).map_err(|error| Error::unusable(WHAT, error))?;
        }
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn failure(call: &Call, error: &hyper_util::client::legacy::Error) -> Error {
    let why = causes(error);
    let chain = || {
        let first = error as &(dyn StdError + 'static);
        std::iter::successors(Some(first), |error| (*error).source()).take(16)
    };
    if let Some(refused) = chain().find_map(|cause| cause.downcast_ref::<Refused>()) {
        return Error::unusable("the address of the store", refused);
    }
    // Cancelled is hyper's word for a request that its connection never took.
    let is_cancelled =
        chain().any(|cause| cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled));
    let call = call.clone();
    if error.is_connect() || is_cancelled {
        Error::Unreached { call, why }
    } else {
        Error::Lost { call, why }
    }
}

impl Response {
    /// All of it, which must be short.
    pub(super) async fn whole(self, call: &Call) -> Result<Bytes, Error> {
        let read = Limited::new(self.body, LARGEST_ANSWER).collect().await;
        read.map(http_body_util::Collected::to_bytes).map_err(|error| {
            let call = call.clone();
            if error.is::<LengthLimitError>() {
                Error::Malformed { call, why: format!("longer than {} MiB", LARGEST_ANSWER >> 20) }
            } else {
                Error::Lost { call, why: causes(error.as_ref()) }
            }
        })
    }

    /// Piece by piece.
    pub(super) fn into_body(self, call: Call, idle: Duration) -> Body {
        let length = self.headers.get(http::header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        Body { call, idle, length, incoming: self.body }
    }
}

/// An object that is being read.
pub(crate) struct Body {
    call: Call,
    idle: Duration,
    /// As the answer's head told.
    pub(crate) length: Option<u64>,
    incoming: Incoming,
}

impl Body {
    /// The next piece, or none at the end of what the head told.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let frame = tokio::time::timeout(self.idle, self.incoming.frame()).await;
            let call = || self.call.clone();
            match frame {
                Err(_) => return Err(Error::TimedOut { call: call(), limit: self.idle }),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => return Err(Error::Lost { call: call(), why: causes(&error) }),
                // Trailers mean nothing here.
                Ok(Some(Ok(frame))) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
            }
        }
    }
}
