//! The socket that the API server connects to.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::deliver::Delivery;
use crate::{Error, Settings};

/// Bytes of the request that asks for a connection.
const HEAD: usize = 8 << 10;
/// From the connection to the end of that request.
const HEAD_LIMIT: Duration = Duration::from_secs(10);
/// Bytes of one batch of records. The API server is told to keep its batches below.
const BATCH: usize = 16 << 20;
/// Bytes of batches that are being read or delivered at a time.
const BATCHES: usize = 32 << 20;
/// Connections at a time.
const CONNECTIONS: usize = 1024;
/// Of these, connections of the tenant to others: it cannot take the room of the records.
const RELAYS: usize = 768;

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";
const REFUSED: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\r\n";
const NO_TUNNEL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\r\n";

/// The bound socket.
pub(crate) struct Listener {
    socket: UnixListener,
    place: Arc<Place>,
}

struct Place {
    authority: String,
    path: String,
    tunnel: PathBuf,
    relays: Semaphore,
    batches: Semaphore,
}

impl Listener {
    pub(crate) fn bind(settings: &Settings) -> Result<Self, Error> {
        let path = &settings.listen;
        let listen = |source| Error::Listen { path: path.clone(), source };
        // Of a container that ran before this one in the same pod.
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(listen(error)),
            _ => {}
        }
        let socket = UnixListener::bind(path).map_err(listen)?;
        let place = Place {
            authority: settings.authority.clone(),
            path: settings.path.clone(),
            tunnel: settings.tunnel.clone(),
            relays: Semaphore::new(RELAYS),
            batches: Semaphore::new(BATCHES),
        };
        Ok(Self { socket, place: Arc::new(place) })
    }

    /// Takes connections until it is stopped. Those that are open end with the process.
    pub(crate) async fn serve(self, delivery: &Arc<Delivery>, stop: &CancellationToken) {
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
            let accepted = tokio::select! {
                () = stop.cancelled() => return,
                accepted = self.socket.accept() => accepted,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let (place, delivery) = (Arc::clone(&self.place), Arc::clone(delivery));
            tokio::spawn(async move {
                if let Err(error) = connection(stream, place, delivery).await {
                    tracing::debug!(%error, "a connection ended");
                }
                drop(permit);
            });
        }
    }
}

async fn connection(
    mut stream: UnixStream,
    place: Arc<Place>,
    delivery: Arc<Delivery>,
) -> std::io::Result<()> {
    let Ok(head) = tokio::time::timeout(HEAD_LIMIT, head(&mut stream)).await else { return Ok(()) };
    let head = head?;
    match asked(&head) {
        None => stream.write_all(REFUSED).await,
        Some((authority, rest)) if authority == place.authority => {
            // Nobody sends before the answer.
            if !rest.is_empty() {
                return stream.write_all(REFUSED).await;
            }
            stream.write_all(ESTABLISHED).await?;
            records(stream, place, delivery).await;
            Ok(())
        }
        Some(_) => {
            let Ok(_room) = place.relays.try_acquire() else { return stream.write_all(NO_TUNNEL).await };
            let Ok(mut tunnel) = UnixStream::connect(&place.tunnel).await else {
                return stream.write_all(NO_TUNNEL).await;
            };
            tunnel.write_all(&head).await?;
            copy_bidirectional(&mut stream, &mut tunnel).await.map(drop)
        }
    }
}

/// What comes first, to the empty line and maybe further.
async fn head(stream: &mut UnixStream) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(256);
    while end_of(&head).is_none() && head.len() < HEAD {
        if stream.read_buf(&mut head).await? == 0 {
            break;
        }
    }
    Ok(head)
}

fn end_of(head: &[u8]) -> Option<usize> {
    head.windows(4).position(|bytes| bytes == b"\r\n\r\n").map(|at| at + 4)
}

/// Whom a CONNECT asks for, and what follows it.
fn asked(head: &[u8]) -> Option<(&str, &[u8])> {
    let (request, rest) = head.split_at(end_of(head)?);
    let line = std::str::from_utf8(request).ok()?.lines().next()?;
    let mut words = line.split(' ');
    let (method, authority, version) = (words.next()?, words.next()?, words.next()?);
    let is_connect = method == "CONNECT" && version.starts_with("HTTP/1.") && words.next().is_none();
    is_connect.then_some((authority, rest))
}

/// Serves records on a connection.
async fn records(stream: UnixStream, place: Arc<Place>, delivery: Arc<Delivery>) {
    let service = service_fn(move |request| {
        let (place, delivery) = (Arc::clone(&place), Arc::clone(&delivery));
        async move { Ok::<_, Infallible>(answered(answer(request, &place, &delivery).await)) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(None);
    // A client that speaks something else, such as TLS, ends here.
    if let Err(error) = server.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a connection for records ended");
    }
}

async fn answer(request: Request<Incoming>, place: &Place, delivery: &Delivery) -> StatusCode {
    if request.uri().path() != place.path {
        return StatusCode::NOT_FOUND;
    }
    if request.method() != Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED;
    }
    // What does not say how large it is may be as large as any.
    let size = request.body().size_hint().exact().and_then(|size| u32::try_from(size).ok());
    let Some(size) = size.or(u32::try_from(BATCH).ok()).filter(|size| *size as usize <= BATCH) else {
        tracing::warn!("a batch of records is lost: it is too large");
        return StatusCode::PAYLOAD_TOO_LARGE;
    };
    let Ok(_room) = place.batches.try_acquire_many(size) else { return StatusCode::SERVICE_UNAVAILABLE };
    match Limited::new(request.into_body(), BATCH).collect().await {
        Ok(body) => match delivery.take(body.to_bytes()).await {
            Ok(()) => StatusCode::OK,
            Err(()) => StatusCode::SERVICE_UNAVAILABLE,
        },
        Err(error) => {
            tracing::warn!(%error, "a batch of records is lost: it is incomplete or too large");
            StatusCode::PAYLOAD_TOO_LARGE
        }
    }
}

fn answered(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_connect_is_taken_for_one() {
        let connect = b"CONNECT a.example:443 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nmore";
        assert_eq!(asked(connect), Some(("a.example:443", b"more".as_slice())));
        for other in [
            b"GET / HTTP/1.1\r\n\r\n".as_slice(),
            b"CONNECT a.example:443 HTTP/1.1\r\n",
            b"CONNECT a.example:443\r\n\r\n",
            b"CONNECT a b HTTP/1.1\r\n\r\n",
            b"\xff\r\n\r\n",
            b"",
        ] {
            assert_eq!(asked(other), None, "{other:?}");
        }
    }
}
