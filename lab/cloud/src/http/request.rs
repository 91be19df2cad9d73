//! A request, read to its end.

use std::time::Duration;

use http::{HeaderMap, Method};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Bytes, Incoming};
use serde_json::{Map, Value};

use crate::model::Refusal;

/// Room for a server with 64 KiB of user data many times over; images are not uploaded here.
const LARGEST_BODY: usize = 4 * 1024 * 1024;

/// For a body to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);

/// A call as it came in.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) path: String,
    /// The path's parts, decoded, without empty ones.
    pub(crate) segments: Vec<String>,
    /// The query, in order.
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Request {
    pub(crate) async fn read(incoming: http::Request<Incoming>) -> Result<Self, Refusal> {
        let (parts, body) = incoming.into_parts();
        let body = tokio::time::timeout(BODY_TIME, Limited::new(body, LARGEST_BODY).collect()).await;
        let body = body.map_err(|_| Refusal::new(408, "RequestTimeout", "The request took too long."))?;
        let body =
            body.map_err(|_| Refusal::new(413, "RequestTooLarge", "Request is too large."))?.to_bytes();
        Ok(Self::new(parts.method, &parts.uri, parts.headers, body))
    }

    pub(crate) fn new(method: Method, uri: &http::Uri, headers: HeaderMap, body: Bytes) -> Self {
        let path = uri.path().to_owned();
        let segments = path.split('/').filter(|part| !part.is_empty()).map(decode).collect();
        let query = uri.query().unwrap_or_default();
        let query = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        Self { method, path, segments, query, headers, body }
    }

    /// The first value of a query parameter.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub(crate) fn is_read(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD)
    }

    /// Path and query as they came, without what is secret (nothing is, in OpenStack's queries).
    pub(crate) fn path_and_query(&self) -> String {
        let query = self.encode_query(&self.query);
        if query.is_empty() { self.path.clone() } else { format!("{}?{query}", self.path) }
    }

    /// Path and query with another marker: the next page.
    pub(crate) fn next_page(&self, marker: &str) -> String {
        let mut query: Vec<_> =
            self.query.iter().filter(|(key, _)| key != "marker" && key != "page_reverse").cloned().collect();
        query.push(("marker".into(), marker.into()));
        format!("{}?{}", self.path, self.encode_query(&query))
    }

    #[allow(clippy::unused_self, reason = "reads as what it is about")]
    fn encode_query(&self, pairs: &[(String, String)]) -> String {
        form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
    }

    /// The body's object.
    pub(crate) fn json(&self) -> Result<Map<String, Value>, Refusal> {
        match serde_json::from_slice(&self.body) {
            Ok(Value::Object(object)) => Ok(object),
            _ => Err(Refusal::bad("Malformed request body")),
        }
    }

    /// The object under a key of the body.
    pub(crate) fn object(&self, key: &str) -> Result<Map<String, Value>, Refusal> {
        match self.json()?.remove(key) {
            Some(Value::Object(object)) => Ok(object),
            _ => Err(Refusal::bad(format!("Unable to find '{key}' in request body"))),
        }
    }
}

/// A path's part without percent signs. A plus is a plus here, unlike in queries.
fn decode(part: &str) -> String {
    let guarded = part.replace('+', "%2B");
    let mut pairs = form_urlencoded::parse(guarded.as_bytes());
    match pairs.next() {
        Some((key, value)) if value.is_empty() && !part.contains(['=', '&']) => key.into_owned(),
        _ => part.to_owned(),
    }
}
