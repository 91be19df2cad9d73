//! Health and metrics over HTTP, as a kubelet and a scraper see them.

#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

use std::net::SocketAddr;

use hangar_kit::controller::{Load, Observer};
use hangar_kit::health::Health;
use hangar_kit::metrics::Metrics;
use hangar_kit::serve::PlainServer;
use hangar_kit::watch::WatchStats;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

/// Status and body of a GET.
async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.expect("connected");
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("received");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).expect("a status").parse().expect("a number");
    (status, body.to_owned())
}

async fn serve(router: axum::Router) -> (PlainServer, CancellationToken) {
    let stop = CancellationToken::new();
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    (PlainServer::start(address, router, stop.clone()).await.expect("listening"), stop)
}

#[tokio::test]
async fn readiness_names_what_is_not_ready() {
    let health = Health::new();
    let (store, webhook) = (health.readiness("stores"), health.readiness("webhook"));
    let loop_check = health.liveness("loop");
    let (server, stop) = serve(health.router()).await;
    let at = |path| get(server.address(), path);

    let (status, body) = at("/readyz").await;
    assert_eq!(status, 503);
    assert!(body.contains("[-]stores failed: has not reported yet"), "{body}");
    assert_eq!(at("/healthz").await, (200, "ok".to_owned()), "not ready is not dead");

    store.pass();
    webhook.fail("no certificate");
    let (status, body) = at("/readyz").await;
    assert_eq!(status, 503);
    assert_eq!(body, "[+]stores ok\n[-]webhook failed: no certificate\nreadyz check failed\n");
    assert_eq!(at("/readyz/webhook").await, (503, "no certificate".to_owned()));
    assert_eq!(at("/readyz/stores").await.0, 200);
    assert_eq!(at("/readyz/nothing").await.0, 404);

    webhook.pass();
    assert_eq!(at("/readyz").await, (200, "ok".to_owned()));
    let (status, body) = at("/readyz?verbose").await;
    assert_eq!((status, body.as_str()), (200, "[+]stores ok\n[+]webhook ok\nreadyz check passed\n"));

    loop_check.fail("stuck");
    for path in ["/healthz", "/livez"] {
        let (status, body) = at(path).await;
        assert_eq!(status, 503);
        assert!(body.contains("[-]loop failed: stuck"), "{body}");
    }
    stop.cancel();
    server.stopped().await.expect("stopped");
}

#[tokio::test]
async fn metrics_can_be_scraped_without_credentials() {
    let metrics = Metrics::new();
    metrics.reconcile.observe("cluster", "done", std::time::Duration::from_millis(3));
    metrics.reconcile.observe_error("cluster", "Conflict");
    metrics.load("cluster", Load { ready: 4, running: 3, slow: 1, failing: 2, beside: 0 });
    metrics.watch.add("Cluster", || WatchStats { objects: 12, lists: 2, ..WatchStats::default() });
    metrics.calls.observe("patch", "clusters", "409");
    metrics.leader.leading.set(1);
    metrics.certificates.observe("webhook", "2027-01-01T00:00:00Z".parse().expect("a time"));
    let (server, stop) = serve(metrics.router()).await;
    let (status, body) = get(server.address(), "/metrics").await;
    assert_eq!(status, 200);
    for line in [
        r#"hangar_reconcile_total{controller="cluster",result="done"} 1"#,
        r#"hangar_reconcile_errors_total{controller="cluster",category="Conflict"} 1"#,
        r#"hangar_reconcile_duration_seconds_count{controller="cluster"} 1"#,
        r#"hangar_queue_depth{controller="cluster"} 4"#,
        r#"hangar_queue_slow{controller="cluster"} 1"#,
        r#"hangar_queue_failing{controller="cluster"} 2"#,
        r#"hangar_watch_restarts_total{watch="Cluster"} 1"#,
        r#"hangar_watch_objects{watch="Cluster"} 12"#,
        r#"hangar_api_calls_total{verb="patch",resource="clusters",code="409"} 1"#,
        "hangar_leader 1",
        r#"hangar_certificate_expiry_timestamp_seconds{certificate="webhook"} 1798761600.0"#,
    ] {
        assert!(body.lines().any(|found| found == line), "{line} in {body}");
    }
    for name in
        ["process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "process_max_fds"]
    {
        let value = body.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
        assert!(value.is_some_and(|value| value >= 0.0), "{name}: {value:?}");
    }
    assert!(body.ends_with("# EOF\n"));
    stop.cancel();
    server.stopped().await.expect("stopped");
}
