//! The metrics of each component.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry, Unit};

/// From a cache hit (a millisecond) to a slow cloud call (half a minute), in steps that roughly double.
const SECONDS_BUCKETS: [f64; 15] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0];

type SecondsFamily<Labels> = Family<Labels, Histogram, fn() -> Histogram>;

/// Registers a metric, and gives it back.
fn registered<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

/// Registers durations, and gives them back.
fn registered_seconds<Labels>(registry: &mut Registry, name: &str, help: &str) -> SecondsFamily<Labels>
where
    Labels: EncodeLabelSet + Clone + std::hash::Hash + Eq + std::fmt::Debug + Send + Sync + 'static,
{
    let seconds: SecondsFamily<Labels> = Family::new_with_constructor(|| Histogram::new(SECONDS_BUCKETS));
    registry.register_with_unit(name, help, Unit::Seconds, seconds.clone());
    seconds
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ControllerLabels {
    /// Name of the controller.
    pub controller: &'static str,
}

/// The end of a reconcile.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ReconcileLabels {
    /// Name of the controller.
    pub controller: &'static str,
    /// `done`, `waiting` or `error`.
    pub result: &'static str,
}

/// A failed reconcile.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ErrorLabels {
    /// Name of the controller.
    pub controller: &'static str,
    /// Category of the error.
    pub category: String,
}

/// Reconciles of the controllers.
#[derive(Clone, Debug)]
pub struct ReconcileMetrics {
    /// Reconciles that ended, by result.
    pub total: Family<ReconcileLabels, Counter>,
    pub errors: Family<ErrorLabels, Counter>,
    /// How long reconciles took.
    pub seconds: SecondsFamily<ControllerLabels>,
}

impl ReconcileMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let (total, errors) = (Family::default(), Family::default());
        Self {
            total: registered(registry, "reconcile", "Reconciles that ended, by result", total),
            errors: registered(registry, "reconcile_errors", "Failed reconciles, by category", errors),
            seconds: registered_seconds(registry, "reconcile_duration", "Duration of reconciles"),
        }
    }

    /// Counts a reconcile that ended.
    pub fn observe(&self, controller: &'static str, result: &'static str, duration: Duration) {
        self.total.get_or_create(&ReconcileLabels { controller, result }).inc();
        self.seconds.get_or_create(&ControllerLabels { controller }).observe(duration.as_secs_f64());
    }

    /// Counts an error.
    pub fn observe_error(&self, controller: &'static str, category: &str) {
        self.errors.get_or_create(&ErrorLabels { controller, category: category.to_owned() }).inc();
    }
}

/// A gauge per controller.
pub(super) type ControllerGauge = Family<ControllerLabels, Gauge>;

/// Work queues of the controllers.
#[derive(Clone, Debug)]
pub struct QueueMetrics {
    /// Keys that wait to be reconciled.
    pub depth: Family<ControllerLabels, Gauge>,
    /// Reconciles that run now.
    pub running: Family<ControllerLabels, Gauge>,
    /// Those of them that have run for so long that they no longer count as workers.
    pub slow: Family<ControllerLabels, Gauge>,
    /// Keys whose last reconcile failed.
    pub failing: Family<ControllerLabels, Gauge>,
}

impl QueueMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let mut gauge = |name, help| registered(registry, name, help, Family::default());
        Self {
            depth: gauge("queue_depth", "Objects that wait to be reconciled"),
            running: gauge("queue_running", "Reconciles that run now"),
            slow: gauge("queue_slow", "Reconciles that run for longer than a second"),
            failing: gauge("queue_failing", "Objects whose last reconcile failed"),
        }
    }
}

/// A call to an API server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CallLabels {
    /// `get`, `list`, `watch`, `create`, `patch` and so on.
    pub verb: String,
    /// The plural of the kind.
    pub resource: String,
    /// HTTP status; `disconnected` or `timeout` if there was none.
    pub code: String,
}

/// Calls to API servers.
#[derive(Clone, Debug)]
pub struct CallMetrics {
    pub total: Family<CallLabels, Counter>,
}

impl CallMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let help = "Calls to API servers, by verb, resource and code";
        Self { total: registered(registry, "api_calls", help, Family::default()) }
    }

    /// Counts a call that ended.
    pub fn observe(&self, verb: &str, resource: &str, code: &str) {
        let labels =
            CallLabels { verb: verb.to_owned(), resource: resource.to_owned(), code: code.to_owned() };
        self.total.get_or_create(&labels).inc();
    }
}

/// Leadership of this process.
#[derive(Clone, Debug)]
pub struct LeaderMetrics {
    /// 1 while this process leads.
    pub leading: Gauge,
    /// How often this process became leader.
    pub acquired: Counter,
    /// How often it lost the lease against its will.
    pub lost: Counter,
}

impl LeaderMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let leading = registered(registry, "leader", "1 while this process leads", Gauge::default());
        let mut counter = |name, help| registered(registry, name, help, Counter::default());
        Self {
            leading,
            acquired: counter("leader_acquired", "How often this process became leader"),
            lost: counter("leader_lost", "How often this process lost the lease"),
        }
    }
}

/// A request to a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct WebhookLabels {
    /// Path of the handler.
    pub path: &'static str,
    /// `allowed`, `denied`, `converted`, `failed`, `malformed`, or `refused` without being read.
    pub outcome: &'static str,
}

/// Requests to our webhooks.
#[derive(Clone, Debug)]
pub struct WebhookMetrics {
    /// How long requests took, by path and outcome; the count is the number of requests.
    pub seconds: SecondsFamily<WebhookLabels>,
}

impl WebhookMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let help = "Requests to webhooks, by path and outcome";
        Self { seconds: registered_seconds(registry, "webhook_request_duration", help) }
    }

    /// Counts a request that was answered.
    pub fn observe(&self, path: &'static str, outcome: &'static str, duration: Duration) {
        self.seconds.get_or_create(&WebhookLabels { path, outcome }).observe(duration.as_secs_f64());
    }
}

/// A certificate in our care.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CertificateLabels {
    pub certificate: String,
}

/// Expiry of certificates in our care.
#[derive(Clone, Debug)]
pub struct CertificateMetrics {
    /// End of validity as a Unix timestamp.
    pub expiry: Family<CertificateLabels, Gauge<f64, AtomicU64>>,
}

impl CertificateMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let help = "End of validity of certificates, as a Unix timestamp";
        let name = "certificate_expiry_timestamp_seconds";
        Self { expiry: registered(registry, name, help, Family::default()) }
    }

    /// Records when a certificate expires.
    pub fn observe(&self, certificate: &str, not_after: Timestamp) {
        let seconds = Duration::try_from(not_after.as_duration()).unwrap_or_default().as_secs_f64();
        self.expiry.get_or_create(&CertificateLabels { certificate: certificate.to_owned() }).set(seconds);
    }

    /// Forgets a certificate that no longer exists.
    pub fn forget(&self, certificate: &str) {
        self.expiry.remove(&CertificateLabels { certificate: certificate.to_owned() });
    }
}
