//! The HTTP side: connections, faults, the caller's token, and the choice of the service.
//!
//! There is one listener for all services, told apart by the first part of the path. A call is executed on a copy of
//! the model under the lock and without waiting; the copy becomes the model only if the call succeeded. Then the state
//! file is written, and only then the answer is sent.

mod admin;
mod attributes;
mod call;
mod compute;
mod dispatch;
mod identity;
mod image;
mod list;
mod network;
mod refuse;
mod reply;
mod request;
mod time;

use std::sync::Arc;
use std::time::Duration;

use http::Response;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use jiff::{SignedDuration, Timestamp};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::driver::Driver;
use crate::fault::{Effect, lag};
use crate::model::Refusal;
use crate::shared::{CallRecord, Shared};
use attributes::{Attributes, assign};
use call::Call;
use dispatch::{Service, dispatch};
use list::{network_list, page};
use reply::Reply;
use request::Request;

/// Far more than one host's manager and its tests keep; the others wait until one ends.
const MOST_CONNECTIONS: usize = 256;
/// How long a connection may take for the head of its next request. Longer than clients keep connections that they do not
/// use (90 s), so that none is closed under a request.
const IDLE: Duration = Duration::from_mins(2);

/// The connection is to be closed without an answer.
#[derive(Debug, thiserror::Error)]
#[error("cut by a fault rule")]
struct Cut;

/// The effects of all fault rules that match a call.
#[derive(Default)]
pub(crate) struct Effects {
    instead: Option<Refusal>,
    retry_after_seconds: Option<u64>,
    over_quota: bool,
    lag: Option<SignedDuration>,
    fail_server: Option<String>,
    delay: Duration,
    delay_after: Duration,
    cut_before: bool,
    cut_after: bool,
}

/// Accepts connections until told to stop; those that are open end with it.
pub(crate) async fn accept<D: Driver>(
    listener: TcpListener,
    shared: Arc<Shared>,
    driver: Arc<D>,
    stop: CancellationToken,
) {
    let (mut connections, room) = (JoinSet::new(), Arc::new(Semaphore::new(MOST_CONNECTIONS)));
    let accepted = async || {
        let place = Arc::clone(&room).acquire_owned().await;
        listener.accept().await.map(|(stream, _)| (stream, place))
    };
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            Some(_) = connections.join_next() => {}
            accepted = accepted() => match accepted {
                Ok((stream, place)) => {
                    let connection = connection(stream, Arc::clone(&shared), Arc::clone(&driver));
                    connections.spawn(async move {
                        connection.await;
                        drop(place);
                    });
                }
                Err(error) => {
                    // Out of file descriptors, most likely: others end first.
                    tracing::warn!(%error, "connection not accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

async fn connection<D: Driver>(stream: TcpStream, shared: Arc<Shared>, driver: Arc<D>) {
    let service = service_fn(move |request| {
        let (shared, driver) = (Arc::clone(&shared), Arc::clone(&driver));
        async move { answer(shared, driver, request).await }
    });
    // Small answers on kept connections would otherwise wait for the other side's delayed acknowledgement.
    drop(stream.set_nodelay(true));
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(IDLE);
    if let Err(error) = server.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "connection ended");
    }
}

/// Reads a call and carries it out in a task of its own: hyper drops this future when the client hangs up, and a service
/// goes on with what it was asked for.
async fn answer<D: Driver>(
    shared: Arc<Shared>,
    driver: Arc<D>,
    incoming: http::Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Cut> {
    let request_id = format!("req-{}", Uuid::new_v4());
    let request = match Request::read(incoming).await {
        Ok(request) => request,
        Err(refusal) => {
            return Ok(Reply::text(refusal.status, "text/plain", refusal.message).response(&request_id));
        }
    };
    let (sender, receiver) = oneshot::channel();
    let called = Arc::clone(&shared);
    shared.detach(async move {
        // Nobody may be left to hear it.
        let _ = sender.send(called_by(&called, &*driver, &request, &request_id).await);
    });
    receiver.await.unwrap_or(Err(Cut))
}

async fn called_by<D: Driver>(
    shared: &Shared,
    driver: &D,
    request: &Request,
    request_id: &str,
) -> Result<Response<Full<Bytes>>, Cut> {
    let service = Service::of(request);
    let outcome = carry_out(shared, driver, request, service).await;
    let status = outcome.as_ref().map_or(0, |reply| reply.status);
    tracing::debug!(method = %request.method, path = %request.path, status, request_id, "call");
    if service != Service::Admin {
        shared.remember(CallRecord {
            method: request.method.to_string(),
            path: request.path_and_query(),
            status,
            request_id: request_id.to_owned(),
        });
    }
    Ok(service.sign(outcome?, request, request_id, &shared.base_url).response(request_id))
}

async fn carry_out<D: Driver>(
    shared: &Shared,
    driver: &D,
    request: &Request,
    service: Service,
) -> Result<Reply, Cut> {
    let (effects, arrived) = shared.meet(request, service);
    tokio::time::sleep(effects.delay).await;
    if effects.cut_before {
        return Err(Cut);
    }
    if let Some(refusal) = &effects.instead {
        let reply = service.refuse(refusal, request);
        return Ok(match effects.retry_after_seconds {
            Some(seconds) => reply.header("Retry-After", seconds.to_string()),
            None => reply,
        });
    }
    let (cut_after, delay_after) = (effects.cut_after, effects.delay_after);
    let (mut reply, committed) = dispatch(shared, request, service, effects, arrived);
    if let Some(generation) = committed
        && let Err(failure) = shared.persisted(generation).await
    {
        let refusal = Refusal::new(500, "InternalServerError", format!("state file: {failure}"));
        reply = service.refuse(&refusal, request);
    }
    tokio::time::sleep(delay_after).await;
    if cut_after {
        return Err(Cut);
    }
    if let Some((server, lines)) = reply.console.take() {
        reply = compute::console(&driver.console(server).await, lines);
    }
    Ok(reply)
}

impl Shared {
    /// What happens to a call, and when it arrived.
    fn meet(&self, request: &Request, service: Service) -> (Effects, Timestamp) {
        let mut state = self.lock();
        let effects = match service {
            Service::Admin => Effects::default(),
            _ => Effects::of(&state.faults.meet(request.method.as_str(), &request.path, &request.body)),
        };
        (effects, state.now())
    }
}

impl Effects {
    fn of(effects: &[Effect]) -> Self {
        let mut all = Self::default();
        for effect in effects {
            match effect {
                Effect::Delay { milliseconds } => all.delay += Duration::from_millis(*milliseconds),
                Effect::DelayAfter { milliseconds } => {
                    all.delay_after += Duration::from_millis(*milliseconds);
                }
                Effect::TooManyRequests { retry_after_seconds } => {
                    let message = "This request was rate-limited.";
                    all.instead = Some(Refusal::new(429, "HTTPTooManyRequests", message));
                    all.retry_after_seconds = Some(*retry_after_seconds);
                }
                Effect::Fail { status, message, retry_after_seconds } => {
                    all.instead = Some(Refusal::new(*status, "HTTPInternalServerError", message));
                    all.retry_after_seconds = *retry_after_seconds;
                }
                Effect::OverQuota => all.over_quota = true,
                Effect::SubnetBusy => {
                    let message = "Unable to complete operation on subnet: One or more ports have an IP allocation from this subnet.";
                    all.instead = Some(Refusal::conflict("SubnetInUse", message));
                }
                Effect::Lag { milliseconds } => all.lag = Some(lag(*milliseconds)),
                Effect::CutAfter => all.cut_after = true,
                Effect::CutBefore => all.cut_before = true,
                Effect::FailServer { message } => all.fail_server = Some(message.clone()),
            }
        }
        all
    }
}
