//! The tenants' API servers: each is an [`Overlay`] over nothing, with watches, behind the address of its load balancer
//! and with a certificate of its own authority. What is applied is kept; nobody else writes there.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::stream;
use hangar_kit::overlay::Overlay;
use hangar_pki::{Authority, Intent, PrivateKeyPem, Usage, issue};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex as AsyncMutex;
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use crate::Error;
use crate::tally::Tally;
use crate::workloads::Addresses;

const PORT: u16 = 6443;
/// A watch for which no time is given ends after this time: API servers take half an hour to an hour.
const WATCH_LENGTH: Duration = Duration::from_mins(30);
/// Between two bookmarks of a watch, as API servers send them.
const BOOKMARK: Duration = Duration::from_mins(1);
/// A connection on which nothing is asked for so long is closed, as API servers do.
const IDLE_LIMIT: Duration = Duration::from_secs(90);
/// Later than any generation: add-ons run as soon as they are applied.
const OBSERVED: i64 = 1 << 40;

type Body = UnsyncBoxBody<Bytes, Infallible>;

pub(crate) struct Tenants {
    client: Client,
    addresses: Arc<Addresses>,
    tally: Arc<Tally>,
    nodes: usize,
    all: AsyncMutex<BTreeMap<IpAddr, Arc<Tenant>>>,
}

struct Tenant {
    acceptor: TlsAcceptor,
    /// Of an in-memory cluster.
    cluster: Client,
    tally: Arc<Tally>,
    news: Mutex<News>,
}

/// What was written, and who watches.
#[derive(Default)]
struct News {
    events: Vec<Event>,
    watches: Vec<(String, UnboundedSender<Bytes>)>,
}

struct Event {
    collection: String,
    version: u64,
    line: Bytes,
}

impl Tenants {
    /// Listens for all tenants.
    pub(crate) async fn serve(
        client: Client,
        addresses: Arc<Addresses>,
        tally: Arc<Tally>,
        nodes: usize,
    ) -> std::io::Result<()> {
        let tenants = Arc::new(Self { client, addresses, tally, nodes, all: AsyncMutex::default() });
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).await?;
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let tenants = Arc::clone(&tenants);
                tokio::spawn(async move {
                    if let Err(error) = tenants.connected(stream).await {
                        eprintln!("a connection to a tenant: {error}");
                    }
                });
            }
        });
        Ok(())
    }

    async fn connected(&self, stream: TcpStream) -> Result<(), Error> {
        let tenant = self.at(stream.local_addr()?.ip()).await?;
        let stream = tenant.acceptor.accept(stream).await?;
        let service = service_fn(move |request| {
            let tenant = Arc::clone(&tenant);
            async move {
                Ok::<_, Infallible>(tenant.answer(request).await.unwrap_or_else(|error| failed(&*error)))
            }
        });
        // A client that goes is none of our business.
        let _ = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE_LIMIT)
            .serve_connection(TokioIo::new(stream), service)
            .await;
        Ok(())
    }

    /// The tenant behind an address. It begins with the first connection, when its authority is there.
    async fn at(&self, address: IpAddr) -> Result<Arc<Tenant>, Error> {
        let mut all = self.all.lock().await;
        if let Some(tenant) = all.get(&address) {
            return Ok(Arc::clone(tenant));
        }
        let (namespace, cluster) =
            self.addresses.cluster(address).ok_or("no load balancer has this address")?;
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &namespace);
        let data = api.get(&format!("{cluster}-ca")).await?.data.unwrap_or_default();
        let text = |key: &str| data.get(key).map(|value| String::from_utf8_lossy(&value.0).into_owned());
        let key = PrivateKeyPem::new(text("tls.key").unwrap_or_default());
        let authority = Authority::from_pem(&text("tls.crt").unwrap_or_default(), &key)?;
        let intent = Intent::new("kube-apiserver", Usage::Server, Duration::from_hours(24))
            .dns_names([format!("api-{cluster}.{namespace}.svc")])
            .ip_addresses([address]);
        let tenant = Arc::new(Tenant {
            acceptor: acceptor(&authority, &intent)?,
            cluster: in_memory(self.nodes).client(),
            tally: Arc::clone(&self.tally),
            news: Mutex::default(),
        });
        all.insert(address, Arc::clone(&tenant));
        Ok(tenant)
    }
}

fn acceptor(authority: &Authority, intent: &Intent) -> Result<TlsAcceptor, Error> {
    let pair = issue(authority, intent, jiff::Timestamp::now())?;
    let certificates =
        CertificateDer::pem_slice_iter(pair.certificate.as_bytes()).collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(pair.key.expose().as_bytes())?;
    let config = rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(certificates, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// A cluster with Nodes that are ready. Add-ons run at once.
fn in_memory(nodes: usize) -> Overlay {
    let node = |number: usize| {
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": format!("worker-{number}"), "uid": format!("worker-{number}"),
                "resourceVersion": "1", "labels": {"kubernetes.io/os": "linux"}},
            "spec": {"providerID": format!("openstack:///{number}")},
            "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]},
        })
    };
    let runs = move |object: &mut Value| match object["kind"].as_str() {
        Some("Deployment") => {
            let replicas = object["spec"]["replicas"].as_u64().unwrap_or(1);
            object["status"] = json!({
                "observedGeneration": OBSERVED, "replicas": replicas, "updatedReplicas": replicas,
                "readyReplicas": replicas, "availableReplicas": replicas,
            });
        }
        Some("DaemonSet") => {
            object["status"] = json!({
                "observedGeneration": OBSERVED, "desiredNumberScheduled": nodes, "currentNumberScheduled": nodes,
                "updatedNumberScheduled": nodes, "numberReady": nodes, "numberAvailable": nodes,
                "numberMisscheduled": 0,
            });
        }
        _ => {}
    };
    Overlay::offline((0..nodes).map(node), jiff::Timestamp::now(), Arc::new(runs))
}

impl Tenant {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, Error> {
        let path = request.uri().path().to_owned();
        let query = request.uri().query().unwrap_or_default().to_owned();
        let is_watch = query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"));
        self.tally.count(&format!("tenant: {}", called(request.method(), &path, is_watch)));
        match path.as_str() {
            "/version" => return Ok(Response::new(whole(version().to_string().into()))),
            "/readyz" | "/livez" => return Ok(Response::new(whole(Bytes::from_static(b"ok")))),
            _ if is_watch => return Ok(Response::new(self.watched(path, &query))),
            _ => {}
        }
        let method = request.method().clone();
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let answer = self.cluster.send(Request::from_parts(head, body.into())).await?;
        let (head, body) = answer.into_parts();
        let body = body.collect().await?.to_bytes();
        if method != Method::GET && head.status.is_success() {
            self.changed(&method, &path, &body);
        }
        Ok(Response::from_parts(head, whole(body)))
    }

    /// Tells those who watch.
    fn changed(&self, method: &Method, path: &str, body: &[u8]) {
        let Ok(object) = serde_json::from_slice::<Value>(body) else { return };
        let path = path.trim_end_matches("/status");
        let collection = match path.rsplit_once('/') {
            Some((collection, _)) if method != Method::POST => collection,
            _ => path,
        };
        let version = object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok());
        let type_ = if method == Method::DELETE { "DELETED" } else { "MODIFIED" };
        let line = format!("{}\n", json!({"type": type_, "object": object}));
        let line = Bytes::from(line);
        let mut news = self.news();
        news.watches.retain(|(watched, sender)| watched != collection || sender.send(line.clone()).is_ok());
        news.events.push(Event {
            collection: collection.to_owned(),
            version: version.unwrap_or_default(),
            line,
        });
    }

    /// Everything in the collection after a version. Selectors are not needed: what they select is all there is.
    fn watched(&self, collection: String, query: &str) -> Body {
        let given = |name: &str| {
            query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')?.parse::<u64>().ok())
        };
        let since = given("resourceVersion").unwrap_or_default();
        let length = given("timeoutSeconds").filter(|seconds| *seconds > 0);
        let deadline = Instant::now() + length.map_or(WATCH_LENGTH, Duration::from_secs);
        let (sender, receiver) = mpsc::unbounded_channel::<Bytes>();
        let mut news = self.news();
        let latest = news.events.iter().map(|event| event.version).max().unwrap_or(since).max(since);
        let bookmark = bookmark(&collection, latest);
        for event in news.events.iter().filter(|it| it.collection == collection && it.version > since) {
            let _ = sender.send(event.line.clone());
        }
        news.watches.push((collection, sender));
        let lines = stream::unfold(receiver, move |mut receiver| {
            let bookmark = bookmark.clone();
            async move {
                let next = deadline.min(Instant::now() + BOOKMARK);
                let line = match tokio::time::timeout_at(next, receiver.recv()).await {
                    Ok(line) => line?,
                    Err(_) if next < deadline => bookmark,
                    Err(_) => return None,
                };
                Some((Ok::<_, Infallible>(Frame::data(line)), receiver))
            }
        });
        StreamBody::new(lines).boxed_unsync()
    }

    fn news(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A sign of life, with a version to resume from. What came since is sent again then, and changes nothing.
fn bookmark(collection: &str, version: u64) -> Bytes {
    let kind = match collection.rsplit('/').next() {
        Some("nodes") => ("v1", "Node"),
        Some("deployments") => ("apps/v1", "Deployment"),
        _ => ("apps/v1", "DaemonSet"),
    };
    let metadata = json!({"resourceVersion": version.to_string()});
    let object = json!({"apiVersion": kind.0, "kind": kind.1, "metadata": metadata});
    Bytes::from(format!("{}\n", json!({"type": "BOOKMARK", "object": object})))
}

fn failed(error: &dyn std::error::Error) -> Response<Body> {
    eprintln!("a call to a tenant: {error}");
    let mut response = Response::new(whole(Bytes::new()));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response
}

fn whole(body: Bytes) -> Body {
    Full::new(body).boxed_unsync()
}

fn version() -> Value {
    json!({
        "major": "1", "minor": "34", "gitVersion": "v1.34.10", "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z", "goVersion": "go1.24", "compiler": "gc", "platform": "linux/amd64",
    })
}

/// Verb and resource of a call.
fn called(method: &Method, path: &str, is_watch: bool) -> String {
    let mut parts = path.trim_matches('/').split('/');
    let rest: Vec<&str> = match parts.next() {
        Some("api") => parts.skip(1).collect(),
        Some("apis") => parts.skip(2).collect(),
        _ => return format!("get {path}"),
    };
    let rest = match rest.as_slice() {
        ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
        rest => rest,
    };
    let verb = match (method, rest.len()) {
        _ if is_watch => "watch".to_owned(),
        (&Method::GET, 1) => "list".to_owned(),
        (&Method::POST, _) => "create".to_owned(),
        (other, _) => other.as_str().to_lowercase(),
    };
    format!("{verb} {}", rest.first().unwrap_or(&path))
}
