//! Logs as they are written, and OTLP as a collector receives it.

#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hangar_kit::metrics::Metrics;
use hangar_kit::telemetry::{LogFormat, OtlpSettings, Telemetry, TelemetrySettings};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("a lock").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("a lock").clone()).expect("text")
    }
}

fn logged(settings: &TelemetrySettings, work: impl FnOnce()) -> String {
    let lines = Lines::default();
    let writer = lines.clone();
    let (subscriber, _telemetry) =
        Telemetry::build(settings, &Metrics::new(), move || writer.clone()).expect("telemetry");
    tracing::subscriber::with_default(subscriber, work);
    lines.text()
}

#[test]
fn json_lines_carry_fields_and_the_span() {
    let text = logged(&TelemetrySettings::default(), || {
        let span = tracing::info_span!("reconcile", controller = "cluster", name = "prod");
        let _entered = span.enter();
        tracing::info!(attempt = 3, "waiting");
        tracing::debug!("not shown at this level");
    });
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 1, "{text}");
    assert_eq!(lines[0]["level"], "INFO");
    assert_eq!(lines[0]["message"], "waiting");
    assert_eq!(lines[0]["attempt"], 3);
    assert_eq!(lines[0]["span"]["controller"], "cluster");
    assert!(lines[0]["timestamp"].is_string());
}

#[test]
fn text_lines_and_other_levels_are_a_choice() {
    let settings = TelemetrySettings {
        level: "debug".parse().expect("a level"),
        format: LogFormat::Text,
        ..TelemetrySettings::default()
    };
    let text = logged(&settings, || {
        tracing::debug!(attempt = 3, "waiting");
        tracing::debug!(target: "h2", "frames");
    });
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("DEBUG") && text.contains("waiting attempt=3"), "{text}");
}

#[test]
fn no_level_shows_what_an_api_server_answered() {
    let settings = TelemetrySettings {
        level: "trace,kube_client=trace,kube_client::client=trace".parse().expect("a level"),
        ..TelemetrySettings::default()
    };
    // A Secret whose metadata cannot be read, and an error that is none of Kubernetes.
    let answers =
        [(200, r#"{"metadata": {"generation": "odd"}, "data": {"key": "aHVzaA=="}}"#), (500, "aHVzaA==")];
    for (status, body) in answers {
        let service = tower::service_fn(move |_: http::Request<kube::client::Body>| async move {
            let body = kube::client::Body::from(body.as_bytes().to_vec());
            Ok::<_, std::convert::Infallible>(
                http::Response::builder().status(status).body(body).expect("an answer"),
            )
        });
        let text = logged(&settings, || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
            runtime.block_on(async {
                let api: Api<Secret> = Api::namespaced(Client::new(service, "default"), "default");
                let error = api.get("keys").await.expect_err("an answer that cannot be read");
                tracing::warn!(is_answered = matches!(error, kube::Error::Api(_)), "not read");
            });
        });
        assert!(text.contains("not read") && !text.contains("aHVzaA=="), "{text}");
    }
}

#[derive(Clone, Default)]
struct Collector {
    traces: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
    metrics: Arc<Mutex<Vec<ExportMetricsServiceRequest>>>,
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.traces.lock().expect("a lock").push(request.into_inner());
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for Collector {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        self.metrics.lock().expect("a lock").push(request.into_inner());
        Ok(Response::new(ExportMetricsServiceResponse::default()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_gets_spans_and_the_registry_before_the_process_ends() {
    let collector = Collector::default();
    let incoming = TcpIncoming::bind(([127, 0, 0, 1], 0).into()).expect("a listener");
    let endpoint = format!("http://{}", incoming.local_addr().expect("an address"));
    let server = tokio::spawn(
        tonic::transport::Server::builder()
            .add_service(TraceServiceServer::new(collector.clone()))
            .add_service(MetricsServiceServer::new(collector.clone()))
            .serve_with_incoming(incoming),
    );

    let metrics = Metrics::new();
    let otlp = OtlpSettings::read(|name| (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| endpoint.clone()))
        .expect("settings");
    let settings = TelemetrySettings { otlp, ..TelemetrySettings::default() };
    let (subscriber, telemetry) = Telemetry::build(&settings, &metrics, std::io::sink).expect("telemetry");
    tracing::subscriber::with_default(subscriber, || {
        let span = tracing::info_span!("reconcile", controller = "cluster");
        span.in_scope(|| tracing::info!("inside"));
        drop(span);
        drop(tracing::info_span!(target: "h2", "transport"));
    });
    metrics.reconcile.observe("cluster", "done", Duration::from_millis(3));
    metrics.leader.leading.set(1);
    telemetry.shutdown(Duration::from_mins(1)).await;

    let traces = collector.traces.lock().expect("a lock").clone();
    let resource = traces[0].resource_spans[0].resource.as_ref().expect("a resource");
    let service = resource.attributes.iter().find(|attribute| attribute.key == "service.name");
    assert!(format!("{service:?}").contains("\"hangar\""), "{service:?}");
    let spans: Vec<_> = traces
        .iter()
        .flat_map(|request| &request.resource_spans)
        .flat_map(|resource| &resource.scope_spans)
        .flat_map(|scope| &scope.spans)
        .map(|span| span.name.as_str())
        .collect();
    assert_eq!(spans, ["reconcile"], "the transport's own spans are not exported");

    let names: Vec<_> = collector
        .metrics
        .lock()
        .expect("a lock")
        .iter()
        .flat_map(|request| &request.resource_metrics)
        .flat_map(|resource| &resource.scope_metrics)
        .flat_map(|scope| &scope.metrics)
        .map(|metric| metric.name.clone())
        .collect();
    for name in [
        "hangar_leader",
        "hangar_reconcile",
        "hangar_reconcile_duration_seconds_count",
        "process_resident_memory_bytes",
    ] {
        assert!(names.iter().any(|found| found == name), "{name} in {names:?}");
    }
    server.abort();
}
