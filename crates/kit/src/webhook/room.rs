//! Room for requests' bodies: what all of them may hold together is decided before the first byte is read.
//!
//! A body's length is known from its header, so its place is taken at once, and given back when the last byte of the
//! answer is written. Requests that find no place wait for one; they are few and the API server has its own limits.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use axum::response::{IntoResponse as _, Response};
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// For a place. The API server waits 30 s for a conversion, and 10 s for an admission.
const WAIT: Duration = Duration::from_secs(20);
/// For a body: the API server has it in memory.
const TIME: Duration = Duration::from_secs(10);

/// The unit of places, in bytes.
const UNIT: usize = 1 << 10;

/// How much is held at once.
#[derive(Clone)]
pub(super) struct Room {
    places: Arc<Semaphore>,
    largest: usize,
}

/// What a request holds.
pub(super) type Place = OwnedSemaphorePermit;

/// An answer and its place.
struct Held {
    bytes: Vec<u8>,
    _place: Place,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A body that keeps its place until its last byte is written.
pub(super) fn held(bytes: Vec<u8>, place: Place) -> Body {
    Body::from(Bytes::from_owner(Held { bytes, _place: place }))
}

fn refuse(status: StatusCode, text: impl Into<String>) -> Response {
    (status, text.into()).into_response()
}

impl Room {
    /// For so many bytes together, and so many in one body.
    pub(super) fn new(together: usize, largest: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(together / UNIT)), largest }
    }

    /// The body of a request, with its place, or what the caller is told instead.
    pub(super) async fn receive(&self, request: Request) -> Result<(Vec<u8>, Place), Response> {
        let length =
            request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        let Some(length): Option<usize> = length else {
            return Err(refuse(StatusCode::LENGTH_REQUIRED, "a body needs a Content-Length"));
        };
        if length > self.largest {
            let text = format!("{length} bytes are more than the {} MiB of a review", self.largest >> 20);
            return Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, text));
        }
        let units = u32::try_from(length.div_ceil(UNIT)).unwrap_or(u32::MAX);
        let place = tokio::time::timeout(WAIT, Arc::clone(&self.places).acquire_many_owned(units)).await;
        let Ok(Ok(place)) = place else {
            return Err(refuse(StatusCode::SERVICE_UNAVAILABLE, "too many reviews at once: try again"));
        };
        match tokio::time::timeout(TIME, read(request.into_body(), length)).await {
            Ok(Ok(bytes)) => Ok((bytes, place)),
            Ok(Err(text)) => Err(refuse(StatusCode::BAD_REQUEST, text)),
            Err(_) => Err(refuse(StatusCode::REQUEST_TIMEOUT, format!("the body took more than {TIME:?}"))),
        }
    }
}

/// Into one buffer that is as large as the body, never larger.
async fn read(mut body: Body, length: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(length);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| error.to_string())?;
        let data = frame.data_ref().map_or(&[][..], AsRef::as_ref);
        if data.len() > length - bytes.len() {
            return Err("the body is longer than its Content-Length".to_owned());
        }
        bytes.extend_from_slice(data);
    }
    Ok(bytes)
}
