//! Converts HTTP requests into calls of handler functions, and their results into answers.
//!
//! Every answer is a review with a result, also for a body we cannot read and for a handler that panics: the API server
//! shows the text to the user who wrote the object, while a bare HTTP error becomes "failed calling webhook". Handlers
//! run on blocking threads: converting a list of a thousand objects must not stall other connections.
//!
//! A conversion is read, converted and written object by object: it holds the request, the answer and one object, not
//! a tree of all of them, which would be several times as large.

use std::io::Write as _;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, AdmissionResponse, AdmissionReview};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::Verdict;
use super::depth;
use super::room::{Place, Room, held};
use crate::metrics::WebhookMetrics;

/// An admission request holds an object twice; the API server takes no object above 3 MiB, and etcd none above 1.5 MiB.
const ADMISSION_BODY_LIMIT: usize = 8 << 20;
/// Of all admission requests at once. Each becomes a tree, some copies of it and a patch: up to ten times as much.
const ADMISSION_ROOM: usize = 16 << 20;
/// A conversion request holds all objects of an answer: of a page of a LIST, or of a whole one without pages. Ten
/// thousand Machines have some 50 MiB.
const CONVERSION_BODY_LIMIT: usize = 64 << 20;
/// Of all conversion requests at once. Each holds its answer too, which is up to twice as large.
const CONVERSION_ROOM: usize = 64 << 20;

/// The API server gives conversions 30 s and admissions at most that: no answer is read after this.
const TIMEOUT: Duration = Duration::from_secs(28);

const REVIEW_VERSION: &str = "apiextensions.k8s.io/v1";

pub(super) const PANICKED: &str = "the webhook panicked; its log says where";

type AdmissionHandler = Arc<dyn Fn(&AdmissionRequest<DynamicObject>) -> Verdict + Send + Sync>;
type ConversionHandler = Arc<dyn Fn(Value, &str) -> Result<Value, String> + Send + Sync>;

/// Handlers by path.
#[derive(Clone)]
pub struct Webhooks {
    router: Router,
    metrics: WebhookMetrics,
    admissions: Room,
    conversions: Room,
}

impl std::fmt::Debug for Webhooks {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Webhooks").finish_non_exhaustive()
    }
}

impl Webhooks {
    /// No handlers yet.
    pub fn new(metrics: WebhookMetrics) -> Self {
        Self {
            router: Router::new(),
            metrics,
            admissions: Room::new(ADMISSION_ROOM, ADMISSION_BODY_LIMIT),
            conversions: Room::new(CONVERSION_ROOM, CONVERSION_BODY_LIMIT),
        }
    }

    /// Serves `AdmissionReview` at `path`, validating or mutating. The handler must have no side effects: the
    /// request may be a dry run, and the object may still be refused by another webhook.
    #[must_use]
    pub fn admission(
        mut self,
        path: &'static str,
        handler: impl Fn(&AdmissionRequest<DynamicObject>) -> Verdict + Send + Sync + 'static,
    ) -> Self {
        let (handler, metrics): (AdmissionHandler, _) = (Arc::new(handler), self.metrics.clone());
        let room = self.admissions.clone();
        let answer = move |body: &[u8]| at_its_depth(body, || review_admission(path, &handler, body));
        let route = post(move |request| review(path, room, metrics, request, answer));
        self.router = self.router.route(path, route);
        self
    }

    /// Serves `ConversionReview` at `path`. The handler gets one object and the wanted `apiVersion`.
    #[must_use]
    pub fn conversion(
        mut self,
        path: &'static str,
        handler: impl Fn(Value, &str) -> Result<Value, String> + Send + Sync + 'static,
    ) -> Self {
        let (handler, metrics): (ConversionHandler, _) = (Arc::new(handler), self.metrics.clone());
        let room = self.conversions.clone();
        let answer = move |body: &[u8]| at_its_depth(body, || review_conversion(path, &handler, body));
        let route = post(move |request| review(path, room, metrics, request, answer));
        self.router = self.router.route(path, route);
        self
    }

    /// Answers one POST as the server does, without a connection: status and body.
    pub async fn answer(&self, path: &str, body: Vec<u8>) -> (u16, Vec<u8>) {
        let request = axum::http::Request::post(path).header(CONTENT_LENGTH, body.len());
        let Ok(request) = request.body(Body::from(body)) else {
            return (StatusCode::BAD_REQUEST.as_u16(), Vec::new());
        };
        let Ok(answer) = self.router.clone().oneshot(request).await;
        let status = answer.status().as_u16();
        // Our own answers are whole.
        let body = axum::body::to_bytes(answer.into_body(), usize::MAX).await.unwrap_or_default();
        (status, body.to_vec())
    }

    pub(super) fn into_router(self) -> Router {
        self.router
    }
}

/// What becomes of a review: its outcome for the metrics, and the answer.
type Answered = (&'static str, Result<Vec<u8>, String>);

/// Receives a review and answers it, on a blocking thread.
async fn review(
    path: &'static str,
    room: Room,
    metrics: WebhookMetrics,
    request: Request,
    answer: impl FnOnce(&[u8]) -> Answered + Send + 'static,
) -> Response {
    let started = Instant::now();
    let (body, place) = match room.receive(request).await {
        Ok(received) => received,
        Err(refusal) => {
            metrics.observe(path, "refused", started.elapsed());
            return refusal;
        }
    };
    // The thread owns the place: what it holds is held until it ends, also if nobody waits for it any more.
    let work = tokio::task::spawn_blocking(move || (answer(&body), place));
    let (outcome, response) = match tokio::time::timeout(TIMEOUT, work).await {
        Ok(Ok(((outcome, Ok(review)), place))) => (outcome, reviewed(review, place)),
        Ok(Ok(((outcome, Err(text)), _))) => (outcome, (StatusCode::BAD_REQUEST, text).into_response()),
        Ok(Err(_)) => ("failed", (StatusCode::INTERNAL_SERVER_ERROR, PANICKED).into_response()),
        Err(_) => {
            let text = format!("the webhook did not finish within {TIMEOUT:?}");
            ("failed", (StatusCode::INTERNAL_SERVER_ERROR, text).into_response())
        }
    };
    metrics.observe(path, outcome, started.elapsed());
    response
}

fn reviewed(review: Vec<u8>, place: Place) -> Response {
    ([(CONTENT_TYPE, "application/json")], held(review, place)).into_response()
}

fn at_its_depth(body: &[u8], answer: impl FnOnce() -> Answered + Send) -> Answered {
    depth::with_stack(body, answer).unwrap_or_else(|error| ("malformed", Err(error)))
}

/// A handler's answer; its panic becomes a message.
fn run<T>(handler: impl FnOnce() -> T) -> Result<T, String> {
    std::panic::catch_unwind(AssertUnwindSafe(handler)).map_err(|_| PANICKED.to_owned())
}

fn review_admission(path: &'static str, handler: &AdmissionHandler, body: &[u8]) -> Answered {
    let request = depth::read::<AdmissionReview<DynamicObject>>(body)
        .map_err(|error| error.to_string())
        .and_then(|review| {
            TryInto::<AdmissionRequest<DynamicObject>>::try_into(review).map_err(|error| error.to_string())
        });
    let request = match request {
        Ok(request) => request,
        Err(error) => return ("malformed", Err(format!("not an AdmissionReview: {error}"))),
    };
    let (outcome, response) = match run(|| handler(&request)) {
        Ok(verdict) => (if verdict.is_allowed() { "allowed" } else { "denied" }, verdict.respond(&request)),
        Err(message) => {
            tracing::error!(path, message, "admission failed");
            let mut response = AdmissionResponse::from(&request).deny(message);
            response.result.code = 500;
            ("failed", response)
        }
    };
    (outcome, serde_json::to_vec(&response.into_review()).map_err(|error| error.to_string()))
}

/// A `ConversionReview`, its objects as they were sent.
#[derive(Deserialize)]
struct ConversionReview<'body> {
    #[serde(borrow)]
    request: ConversionRequest<'body>,
}

#[derive(Deserialize)]
struct ConversionRequest<'body> {
    uid: String,
    #[serde(rename = "desiredAPIVersion")]
    desired_api_version: String,
    #[serde(borrow)]
    objects: Vec<&'body RawValue>,
}

fn review_conversion(path: &'static str, handler: &ConversionHandler, body: &[u8]) -> Answered {
    let request = match depth::read(body) {
        Ok(ConversionReview { request }) => request,
        Err(error) => return ("malformed", Err(format!("not a ConversionReview: {error}"))),
    };
    let (outcome, review) = match converted(handler, &request, body.len()) {
        Ok(review) => ("converted", Ok(review)),
        Err(message) => {
            tracing::error!(path, message, "conversion failed");
            let result = json!({ "status": "Failure", "message": message, "reason": "ConversionFailed" });
            let response = json!({ "uid": request.uid, "convertedObjects": [], "result": result });
            let review =
                json!({ "apiVersion": REVIEW_VERSION, "kind": "ConversionReview", "response": response });
            ("failed", Ok(review.to_string().into_bytes()))
        }
    };
    (outcome, review)
}

/// The whole answer, with each object written as soon as it is converted.
fn converted(
    handler: &ConversionHandler,
    request: &ConversionRequest<'_>,
    expected: usize,
) -> Result<Vec<u8>, String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let mut review = Vec::with_capacity(expected);
    let uid = json!(request.uid);
    write!(
        review,
        r#"{{"apiVersion":"{REVIEW_VERSION}","kind":"ConversionReview","response":{{"uid":{uid},"result":{{"status":"Success"}},"convertedObjects":["#
    )
    .map_err(|error| said(&error))?;
    for (number, object) in request.objects.iter().enumerate() {
        let object: Value = depth::read(object.get().as_bytes()).map_err(|error| said(&error))?;
        let object = run(|| handler(object, &request.desired_api_version)).flatten()?;
        if number > 0 {
            review.push(b',');
        }
        serde_json::to_writer(&mut review, &object).map_err(|error| said(&error))?;
    }
    review.extend_from_slice(b"]}}");
    Ok(review)
}
