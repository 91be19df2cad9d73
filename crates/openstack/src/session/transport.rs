//! HTTP, and whether a request that failed was sent.
//!
//! What may be done after a failed write depends on whether it was sent, which only this module knows: a failure to
//! connect, or a connection that closed before it took the request, sent nothing. Everything later may have been sent.
//! A time limit that passes counts as sent, which is the safe side; connecting has its own, shorter limit.

use std::{error::Error as StdError, time::Duration};

use http::{HeaderMap, Request as HttpRequest, StatusCode};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use rustls::ClientConfig;

/// Shorter than the five seconds after which common web servers drop an idle connection: a request must not race that.
const IDLE_LIMIT: Duration = Duration::from_secs(4);

/// An answer, whole.
pub(super) struct Response {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Why there is none.
pub(super) enum Failure {
    Unreached(String),
    /// It may have been sent.
    Disconnected(String),
    TimedOut,
    /// The answer is longer than allowed; the rest was not read.
    TooLong,
}

pub(super) struct Transport {
    client: Client<TimeoutConnector<HttpsConnector<HttpConnector>>, Full<Bytes>>,
}

impl Transport {
    pub(super) fn new(tls: ClientConfig, connect_limit: Duration) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let mut connector = TimeoutConnector::new(https);
        connector.set_connect_timeout(Some(connect_limit));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_LIMIT)
            .build(connector);
        Self { client }
    }

    /// Sends, and reads the answer to its end, within the limit and up to so many bytes.
    pub(super) async fn exchange(
        &self,
        request: HttpRequest<Full<Bytes>>,
        limit: Duration,
        longest: usize,
    ) -> Result<Response, Failure> {
        let whole = async {
            let response = self.client.request(request).await.map_err(|error| failure(&error))?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, longest).collect().await.map_err(|error| {
                if error.is::<LengthLimitError>() {
                    Failure::TooLong
                } else {
                    Failure::Disconnected(words(error.as_ref()))
                }
            })?;
            Ok(Response { status: head.status, headers: head.headers, body: body.to_bytes() })
        };
        tokio::time::timeout(limit, whole).await.unwrap_or(Err(Failure::TimedOut))
    }
}

fn failure(error: &hyper_util::client::legacy::Error) -> Failure {
    let words = words(error);
    // Cancelled is hyper's word for a request that its connection never took.
    let is_cancelled = causes(error)
        .any(|cause| cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled));
    if error.is_connect() || is_cancelled { Failure::Unreached(words) } else { Failure::Disconnected(words) }
}

fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn StdError + 'static)| (*error).source())
}

/// The chain of causes in one line; the outermost says only "client error".
fn words(error: &(dyn StdError + 'static)) -> String {
    let mut parts: Vec<String> = causes(error).map(ToString::to_string).collect();
    if parts.len() > 1 {
        parts.remove(0);
    }
    parts.dedup();
    parts.join(": ")
}
