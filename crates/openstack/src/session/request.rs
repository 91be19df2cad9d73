//! Builds a request, before it has an address and a token.

use http::Method;
use hyper::body::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::SecretString;
use serde_json::Value;

use crate::{Call, Service, Verb};

/// Everything but the unreserved characters of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Text as one segment of a path.
pub(crate) fn segment(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// A request before it has an address and a token.
pub(crate) struct Request {
    pub(super) call: Call,
    pub(super) path: String,
    /// Encoded, without the question mark.
    pub(super) query: String,
    pub(super) body: Option<Bytes>,
    pub(super) microversion: Option<&'static str>,
    /// A part of the body that a service must not be quoted with.
    pub(super) secret: Option<SecretString>,
}

impl Request {
    pub(crate) fn new(verb: Verb, service: Service, kind: &'static str, path: String) -> Self {
        let call = Call { verb, service, kind, name: None, id: None };
        Self { call, path, query: String::new(), body: None, microversion: None, secret: None }
    }

    pub(crate) fn name(mut self, name: Option<&str>) -> Self {
        self.call.name = name.map(str::to_owned);
        self
    }

    pub(crate) fn id(mut self, id: &str) -> Self {
        self.call.id = Some(id.to_owned());
        self
    }

    pub(crate) fn query<K: AsRef<str>>(mut self, pairs: impl IntoIterator<Item = (K, String)>) -> Self {
        let pairs =
            pairs.into_iter().map(|(key, value)| format!("{}={}", segment(key.as_ref()), segment(&value)));
        self.query = pairs.collect::<Vec<_>>().join("&");
        self
    }

    pub(crate) fn body(mut self, body: &Value) -> Self {
        self.body = Some(Bytes::from(body.to_string()));
        self
    }

    pub(crate) fn microversion(mut self, version: &'static str) -> Self {
        self.microversion = Some(version);
        self
    }

    pub(crate) fn secret(mut self, secret: &str) -> Self {
        self.secret = Some(SecretString::from(secret));
        self
    }

    pub(super) fn method(&self) -> Method {
        match self.call.verb {
            Verb::Get | Verb::List => Method::GET,
            Verb::Create | Verb::Authenticate => Method::POST,
            Verb::Update => Method::PUT,
            Verb::Delete => Method::DELETE,
        }
    }

    /// The address, below that of the service.
    pub(super) fn url(&self, base: &str) -> String {
        let separator = if self.query.is_empty() { "" } else { "?" };
        format!("{}/{}{separator}{}", base.trim_end_matches('/'), self.path, self.query)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_users_write_cannot_leave_its_place() {
        let request =
            Request::new(Verb::List, Service::Network, "port", format!("ports/{}", segment("../x?y")))
                .query([("name", "a&b=c d/ü".to_owned()), ("router:external", "true".to_owned())]);
        assert_eq!(
            request.url("http://neutron/v2.0/"),
            "http://neutron/v2.0/ports/..%2Fx%3Fy?name=a%26b%3Dc%20d%2F%C3%BC&router%3Aexternal=true"
        );
    }
}
