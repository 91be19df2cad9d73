//! Converts HTTP requests into calls of handler functions, and their results into answers.
//!
//! Every answer is a review with a result, also for a body we cannot read and for a handler that panics: the API server
//! shows the text to the user who wrote the object, while a bare HTTP error becomes "failed calling webhook". Handlers
//! run on blocking threads: converting a list of a thousand objects must not stall other connections.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::extract::DefaultBodyLimit;
use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use kube::core::admission::{AdmissionRequest, AdmissionResponse, AdmissionReview};
use kube::core::conversion::{ConversionRequest, ConversionResponse, ConversionReview};
use kube::core::{DynamicObject, Status};
use serde_json::Value;
use tower::ServiceExt;

use super::Verdict;
use crate::metrics::WebhookMetrics;

/// An admission request holds an object twice, and etcd refuses objects above 1.5 MiB.
const ADMISSION_BODY_LIMIT: usize = 8 << 20;

/// A conversion request holds a whole page of a LIST; the API server reads up to 10 000 objects at once.
const CONVERSION_BODY_LIMIT: usize = 128 << 20;

/// The API server gives conversions 30 s and admissions at most that: no answer is read after this.
const TIMEOUT: Duration = Duration::from_secs(28);

type AdmissionHandler = Arc<dyn Fn(&AdmissionRequest<DynamicObject>) -> Verdict + Send + Sync>;
type ConversionHandler = Arc<dyn Fn(Vec<Value>, &str) -> Result<Vec<Value>, String> + Send + Sync>;

/// Handlers by path.
#[derive(Clone)]
pub struct Webhooks {
    router: Router,
    metrics: WebhookMetrics,
}

impl std::fmt::Debug for Webhooks {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Webhooks").finish_non_exhaustive()
    }
}

impl Webhooks {
    /// No handlers yet.
    pub fn new(metrics: WebhookMetrics) -> Self {
        Self { router: Router::new(), metrics }
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
        let route = post(move |body: Bytes| review_admission(path, handler, metrics, body))
            .layer(DefaultBodyLimit::max(ADMISSION_BODY_LIMIT));
        self.router = self.router.route(path, route);
        self
    }

    /// Serves `ConversionReview` at `path`. The handler gets all objects and the wanted `apiVersion`, and yields
    /// as many in the same order.
    #[must_use]
    pub fn conversion(
        mut self,
        path: &'static str,
        handler: impl Fn(Vec<Value>, &str) -> Result<Vec<Value>, String> + Send + Sync + 'static,
    ) -> Self {
        let (handler, metrics): (ConversionHandler, _) = (Arc::new(handler), self.metrics.clone());
        let route = post(move |body: Bytes| review_conversion(path, handler, metrics, body))
            .layer(DefaultBodyLimit::max(CONVERSION_BODY_LIMIT));
        self.router = self.router.route(path, route);
        self
    }

    /// Answers one POST as the server does, without a connection: status and body.
    pub async fn answer(&self, path: &str, body: Vec<u8>) -> (u16, Vec<u8>) {
        let Ok(request) = Request::post(path).body(Body::from(body)) else {
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

/// Runs a handler on a blocking thread; its panic or its delay becomes a message.
async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    match tokio::time::timeout(TIMEOUT, tokio::task::spawn_blocking(work)).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(_)) => Err("the webhook panicked; its log says where".to_owned()),
        Err(_) => Err(format!("the webhook did not finish within {TIMEOUT:?}")),
    }
}

async fn review_admission(
    path: &'static str,
    handler: AdmissionHandler,
    metrics: WebhookMetrics,
    body: Bytes,
) -> Response {
    let started = Instant::now();
    let request = serde_json::from_slice::<AdmissionReview<DynamicObject>>(&body)
        .map_err(|error| error.to_string())
        .and_then(|review| {
            TryInto::<AdmissionRequest<DynamicObject>>::try_into(review).map_err(|error| error.to_string())
        });
    let request = match request {
        Ok(request) => request,
        Err(error) => {
            metrics.observe(path, "malformed", started.elapsed());
            return (StatusCode::BAD_REQUEST, format!("not an AdmissionReview: {error}")).into_response();
        }
    };
    let fallback = AdmissionResponse::from(&request);
    let answer = run(move || {
        let verdict = handler(&request);
        (if verdict.is_allowed() { "allowed" } else { "denied" }, verdict.respond(&request))
    })
    .await;
    let (outcome, response) = answer.unwrap_or_else(|message| {
        tracing::error!(path, message, "admission failed");
        let mut response = fallback.deny(message);
        response.result.code = 500;
        ("failed", response)
    });
    metrics.observe(path, outcome, started.elapsed());
    Json(response.into_review()).into_response()
}

async fn review_conversion(
    path: &'static str,
    handler: ConversionHandler,
    metrics: WebhookMetrics,
    body: Bytes,
) -> Response {
    let started = Instant::now();
    let request = serde_json::from_slice::<ConversionReview>(&body)
        .map_err(|error| error.to_string())
        .and_then(|review| ConversionRequest::from_review(review).map_err(|error| error.to_string()));
    let mut request = match request {
        Ok(request) => request,
        Err(error) => {
            metrics.observe(path, "malformed", started.elapsed());
            return (StatusCode::BAD_REQUEST, format!("not a ConversionReview: {error}")).into_response();
        }
    };
    let objects = std::mem::take(&mut request.objects);
    let (count, wanted) = (objects.len(), request.desired_api_version.clone());
    let converted = run(move || handler(objects, &wanted)).await.flatten().and_then(|converted| {
        if converted.len() == count {
            Ok(converted)
        } else {
            Err(format!("{} objects came back of {count}", converted.len()))
        }
    });
    let response = ConversionResponse::for_request(request);
    let (outcome, response) = match converted {
        Ok(converted) => ("converted", response.success(converted)),
        Err(message) => {
            tracing::error!(path, message, "conversion failed");
            ("failed", response.failure(Status::failure(&message, "ConversionFailed")))
        }
    };
    metrics.observe(path, outcome, started.elapsed());
    Json(response.into_review()).into_response()
}
