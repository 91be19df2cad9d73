//! What is served without TLS: the metrics port of etcd's members, and the tally.

use std::convert::Infallible;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::tally::Tally;

/// Where etcd's members tell of alarms.
const ETCD_PORT: u16 = 2381;
/// Where the bench asks.
const TALLY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 18090);

/// What a member tells of its database, among much else.
const METRICS: &str = "etcd_mvcc_db_total_size_in_bytes 20971520\netcd_mvcc_db_total_size_in_use_in_bytes 10485760\n\
    etcd_server_quota_backend_bytes 2147483648\n";

/// All members of all control planes are well.
pub(crate) async fn serve_etcd(tally: Arc<Tally>) -> std::io::Result<()> {
    let everywhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, ETCD_PORT));
    serve(everywhere, move |request| {
        let path = request.uri().path();
        tally.count(&format!("etcd: get {path}"));
        let page = if path == "/metrics" { METRICS } else { r#"{"health":"true","reason":""}"# };
        async { page.to_owned() }
    })
    .await
}

pub(crate) async fn serve_tally(tally: Arc<Tally>, stop: CancellationToken) -> std::io::Result<()> {
    serve(TALLY, move |_| {
        let (tally, stop) = (Arc::clone(&tally), stop.clone());
        async move { tally.page(&stop).to_string() }
    })
    .await
}

async fn serve<F>(
    address: SocketAddr,
    answer: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static,
) -> std::io::Result<()>
where
    F: Future<Output = String> + Send + 'static,
{
    let listener = TcpListener::bind(address).await?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = answer.clone();
            let service = service_fn(move |request| {
                let body = answer(request);
                async move { Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(body.await)))) }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    Ok(())
}
