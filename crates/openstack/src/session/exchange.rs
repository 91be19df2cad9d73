//! Sends one request: through the gates, over the connection, and its answer through the gates again.

use http::{HeaderValue, Request as HttpRequest, header};
use http_body_util::Full;
use tokio::time::Instant;

use super::{
    Request, Session,
    transport::{Failure, Response},
};
use crate::{Answer, Delivery, Error, RefusalKind, Verb, error::read_refusal};

const USER_AGENT: &str = concat!("hangar/", env!("CARGO_PKG_VERSION"));

impl Session {
    /// Sends a request as it is. A status that is no success comes back as a response.
    pub(super) async fn exchange(
        &self,
        request: &Request,
        base: &str,
        token: Option<&HeaderValue>,
    ) -> Result<Response, Error> {
        let call = &request.call;
        let http = http_request(request, base, token)
            .map_err(|error| Error::Unreached { call: call.clone(), why: error.to_string() })?;
        let limit = self.inner.options.limits.of(call);
        for gate in &self.inner.options.gates {
            gate.before(call, limit).map_err(|why| Error::Stopped { call: call.clone(), why })?;
        }
        let started = Instant::now();
        let result = self.inner.transport.exchange(http, limit, longest(call.verb)).await;
        let took = started.elapsed();
        let answer = match &result {
            Ok(response) => Answer::Status(response.status),
            Err(Failure::Unreached(_)) => Answer::Unreached,
            Err(Failure::Disconnected(_) | Failure::TooLong) => Answer::Disconnected,
            Err(Failure::TimedOut) => Answer::TimedOut,
        };
        let request_id =
            result.as_ref().ok().and_then(|response| response.headers.get("x-openstack-request-id"));
        tracing::debug!(%call, ?answer, ?took, ?request_id, "cloud call");
        let mut withheld = None;
        for gate in &self.inner.options.gates {
            if let Delivery::Withhold(why) = gate.after(call, answer, took) {
                withheld = Some(why);
            }
        }
        if let Some(why) = withheld {
            return Err(Error::Lost { call: call.clone(), why: why.to_owned() });
        }
        result.map_err(|failure| match failure {
            Failure::Unreached(why) => Error::Unreached { call: call.clone(), why },
            Failure::Disconnected(why) => Error::Lost { call: call.clone(), why },
            Failure::TimedOut => Error::TimedOut { call: call.clone(), limit },
            Failure::TooLong => {
                let why = format!("longer than {} MiB", longest(call.verb) >> 20);
                Error::Malformed { call: call.clone(), why }
            }
        })
    }

    /// A response that is no success, as an error without anything secret in it.
    pub(super) fn refused(
        &self,
        request: &Request,
        response: &Response,
        token: Option<&HeaderValue>,
    ) -> Error {
        let token = token.and_then(|token| token.to_str().ok());
        let known: Vec<&str> = std::iter::once(self.inner.config.secret())
            .chain(&request.secret)
            .map(secrecy::ExposeSecret::expose_secret)
            .chain(token)
            .collect();
        let refusal = read_refusal(&request.call, response.status, &response.headers, &response.body, &known);
        if refusal.kind != RefusalKind::NotFound {
            // The id is here for whoever asks the cloud's operator; texts for people leave it out.
            tracing::info!(%refusal, request_id = refusal.request_id, "cloud refused a call");
        }
        Error::Refused(Box::new(refusal))
    }
}

/// The longest answer that is read, in bytes: a page of a thousand servers is about 3 MB, one object a few KB.
fn longest(verb: Verb) -> usize {
    match verb {
        Verb::List => 16 << 20,
        _ => 2 << 20,
    }
}

fn http_request(
    request: &Request,
    base: &str,
    token: Option<&HeaderValue>,
) -> Result<HttpRequest<Full<hyper::body::Bytes>>, http::Error> {
    let mut builder = HttpRequest::builder()
        .method(request.method())
        .uri(request.url(base))
        .header(header::ACCEPT, "application/json")
        .header(header::USER_AGENT, USER_AGENT);
    if let Some(token) = token {
        builder = builder.header("x-auth-token", token);
    }
    if let Some(version) = request.microversion {
        builder = builder
            .header("openstack-api-version", format!("{} {version}", request.call.service))
            .header("x-openstack-nova-api-version", version);
    }
    if request.body.is_some() {
        builder = builder.header(header::CONTENT_TYPE, "application/json");
    }
    builder.body(Full::new(request.body.clone().unwrap_or_default()))
}
