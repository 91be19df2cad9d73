//! Metrics: one struct per component, one registry, one text page.
//!
//! Components get a clone of the struct they need and never see the registry. Label sets are typed and fixed, so a new
//! label value cannot appear by accident. Labels are kinds, verbs, categories; object names, whose number has no limit,
//! are labels of the gauges alone that are read from the objects themselves ([`ObjectMetrics`]). All names start with `hangar_`, except the process metrics, which have the names that every Prometheus
//! client uses.

mod components;
mod gauges;
mod observe;
mod process;
mod watch;

use std::sync::Arc;

use axum::Router;
use axum::http::header;
use axum::routing::get;
use prometheus_client::registry::Registry;

pub use components::{
    CallLabels, CallMetrics, CertificateLabels, CertificateMetrics, ControllerLabels, ErrorLabels,
    LeaderMetrics, QueueMetrics, ReconcileLabels, ReconcileMetrics, WebhookLabels, WebhookMetrics,
};

pub use gauges::{Gauge, ObjectMetrics, Take};
pub use watch::WatchMetrics;

/// What Prometheus is told the page is.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics of a process. Clones share the same values.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Registry>,
    /// Reconciles of the controllers.
    pub reconcile: ReconcileMetrics,
    /// Work queues of the controllers.
    pub queue: QueueMetrics,
    /// Watches of the API server.
    pub watch: WatchMetrics,
    /// Calls to API servers.
    pub calls: CallMetrics,
    /// Leadership of this process.
    pub leader: LeaderMetrics,
    /// Requests to our webhooks.
    pub webhook: WebhookMetrics,
    /// Expiry of certificates in our care.
    pub certificates: CertificateMetrics,
    /// Gauges about objects.
    pub objects: ObjectMetrics,
}

impl Metrics {
    pub fn new() -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(process::ProcessCollector));
        let ours = registry.sub_registry_with_prefix("hangar");
        let (reconcile, queue, watch) =
            (ReconcileMetrics::register(ours), QueueMetrics::register(ours), WatchMetrics::register(ours));
        let (calls, leader) = (CallMetrics::register(ours), LeaderMetrics::register(ours));
        let (webhook, certificates) = (WebhookMetrics::register(ours), CertificateMetrics::register(ours));
        let objects = ObjectMetrics::register(ours);
        let registry = Arc::new(registry);
        Self { registry, reconcile, queue, watch, calls, leader, webhook, certificates, objects }
    }

    /// The page as text.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Writing into a String cannot fail; the type only says so for other writers.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        text
    }

    /// Serves the page at `/metrics`.
    pub fn router(&self) -> Router {
        let metrics = self.clone();
        Router::new().route(
            "/metrics",
            get(move || async move { ([(header::CONTENT_TYPE, CONTENT_TYPE)], metrics.encode()) }),
        )
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}
