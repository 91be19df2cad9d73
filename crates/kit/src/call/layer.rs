//! The tower layer that names calls, asks gates and limits time and size.
//!
//! Answers are read to their end here, except those of watches and of logs that follow, so that the time limit covers
//! the whole call and `after` means committed and complete. The client would buffer them anyway, but without a limit on
//! their size, or on the length of a stream's line: the server could fill our memory. So both have a limit here. What
//! many servers may fill together is the matter of `room`.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{
    Request, Response, StatusCode,
    header::{DATE, RETRY_AFTER},
};
use http_body::{Body as HttpBody, Frame};
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use hyper::body::Bytes;
use jiff::Timestamp;
use kube::client::Body;
use tokio::time::{Instant, Sleep};
use tower::{BoxError, Layer, Service};

use super::room::{self, Reason, Room, Weighed};
use super::{Answer, Call, CallGate, Delivery, Stopped, Verb, clock};

/// Bytes of an answer that is no success: a message, of some kilobytes at most.
const REFUSAL_LIMIT: usize = 1 << 20;

/// A watch on which nothing came for this long is dead. API servers send a bookmark every minute.
const SILENCE_LIMIT: Duration = Duration::from_mins(5);

/// A call whose time was over. Reaches callers as `kube::Error::Service`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}: no answer within {limit:?}")]
pub struct TimedOut {
    pub call: String,
    pub limit: Duration,
}

/// An answer, or a line of a stream, with more bytes than are read. Reaches callers as `kube::Error::Service`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}: the answer is larger than {}", size(*limit))]
pub struct TooLarge {
    pub call: String,
    /// The limit in bytes.
    pub limit: usize,
}

/// An answer that was not read to its end. Reaches callers as `kube::Error::Service`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call}: {why}")]
pub struct Unread {
    pub call: String,
    pub why: Reason,
}

fn size(bytes: usize) -> String {
    const MIB: usize = 1 << 20;
    if bytes.is_multiple_of(MIB) { format!("{} MiB", bytes / MIB) } else { format!("{bytes} bytes") }
}

/// Names calls, asks gates in order, limits time and size.
#[derive(Clone)]
pub struct CallLayer {
    gates: Arc<[Arc<dyn CallGate>]>,
    limit: Duration,
    write_limit: Duration,
    answer_limit: usize,
    room: Option<Room>,
}

impl CallLayer {
    /// No call takes longer than the limit; a watch has to be opened within it.
    pub fn new(limit: Duration, gates: impl IntoIterator<Item = Arc<dyn CallGate>>) -> Self {
        let gates = gates.into_iter().collect();
        Self { gates, limit, write_limit: limit, answer_limit: usize::MAX, room: None }
    }

    /// No answer is read beyond this many bytes, and no line of a stream.
    #[must_use]
    pub fn answer_limit(mut self, bytes: usize) -> Self {
        self.answer_limit = bytes;
        self
    }

    /// Answers take no more than there is room for.
    #[must_use]
    pub fn room(mut self, room: Option<Room>) -> Self {
        self.room = room;
        self
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
            gate.before(&call).map_err(|why| Stopped { call: call.to_string(), why, was_sent: false })?;
        }
        let started = Instant::now();
        let whole = async {
            let (head, body) = sent.await.map_err(Into::into)?.into_parts();
            if is_stream(&call) && head.status.is_success() {
                return Ok(Response::from_parts(head, self.watched(&call, body)));
            }
            let limit = if head.status.is_success() {
                self.answer_limit
            } else {
                self.answer_limit.min(REFUSAL_LIMIT)
            };
            let bytes = self.whole(&call, body, limit).await?;
            Ok(Response::from_parts(head, whole_body(bytes)))
        };
        let limit = if call.verb.is_write() { self.write_limit } else { self.limit };
        let result: Result<_, BoxError> = match tokio::time::timeout(limit, whole).await {
            Ok(result) => result,
            Err(_) => Err(TimedOut { call: call.to_string(), limit }.into()),
        };
        let answer = match &result {
            Ok(response) => Answer::Status(response.status()),
            Err(error) if error.is::<TimedOut>() => Answer::TimedOut,
            Err(error) if error.is::<TooLarge>() => Answer::TooLarge,
            Err(error) if let Some(unread) = error.downcast_ref::<Unread>() => match unread.why {
                Reason::NoRoom => Answer::NoRoom,
                Reason::TooHeavy => Answer::TooLarge,
                Reason::TooSlow => Answer::TimedOut,
            },
            Err(_) => Answer::Disconnected,
        };
        if let Some(length) = result.as_ref().ok().and_then(retry_after) {
            self.gates.iter().for_each(|gate| gate.told_to_wait(&call, length));
        }
        if let Some(time) = result.as_ref().ok().and_then(served_at) {
            self.gates.iter().for_each(|gate| gate.told_the_time(time));
        }
        let mut withheld = None;
        for gate in self.gates.iter() {
            if let Delivery::Withhold(why) = gate.after(&call, answer, started.elapsed()) {
                withheld = Some(why);
            }
        }
        match withheld {
            Some(why) => Err(Stopped { call: call.to_string(), why, was_sent: true }.into()),
            None => result,
        }
    }

    /// Reads an answer to its end.
    async fn whole<B>(&self, call: &Call, body: B, limit: usize) -> Result<Bytes, BoxError>
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let mut body = Weighed::new(body.map_err(Into::into).boxed_unsync(), self.room.clone(), false);
        // One buffer, not a list of pieces: each of those has a cost, and may be a single byte.
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|error| named(error, call))?.into_data() else { continue };
            if data.len() > limit.saturating_sub(bytes.len()) {
                return Err(TooLarge { call: call.to_string(), limit }.into());
            }
            bytes.extend_from_slice(&data);
        }
        Ok(room::taken(bytes, body.place()))
    }

    fn watched<B>(&self, call: &Call, body: B) -> UnsyncBoxBody<Bytes, BoxError>
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let body = Weighed::new(body.map_err(Into::into).boxed_unsync(), self.room.clone(), true);
        let whose = call.clone();
        let body = body.map_err(move |error| named(error, &whose)).boxed_unsync();
        let too_large = TooLarge { call: call.to_string(), limit: self.answer_limit };
        // Logs may be silent for as long as their pod is.
        let silence = (call.verb == Verb::Watch).then(|| Box::pin(tokio::time::sleep(SILENCE_LIMIT)));
        Severable { body, too_large, line: 0, silence, gates: Arc::clone(&self.gates) }.boxed_unsync()
    }
}

/// Says whose answer was not read.
fn named(error: BoxError, call: &Call) -> BoxError {
    match error.downcast::<Reason>() {
        Ok(why) => Unread { call: call.to_string(), why: *why }.into(),
        Err(other) => other,
    }
}

fn is_stream(call: &Call) -> bool {
    call.verb == Verb::Watch || call.resource.ends_with("/log")
}

fn whole_body(bytes: Bytes) -> UnsyncBoxBody<Bytes, BoxError> {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

/// How long a server that has too much to do wants to be left alone. A date instead of a number is not sent by API
/// servers.
fn retry_after<B>(response: &Response<B>) -> Option<Duration> {
    if !matches!(response.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        return None;
    }
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// What time it is on the server.
fn served_at<B>(response: &Response<B>) -> Option<Timestamp> {
    clock::date(response.headers().get(DATE)?.to_str().ok()?)
}

/// A stream that ends with an error once a gate is severed, a line is too long, or nothing came for too long.
struct Severable {
    body: UnsyncBoxBody<Bytes, BoxError>,
    /// Says which call, and the limit.
    too_large: TooLarge,
    /// Bytes since the last end of a line.
    line: usize,
    /// Ends when nothing came for too long.
    silence: Option<Pin<Box<Sleep>>>,
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
            let (call, why) = (self.too_large.call.clone(), "the connection is severed");
            return Poll::Ready(Some(Err(Stopped { call, why, was_sent: true }.into())));
        }
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Some(silence) = &mut self.silence {
            if polled.is_ready() {
                silence.as_mut().reset(Instant::now() + SILENCE_LIMIT);
            } else if silence.as_mut().poll(context).is_ready() {
                let (call, limit) = (self.too_large.call.clone(), SILENCE_LIMIT);
                return Poll::Ready(Some(Err(TimedOut { call, limit }.into())));
            }
        }
        if let Poll::Ready(Some(Ok(_))) = &polled {
            self.gates.iter().for_each(|gate| gate.heard());
        }
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            self.line = match data.iter().rposition(|byte| *byte == b'\n') {
                Some(end) => data.len() - end - 1,
                None => self.line.saturating_add(data.len()),
            };
            if self.line > self.too_large.limit {
                return Poll::Ready(Some(Err(self.too_large.clone().into())));
            }
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::stream;
    use http_body_util::StreamBody;
    use tower::ServiceExt as _;

    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    /// A watch on which something comes every minute, so many times, and then nothing.
    async fn watch(times: u32) -> UnsyncBoxBody<Bytes, BoxError> {
        let lines = stream::unfold(0, move |sent| async move {
            if sent == times {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(MINUTE).await;
            Some((Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"{}\n"))), sent + 1))
        });
        let mut body = Some(StreamBody::new(Box::pin(lines)));
        let server = tower::service_fn(move |_: Request<Body>| {
            std::future::ready(body.take().map(Response::new).ok_or("asked once"))
        });
        let request = Request::get("/api/v1/nodes?watch=true").body(Body::empty()).unwrap();
        let service = CallLayer::new(Duration::from_secs(5), []).layer(server);
        service.oneshot(request).await.unwrap().into_body()
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_lives_as_long_as_something_comes_and_not_much_longer() {
        let started = Instant::now();
        let mut body = watch(90).await;
        for _ in 0..90 {
            body.frame().await.unwrap().unwrap();
        }
        assert_eq!(started.elapsed(), MINUTE * 90);
        let error = body.frame().await.unwrap().unwrap_err();
        assert_eq!(error.to_string(), "watch nodes: no answer within 300s");
        assert_eq!(started.elapsed(), MINUTE * 90 + SILENCE_LIMIT);
    }
}
