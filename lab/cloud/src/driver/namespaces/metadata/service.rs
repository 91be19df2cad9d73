//! The metadata service at 169.254.169.254: one socket in each network's namespace, served by our process.
//!
//! The socket and its connections keep the namespace alive, so a network is removed only after its service has ended.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use hangar_machine::net::Netns;
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, JoinSet};
use uuid::Uuid;

use super::answer::answer;
use crate::topology::Topology;

/// Where every machine of every cloud looks.
pub(in super::super) const ADDRESS: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);
/// Time limit of a request and of reading an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// An earlier driver's socket is closed a moment after the driver is gone.
const ATTEMPTS: u32 = 40;

/// What is told, shared by all services.
type Told = Arc<RwLock<Arc<Topology>>>;

/// All services, by network.
pub(in super::super) struct Services {
    told: Told,
    running: BTreeMap<Uuid, Running>,
}

struct Running {
    /// Which namespace it is in: a namespace that was made anew needs a new service.
    namespace: u64,
    task: JoinHandle<()>,
}

impl Services {
    pub(in super::super) fn new() -> Self {
        Self { told: Told::default(), running: BTreeMap::new() }
    }

    /// What is told from now on.
    pub(in super::super) fn tell(&self, topology: &Topology) {
        let mut told = self.told.write().unwrap_or_else(PoisonError::into_inner);
        *told = Arc::new(topology.clone());
    }

    /// Serves in a namespace unless it is served already. `namespace` tells it from an earlier one at its path.
    pub(in super::super) fn ensure(
        &mut self,
        network: Uuid,
        netns: &Netns,
        namespace: u64,
        runtime: &Handle,
    ) -> hangar_machine::Result<()> {
        let is_running = |running: &Running| running.namespace == namespace && !running.task.is_finished();
        if self.running.get(&network).is_some_and(is_running) {
            return Ok(());
        }
        self.end(network, runtime);
        let listener = listen(netns)?;
        let told = Arc::clone(&self.told);
        let task = runtime.spawn(async move {
            if let Err(error) = serve(listener, network, told).await {
                tracing::warn!(%network, %error, "the metadata service ended");
            }
        });
        self.running.insert(network, Running { namespace, task });
        Ok(())
    }

    /// Ends the service of a network, and waits until its sockets are closed. Must be called where one may block.
    pub(in super::super) fn end(&mut self, network: Uuid, runtime: &Handle) {
        if let Some(running) = self.running.remove(&network) {
            running.task.abort();
            // It was told to end: that it did is no news.
            let _ = runtime.block_on(running.task);
        }
    }

    /// Networks with a service.
    pub(in super::super) fn networks(&self) -> Vec<Uuid> {
        self.running.keys().copied().collect()
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        for running in self.running.values() {
            running.task.abort();
        }
    }
}

fn listen(netns: &Netns) -> hangar_machine::Result<TcpListener> {
    let address = SocketAddr::from((ADDRESS, 80));
    for _ in 1..ATTEMPTS {
        if let Ok(listener) = netns.listen_tcp(address) {
            return Ok(listener);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    netns.listen_tcp(address)
}

async fn serve(listener: TcpListener, network: Uuid, told: Told) -> std::io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    // Dropped with this task, and with it every connection.
    let mut connections = JoinSet::new();
    loop {
        let (stream, peer) = listener.accept().await?;
        while connections.try_join_next().is_some() {}
        let told = Arc::clone(&told);
        connections.spawn(async move {
            let service = service_fn(|request| {
                let response = respond(&told, network, peer.ip(), &request);
                async move { Ok::<_, Infallible>(response) }
            });
            let connection =
                http1::Builder::new().keep_alive(false).serve_connection(TokioIo::new(stream), service);
            // A client that went away is no concern of ours.
            let _ = tokio::time::timeout(PATIENCE, connection).await;
        });
    }
}

fn respond(told: &Told, network: Uuid, asker: IpAddr, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let topology = Arc::clone(&told.read().unwrap_or_else(PoisonError::into_inner));
    let path = request.uri().path();
    let is_json = Path::new(path).extension().is_some_and(|extension| extension == "json");
    let kind = if is_json { "application/json" } else { "text/plain; charset=UTF-8" };
    let (status, body) = match answer(&topology, network, asker, path) {
        Some(body) => (StatusCode::OK, body),
        None => (StatusCode::NOT_FOUND, b"Not Found".to_vec()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}
