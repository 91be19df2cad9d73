//! The tower layer that names calls, asks gates and limits time.
//!
//! Answers of everything but watches (and logs, which follow) are read to their end here, so that the time limit covers
//! the whole call and `after` means committed and complete. The client would buffer them anyway.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use http_body::{Body as HttpBody, Frame};
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use hyper::body::Bytes;
use kube::client::Body;
use tokio::time::Instant;
use tower::{BoxError, Layer, Service};

use super::{Answer, Call, CallGate, Delivery, Stopped, Verb};

/// A call whose time was over. Reaches callers as `kube::Error::Service`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}: no answer within {limit:?}")]
pub struct TimedOut {
    /// Which call.
    pub call: String,
    /// The limit.
    pub limit: Duration,
}

/// Names calls, asks gates in order, limits time.
#[derive(Clone)]
pub struct CallLayer {
    gates: Arc<[Arc<dyn CallGate>]>,
    limit: Duration,
    write_limit: Duration,
}

impl CallLayer {
    /// No call takes longer than the limit; a watch has to be opened within it.
    pub fn new(limit: Duration, gates: impl IntoIterator<Item = Arc<dyn CallGate>>) -> Self {
        Self { gates: gates.into_iter().collect(), limit, write_limit: limit }
    }

    /// No write takes longer than this: a leader's writes must end within its lease, however long a list may take.
    #[must_use]
    pub fn write_limit(mut self, limit: Duration) -> Self {
        self.write_limit = limit.min(self.limit);
        self
    }
}

impl<S> Layer<S> for CallLayer {
    type Service = CallService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        CallService { inner, layer: self.clone() }
    }
}

/// See [`CallLayer`].
#[derive(Clone)]
pub struct CallService<S> {
    inner: S,
    layer: CallLayer,
}

impl<S, B> Service<Request<Body>> for CallService<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<UnsyncBoxBody<Bytes, BoxError>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let layer = self.layer.clone();
        let mut call = Call::of(&request);
        let content = (call.verb == Verb::Create).then(|| request.body().try_clone()).flatten();
        // The inner future is made now, because readiness was promised now; it sends nothing before it is polled.
        // An inner service that did send eagerly would make `before` useless.
        let sent = self.inner.call(request);
        Box::pin(async move {
            if let Some(content) = content {
                call.named_by(&content.collect_bytes().await?);
            }
            layer.guard(call, sent).await
        })
    }
}

impl CallLayer {
    async fn guard<F, B, E>(
        self,
        call: Call,
        sent: F,
    ) -> Result<Response<UnsyncBoxBody<Bytes, BoxError>>, BoxError>
    where
        F: Future<Output = Result<Response<B>, E>>,
        E: Into<BoxError>,
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        for gate in self.gates.iter() {
            gate.before(&call).map_err(|why| Stopped { call: call.to_string(), why })?;
        }
        let started = Instant::now();
        let whole = async {
            let (head, body) = sent.await.map_err(Into::into)?.into_parts();
            if is_stream(&call) {
                return Ok(Response::from_parts(head, self.watched(&call, body)));
            }
            let body = body.collect().await.map_err(Into::into)?.to_bytes();
            Ok(Response::from_parts(head, whole_body(body)))
        };
        let limit = if call.verb.is_write() { self.write_limit } else { self.limit };
        let result: Result<_, BoxError> = match tokio::time::timeout(limit, whole).await {
            Ok(result) => result,
            Err(_) => Err(TimedOut { call: call.to_string(), limit }.into()),
        };
        let answer = match &result {
            Ok(response) => Answer::Status(response.status()),
            Err(error) if error.is::<TimedOut>() => Answer::TimedOut,
            Err(_) => Answer::Disconnected,
        };
        let mut withheld = None;
        for gate in self.gates.iter() {
            if let Delivery::Withhold(why) = gate.after(&call, answer, started.elapsed()) {
                withheld = Some(why);
            }
        }
        match withheld {
            Some(why) => Err(Stopped { call: call.to_string(), why }.into()),
            None => result,
        }
    }

    fn watched<B>(&self, call: &Call, body: B) -> UnsyncBoxBody<Bytes, BoxError>
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let body = body.map_err(Into::into).boxed_unsync();
        Severable { body, call: call.to_string(), gates: Arc::clone(&self.gates) }.boxed_unsync()
    }
}

fn is_stream(call: &Call) -> bool {
    call.verb == Verb::Watch || call.resource.ends_with("/log")
}

fn whole_body(bytes: Bytes) -> UnsyncBoxBody<Bytes, BoxError> {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

/// A stream that ends with an error once a gate is severed.
struct Severable {
    body: UnsyncBoxBody<Bytes, BoxError>,
    call: String,
    gates: Arc<[Arc<dyn CallGate>]>,
}

impl HttpBody for Severable {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.gates.iter().any(|gate| gate.is_severed()) {
            let stopped = Stopped { call: self.call.clone(), why: "the connection is severed" };
            return Poll::Ready(Some(Err(stopped.into())));
        }
        Pin::new(&mut self.body).poll_frame(context)
    }
}
