//! An answer, before it is serialised.

use http::{HeaderName, HeaderValue, Response};
use http_body_util::Full;
use hyper::body::Bytes;
use serde_json::Value;
use uuid::Uuid;

#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    content_type: Option<&'static str>,
    body: Vec<u8>,
    /// The driver is to be asked for this server's console, for so many lines.
    pub(crate) console: Option<(Uuid, Option<usize>)>,
}

impl Reply {
    pub(crate) fn empty(status: u16) -> Self {
        Self { status, headers: vec![], content_type: None, body: vec![], console: None }
    }

    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self {
            content_type: Some("application/json"),
            body: body.to_string().into_bytes(),
            ..Self::empty(status)
        }
    }

    pub(crate) fn ok(body: &Value) -> Self {
        Self::json(200, body)
    }

    pub(crate) fn text(status: u16, content_type: &'static str, body: impl Into<String>) -> Self {
        Self { content_type: Some(content_type), body: body.into().into_bytes(), ..Self::empty(status) }
    }

    pub(crate) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn response(self, request_id: &str) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(Bytes::from(self.body)));
        *response.status_mut() =
            http::StatusCode::from_u16(self.status).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        if let Some(content_type) = self.content_type {
            headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        let all = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in all.chain([("x-openstack-request-id", request_id)]) {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                headers.append(name, value);
            }
        }
        response
    }
}
