//! OTLP exporters.

use opentelemetry::trace::TracerProvider;
use opentelemetry::{Key, Value};
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::{Layer, Registry};

use super::{CLIENT, Error};

/// How we call ourselves unless `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES` says otherwise.
const SERVICE_NAME: &str = "hangar";

/// The exporter's own transport: its spans would be exported, which makes more of them.
const TRANSPORT: [&str; 6] = ["h2", "hyper", "hyper_util", "rustls", "tonic", "tower"];

type ExportLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// The provider of tracers, and the layer that turns spans into theirs.
pub(super) fn traces(endpoint: &str) -> Result<(SdkTracerProvider, ExportLayer), Error> {
    let exporter = SpanExporter::builder()
        .with_tonic()
        .with_endpoint(endpoint)
        .build()
        .map_err(|error| Error::Exporter { signal: "traces", reason: error.to_string() })?;
    let provider =
        SdkTracerProvider::builder().with_resource(resource()).with_batch_exporter(exporter).build();
    let filter = Targets::new()
        .with_default(LevelFilter::INFO)
        .with_targets(TRANSPORT.map(|target| (target, LevelFilter::OFF)))
        .with_target(CLIENT, LevelFilter::OFF);
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer(SERVICE_NAME)).with_filter(filter);
    Ok((provider, layer.boxed()))
}

pub(super) fn metrics(endpoint: &str) -> Result<SdkMeterProvider, Error> {
    let exporter = MetricExporter::builder()
        .with_tonic()
        .with_endpoint(endpoint)
        .build()
        .map_err(|error| Error::Exporter { signal: "metrics", reason: error.to_string() })?;
    Ok(SdkMeterProvider::builder().with_resource(resource()).with_periodic_exporter(exporter).build())
}

fn resource() -> Resource {
    // The SDK reads the variables; without them it names us after the executable, as unknown.
    let detected = Resource::builder().build();
    let is_named = match detected.get(&Key::from_static_str("service.name")) {
        Some(Value::String(name)) => !name.as_str().starts_with("unknown_service"),
        _ => false,
    };
    if is_named { detected } else { Resource::builder().with_service_name(SERVICE_NAME).build() }
}
