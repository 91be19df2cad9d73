//! Reads the error bodies of the services.
//!
//! Each service has its own error body. Nova: `{"badRequest": {"code", "message"}}` with the fault as key. Neutron:
//! `{"NeutronError": {"type", "message", "detail"}}`. Keystone: `{"error": {"code", "title", "message"}}`. Glance (and
//! everything that never reached a controller): `{"code": "404 Not Found", "title", "message"}`. Proxies: HTML.
//!
//! A 404 counts as "this object does not exist" only with the message of a controller, never with that of a proxy or of
//! a router that knows no such path: otherwise a wrong address in the catalogue would make a whole project look empty.

use std::time::Duration;

use http::{HeaderMap, StatusCode, header::RETRY_AFTER};
use serde_json::Value;

use crate::{Call, Service, Verb};

/// Longest text of a service that is kept: enough for any message, too short for an HTML page in a condition.
const MESSAGE_LIMIT: usize = 1024;

/// What the service said.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {message} ({status})")]
pub struct Refusal {
    pub call: Call,
    /// With which HTTP status.
    pub status: u16,
    pub kind: RefusalKind,
    /// The service's name for it, where it has one: `OverQuota`, `NetworkInUse`, `itemNotFound`.
    pub fault: Option<String>,
    /// The service's message, in one line.
    pub message: String,
    /// The id under which the cloud's operator finds this call in the logs; not in any text, for it is new each time.
    pub request_id: Option<String>,
    /// How long the service asked to be left alone.
    pub retry_after: Option<Duration>,
}

/// What a refusal means for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RefusalKind {
    /// The input is wrong (400, 413, 415, 422): the same call will fail again.
    Invalid,
    /// The credentials were not accepted, also not after a new login (401).
    Unauthorized,
    /// Policy forbids it (403).
    Forbidden,
    /// It names an object that does not exist, by the message of the service (404).
    NotFound,
    /// The address is wrong: a 404 or 405 that is not about an object.
    NoSuchPath,
    /// The state of things does not allow it now (409).
    Conflict,
    /// Another call is changing the same subnet or network at the moment (409 of Neutron).
    Busy,
    /// A quota is used up (Nova 403, Neutron 409, older services 413).
    Quota,
    /// Too many calls (429; older services 413 with `Retry-After`).
    RateLimited,
    /// The service is not there for now (503).
    Unavailable,
    /// The service failed (other 5xx).
    Broken,
    /// Any other status: a redirect, something new.
    Unexpected,
}

impl RefusalKind {
    /// True when it passes by itself.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Busy | Self::RateLimited | Self::Unavailable | Self::Broken)
    }

    /// Stable, one word in `PascalCase`.
    pub fn category(self) -> &'static str {
        match self {
            Self::Invalid => "InvalidRequest",
            Self::Unauthorized => "Unauthorized",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "NotFound",
            Self::NoSuchPath => "NoSuchPath",
            Self::Conflict => "Conflict",
            Self::Busy => "CloudBusy",
            Self::Quota => "QuotaExceeded",
            Self::RateLimited => "RateLimited",
            Self::Unavailable => "CloudUnavailable",
            Self::Broken => "CloudError",
            Self::Unexpected => "UnexpectedStatus",
        }
    }
}

/// Reads an answer that is not a success. `secrets` are taken out of its text.
pub(crate) fn read(
    call: &Call,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    secrets: &[&str],
) -> Refusal {
    let said = Said::of(body, secrets);
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let mut words = if said.message.is_empty() {
        status.canonical_reason().unwrap_or("no reason given").to_owned()
    } else {
        said.message.clone()
    };
    let request_id = text("x-openstack-request-id").or_else(|| text("x-compute-request-id"));
    if let Some(id) = request_id.filter(|id| !id.is_empty()) {
        words = words.replace(id, "…");
    }
    let retry_after = text(RETRY_AFTER.as_str()).and_then(retry_after);
    Refusal {
        status: status.as_u16(),
        kind: kind(call, status, &said, retry_after),
        fault: said.fault,
        message: one_line(&words),
        request_id: request_id.map(str::to_owned),
        retry_after,
        call: call.clone(),
    }
}

/// A body, whosever it is.
#[derive(Default)]
struct Said {
    fault: Option<String>,
    message: String,
    is_from_controller: bool,
}

impl Said {
    /// What Neutron answers where something is to be deleted and others use it. It gives the same answer to calls that
    /// delete nothing, while the subnet or the network is being changed.
    fn is_in_use(&self) -> bool {
        matches!(self.fault.as_deref(), Some("SubnetInUse" | "NetworkInUse"))
    }

    /// Secrets go first: markup that is taken out of the middle of one would leave the rest of it unrecognised.
    fn of(body: &[u8], secrets: &[&str]) -> Self {
        let clean = |text: &str| without(text, secrets);
        let Ok(Value::Object(fields)) = serde_json::from_slice::<Value>(body) else {
            return Self {
                message: without_markup(&clean(&String::from_utf8_lossy(body))),
                ..Self::default()
            };
        };
        if let Some(neutron) = fields.get("NeutronError") {
            let fault = neutron.get("type").and_then(Value::as_str).map(clean);
            let message =
                neutron.get("message").or(Some(neutron)).and_then(Value::as_str).unwrap_or_default();
            // `HTTPNotFound` is the web framework's, for a path that leads nowhere.
            let is_from_controller = fault.as_deref().is_some_and(|fault| !fault.starts_with("HTTP"));
            return Self { fault, message: clean(message), is_from_controller };
        }
        if let Some(message) = fields.get("message").and_then(Value::as_str) {
            let fault = fields.get("title").and_then(Value::as_str).map(clean);
            return Self { fault, message: without_markup(&clean(message)), is_from_controller: false };
        }
        let Some((fault, inner)) = fields.iter().find(|(_, value)| value.get("message").is_some()) else {
            return Self { message: clean(&Value::Object(fields).to_string()), ..Self::default() };
        };
        let message = inner.get("message").and_then(Value::as_str).unwrap_or_default();
        Self { fault: Some(clean(fault)), message: clean(message), is_from_controller: true }
    }

    fn is_quota(&self) -> bool {
        let words = self.message.to_lowercase();
        self.fault.as_deref() == Some("OverQuota")
            || [
                "quota exceeded",
                "exceeds quota",
                "quota has been met",
                "is over a limit",
                "exceeded for quota",
            ]
            .iter()
            .any(|sign| words.contains(sign))
    }
}

fn kind(call: &Call, status: StatusCode, said: &Said, retry_after: Option<Duration>) -> RefusalKind {
    match status.as_u16() {
        403 | 409 | 413 if said.is_quota() => RefusalKind::Quota,
        // Zero is what Nova adds to a quota's 413.
        413 if retry_after.is_some_and(|asked| !asked.is_zero()) => RefusalKind::RateLimited,
        413 if said.fault.as_deref() == Some("overLimit") => RefusalKind::Quota,
        400 | 413 | 415 | 422 => RefusalKind::Invalid,
        401 => RefusalKind::Unauthorized,
        403 => RefusalKind::Forbidden,
        404 if said.is_from_controller || is_glance_missing(call.service, said) => RefusalKind::NotFound,
        404 | 405 => RefusalKind::NoSuchPath,
        409 if call.verb != Verb::Delete && said.is_in_use() => RefusalKind::Busy,
        409 => RefusalKind::Conflict,
        429 => RefusalKind::RateLimited,
        503 => RefusalKind::Unavailable,
        500..=599 => RefusalKind::Broken,
        _ => RefusalKind::Unexpected,
    }
}

/// Glance speaks through its web framework, but its controllers name the image.
fn is_glance_missing(service: Service, said: &Said) -> bool {
    service == Service::Image && said.message.contains("No image found with ID")
}

/// Seconds, or a date; a date in the past means now.
fn retry_after(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?;
    Some(
        Duration::try_from(date.timestamp().duration_since(jiff::Timestamp::now())).unwrap_or(Duration::ZERO),
    )
}

/// Takes secrets out of a text: as they are, as JSON writes them, as HTML does.
fn without(text: &str, secrets: &[&str]) -> String {
    let mut text = text.to_owned();
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        let quoted = Value::from(*secret).to_string();
        let escaped = quoted.trim_start_matches('"').strip_suffix('"').unwrap_or(&quoted);
        let html = secret
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
            .replace('"', "&quot;")
            .replace('\'', "&#x27;");
        for form in [*secret, escaped, &html] {
            if text.contains(form) {
                text = text.replace(form, "[redacted]");
            }
        }
    }
    text
}

fn without_markup(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut is_inside = false;
    for character in text.chars() {
        match character {
            '<' => is_inside = true,
            '>' if is_inside => {
                is_inside = false;
                plain.push(' ');
            }
            _ if !is_inside => plain.push(character),
            _ => {}
        }
    }
    plain
}

fn one_line(text: &str) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.len() > MESSAGE_LIMIT {
        let end = (0..=MESSAGE_LIMIT).rev().find(|&end| line.is_char_boundary(end)).unwrap_or_default();
        line.truncate(end);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(service: Service, status: u16, body: &str) -> Refusal {
        let call = Call { verb: Verb::Get, service, kind: "thing", name: None, id: None };
        read(
            &call,
            StatusCode::from_u16(status).unwrap(),
            &HeaderMap::new(),
            body.as_bytes(),
            &["s3cret", "q\"t"],
        )
    }

    /// Bodies as the services write them.
    #[test]
    fn each_service_says_it_in_its_own_words() {
        use RefusalKind as Kind;
        let cases = [
            (
                Service::Compute,
                404,
                r#"{"itemNotFound":{"code":404,"message":"Instance x could not be found."}}"#,
                Kind::NotFound,
                "Instance x could not be found.",
            ),
            (
                Service::Compute,
                404,
                r#"{"message":"The resource could not be found.<br /><br />\n\n\n","code":"404 Not Found","title":"Not Found"}"#,
                Kind::NoSuchPath,
                "The resource could not be found.",
            ),
            (
                Service::Compute,
                403,
                r#"{"forbidden":{"code":403,"message":"Quota exceeded for instances: Requested 1, but already used 10 of 10 instances"}}"#,
                Kind::Quota,
                "Quota exceeded for instances: Requested 1, but already used 10 of 10 instances",
            ),
            (
                Service::Compute,
                403,
                r#"{"forbidden":{"code":403,"message":"Policy doesn't allow os_compute_api:servers:create to be performed."}}"#,
                Kind::Forbidden,
                "Policy doesn't allow os_compute_api:servers:create to be performed.",
            ),
            (
                Service::Compute,
                409,
                r#"{"conflictingRequest":{"code":409,"message":"Port p is still in use."}}"#,
                Kind::Conflict,
                "Port p is still in use.",
            ),
            (
                Service::Network,
                409,
                r#"{"NeutronError":{"type":"OverQuota","message":"Quota exceeded for resources: ['network'].","detail":""}}"#,
                Kind::Quota,
                "Quota exceeded for resources: ['network'].",
            ),
            (
                Service::Network,
                409,
                // Nothing is being deleted here.
                r#"{"NeutronError":{"type":"NetworkInUse","message":"Unable to complete operation on network n.","detail":""}}"#,
                Kind::Busy,
                "Unable to complete operation on network n.",
            ),
            (
                Service::Network,
                404,
                r#"{"NeutronError":{"type":"PortNotFound","message":"Port p could not be found.","detail":""}}"#,
                Kind::NotFound,
                "Port p could not be found.",
            ),
            (
                Service::Network,
                404,
                r#"{"NeutronError":{"type":"HTTPNotFound","message":"The resource could not be found.","detail":""}}"#,
                Kind::NoSuchPath,
                "The resource could not be found.",
            ),
            (
                Service::Network,
                400,
                r#"{"NeutronError":{"type":"InvalidInput","message":"Invalid input for operation: x.","detail":""}}"#,
                Kind::Invalid,
                "Invalid input for operation: x.",
            ),
            (
                Service::Image,
                404,
                "<html>\n <head>\n  <title>404 Not Found</title>\n </head>\n <body>\n  <h1>404 Not Found</h1>\n  No image found with ID x<br /><br />\n\n\n\n </body>\n</html>",
                Kind::NotFound,
                "404 Not Found 404 Not Found No image found with ID x",
            ),
            (Service::Image, 404, "<html><h1>404 Not Found</h1></html>", Kind::NoSuchPath, "404 Not Found"),
            (
                Service::Identity,
                401,
                r#"{"error":{"code":401,"message":"The request you have made requires authentication.","title":"Unauthorized"}}"#,
                Kind::Unauthorized,
                "The request you have made requires authentication.",
            ),
            (Service::Compute, 503, "", Kind::Unavailable, "Service Unavailable"),
            (
                Service::Network,
                404,
                "<html><body>no such backend</body></html>",
                Kind::NoSuchPath,
                "no such backend",
            ),
        ];
        for (service, status, body, kind, message) in cases {
            let refusal = refusal(service, status, body);
            assert_eq!((refusal.kind, refusal.message.as_str()), (kind, message), "{body}");
        }
    }

    #[test]
    fn what_a_service_echoes_of_the_request_is_taken_out() {
        let body = r#"{"badRequest":{"code":400,"message":"Invalid input: {\"a\": \"s3cret\", \"b\": \"q\\\"t\"}, q\"t"}}"#;
        let refusal = refusal(Service::Compute, 400, body);
        assert_eq!(refusal.message, r#"Invalid input: {"a": "[redacted]", "b": "[redacted]"}, [redacted]"#);
    }

    #[test]
    fn markup_hides_no_secret() {
        let call = Call { verb: Verb::Get, service: Service::Image, kind: "image", name: None, id: None };
        let message = |body: &str| {
            read(&call, StatusCode::BAD_REQUEST, &HeaderMap::new(), body.as_bytes(), &["pa<ss>word"]).message
        };
        assert_eq!(message("<b>bad: pa<ss>word</b>"), "bad: [redacted]");
        assert_eq!(message("<b>bad: pa&lt;ss&gt;word</b>"), "bad: [redacted]");
        assert_eq!(message(r#"{"message":"bad: pa<ss>word<br />","title":"Bad"}"#), "bad: [redacted]");
    }

    #[test]
    fn when_to_come_back_is_seconds_or_a_date() {
        assert_eq!(retry_after("7"), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        assert!(retry_after("Wed, 21 Oct 2099 07:28:00 GMT") > Some(Duration::from_secs(3600)));
        assert_eq!(retry_after("soon"), None);
    }

    #[test]
    fn long_words_are_cut_between_characters() {
        let line = one_line(&"ü".repeat(2000));
        assert!(line.ends_with('…') && line.len() <= MESSAGE_LIMIT + '…'.len_utf8());
    }

    /// Neutron has one name for both: only what is deleted can be in use.
    #[test]
    fn a_subnet_that_is_being_changed_is_waited_for() {
        let body = r#"{"NeutronError":{"type":"SubnetInUse","message":"Unable to complete operation on subnet x: One or more ports have an IP allocation from this subnet.","detail":""}}"#;
        let kind = |verb| {
            let call = Call { verb, service: Service::Network, kind: "port", name: None, id: None };
            read(&call, StatusCode::CONFLICT, &HeaderMap::new(), body.as_bytes(), &[]).kind
        };
        assert_eq!([Verb::Create, Verb::Update].map(kind), [RefusalKind::Busy; 2]);
        assert_eq!(kind(Verb::Delete), RefusalKind::Conflict);
        assert!(RefusalKind::Busy.is_transient() && !RefusalKind::Conflict.is_transient());
    }
}
