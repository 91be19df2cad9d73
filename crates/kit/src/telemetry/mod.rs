//! Logs, and the export of traces and metrics by OTLP.
//!
//! Logs go to standard error, as JSON unless asked otherwise. Export begins when an endpoint is set, by the generic
//! variable or by a signal's own, as the OpenTelemetry specification says. What the specification leaves to the SDK
//! (sampling, batching, headers, timeouts) the SDK reads from its own variables. A value that cannot be used is one
//! error that names the variable: a missing export must not go unnoticed.
//!
//! The Prometheus registry stays the one source of metrics; its content is exported.

mod bridge;
mod export;
mod logs;
mod settings;

use std::time::Duration;

use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

pub use settings::{Error, LogFormat, LogLevel, OtlpSettings, TelemetrySettings};

use crate::metrics::Metrics;

/// What kube's client says is neither logged nor exported, at any level. It shows the whole body of an answer that it
/// cannot read, Secrets included, and calls every failed call an error: whether it is one its caller knows, and says.
const CLIENT: &str = "kube_client::client";

/// Exporters that must be shut down, or their last batch is lost.
#[derive(Debug, Default)]
#[must_use = "without a shutdown the last traces and metrics are lost"]
pub struct Telemetry {
    tracer: Option<SdkTracerProvider>,
    meter: Option<(SdkMeterProvider, bridge::Bridge)>,
}

/// What receives events and spans.
pub type Subscriber = Box<dyn tracing::Subscriber + Send + Sync>;

impl Telemetry {
    /// Makes everything ready and installs it for the whole process. Needs a runtime when something is exported.
    pub fn start(settings: &TelemetrySettings, metrics: &Metrics) -> Result<Self, Error> {
        let (subscriber, telemetry) = Self::build(settings, metrics, std::io::stderr)?;
        subscriber.try_init().map_err(|_| Error::AlreadyStarted)?;
        Ok(telemetry)
    }

    /// Makes everything ready without installing it; logs go to `writer`.
    pub fn build<W>(
        settings: &TelemetrySettings,
        metrics: &Metrics,
        writer: W,
    ) -> Result<(Subscriber, Self), Error>
    where
        W: for<'a> tracing_subscriber::fmt::MakeWriter<'a> + Send + Sync + 'static,
    {
        let mut telemetry = Self::default();
        let mut layers: Vec<Box<dyn Layer<Registry> + Send + Sync>> =
            vec![logs::layer(&settings.level, settings.format, writer)];
        if let Some(endpoint) = &settings.otlp.traces {
            let (provider, layer) = export::traces(endpoint)?;
            layers.push(layer);
            telemetry.tracer = Some(provider);
        }
        if let Some(endpoint) = &settings.otlp.metrics {
            let provider = export::metrics(endpoint)?;
            let bridge = bridge::Bridge::start(&provider, metrics.clone());
            telemetry.meter = Some((provider, bridge));
        }
        Ok((Box::new(Registry::default().with(layers)), telemetry))
    }

    /// Sends what is left, for `limit` at most per signal.
    pub async fn shutdown(self, limit: Duration) {
        if let Some((_, bridge)) = &self.meter {
            bridge.refresh();
        }
        // The SDK blocks while it sends, and it sends on this very runtime.
        let flushed = tokio::task::spawn_blocking(move || {
            let traces = self.tracer.map(|tracer| tracer.shutdown_with_timeout(limit));
            let metrics = self.meter.map(|(meter, _)| meter.shutdown_with_timeout(limit));
            [traces, metrics].into_iter().flatten().filter_map(Result::err).collect::<Vec<_>>()
        });
        match flushed.await {
            Ok(errors) => {
                for error in errors {
                    tracing::warn!(error = &error as &dyn std::error::Error, "telemetry was not sent");
                }
            }
            Err(error) => tracing::warn!(error = &error as &dyn std::error::Error, "telemetry was not sent"),
        }
    }
}
