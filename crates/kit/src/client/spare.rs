//! Connections of a client that is one of a thousand and rests most of the time.
//!
//! kube's own builder keeps every connection that was ever needed at once, until the server closes it, and room for the
//! sessions of 32 servers. Here one idle connection is kept, and that for some seconds: the reads of one look share it,
//! and a tenant at rest has no connection open but its watches'.

use std::time::Duration;

use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use rustls::client::Resumption;
use tower::util::BoxService;
use tower::{BoxError, ServiceBuilder, ServiceExt as _};

/// Longer than the pause between two calls of one pass.
const IDLE_LIMIT: Duration = Duration::from_secs(5);
/// Of one server, which gives out a few at a time.
const SESSIONS: usize = 2;

type Service = BoxService<http::Request<Body>, http::Response<hyper::body::Incoming>, BoxError>;

/// What kube's builder would make without a proxy.
pub(super) fn builder(config: &Config) -> kube::Result<ClientBuilder<Service>> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    let mut tls = config.rustls_client_config()?;
    tls.resumption = Resumption::in_memory_sessions(SESSIONS);
    let mut https = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into().map_err(|error| kube::Error::Service(Box::new(error)))?;
        https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let mut connector = TimeoutConnector::new(https.enable_http1().wrap_connector(http));
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    let client: Client<_, Body> = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_LIMIT)
        .pool_max_idle_per_host(1)
        .build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(client);
    Ok(ClientBuilder::new(service.boxed(), config.default_namespace.clone()))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http_body_util::Full;
    use hyper::body::Bytes;
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use tokio::net::TcpListener;
    use tokio::time::Instant;

    use super::*;
    use crate::client::{ClientOptions, client};

    /// A server that takes a while for each answer, and how many connections are open.
    async fn server() -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let open = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&open);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let open = Arc::clone(&counted);
                open.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    let answer = service_fn(|_| async {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        Ok::<_, Infallible>(http::Response::new(Full::new(Bytes::from_static(b"{}"))))
                    });
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        (address, open)
    }

    #[tokio::test]
    async fn one_connection_outlives_a_burst_of_calls_and_none_a_rest() {
        let (address, open) = server().await;
        let options = ClientOptions { is_spare: true, ..ClientOptions::default() };
        let client = client(Config::new(address.parse().unwrap()), &options).unwrap();
        let call = || async {
            let request = http::Request::get("/version").body(Vec::new()).unwrap();
            client.request_text(request).await.unwrap()
        };
        futures::future::join_all((0..8).map(|_| call())).await;
        let reaches = async |count: usize, limit: Duration| {
            let end = Instant::now() + limit;
            while open.load(Ordering::SeqCst) > count {
                assert!(Instant::now() < end, "{} connections are open", open.load(Ordering::SeqCst));
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        reaches(1, Duration::from_secs(2)).await;
        reaches(0, IDLE_LIMIT * 3).await;
        call().await;
    }
}
