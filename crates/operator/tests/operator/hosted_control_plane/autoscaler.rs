//! A real HorizontalPodAutoscaler, carried out by the real controller manager, sets the number of API servers: by its
//! limits alone, and by what pods use. The test is the metrics server.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use hangar_testbed::Port;
use hangar_testbed::strangers::serving;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::List;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use super::actor::Actor;
use super::world::{Manager, World, eventually, spec, turn};

const METRICS: &str = "/apis/metrics.k8s.io/v1beta1";
const REGISTRATION: &str = "v1beta1.metrics.k8s.io";
/// Of the names of API servers' pods.
const PREFIX: &str = "demo-apiserver-";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_autoscaler_sets_the_number_of_api_servers() {
    let _turn = turn().await;
    let world = World::new("autoscaler").await;
    let actor = Actor::start(&world);
    let (mut wanted, port) = (spec(), Port::reserve().unwrap());
    // Pods that run are connected to: at a port where nobody listens.
    wanted["controlPlaneEndpoint"] = json!({"host": "localhost", "port": port.number()});
    world.apply(wanted).await;
    let manager = Manager::start();
    actor.run("etcd");
    actor.run("api-server");
    runs(&world, 1).await;

    // Its limits need no metrics.
    let autoscalers = world.api::<HorizontalPodAutoscaler>();
    autoscalers.create(&PostParams::default(), &autoscaler()).await.unwrap();
    runs(&world, 2).await;
    limit(&world, 1, 1).await;
    runs(&world, 1).await;

    // It asks for 50 % of what pods request. They use as much as they request, so each look doubles their number.
    limit(&world, 1, 3).await;
    let metrics = MetricsServer::start(&world).await;
    metrics.used(100);
    runs(&world, 3).await;
    metrics.used(10);
    runs(&world, 1).await;

    // It was told of the API servers' pods and of no others, though others are there.
    let told = metrics.told.lock().unwrap().clone();
    assert!(told.len() >= 3 && told.iter().all(|pod| pod.starts_with(PREFIX)), "{told:?}");
    assert!(world.names::<Pod>().await.iter().any(|pod| !told.contains(pod)));
    metrics.stop().await;
    autoscalers.delete("demo", &DeleteParams::default()).await.unwrap();
    manager.stop().await;
}

fn autoscaler() -> HorizontalPodAutoscaler {
    serde_json::from_value(json!({"metadata": {"name": "demo"}, "spec": {
        "scaleTargetRef": {
            "apiVersion": "controlplane.cluster.x-k8s.io/v1alpha1", "kind": "HostedControlPlane", "name": "demo",
        },
        "minReplicas": 2,
        "maxReplicas": 4,
        "metrics": [{"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50},
        }}],
        // It waits for five minutes otherwise.
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
    }}))
    .unwrap()
}

async fn limit(world: &World, least: i32, most: i32) {
    let limits = Patch::Merge(json!({"spec": {"minReplicas": least, "maxReplicas": most}}));
    world.api::<HorizontalPodAutoscaler>().patch("demo", &PatchParams::default(), &limits).await.unwrap();
}

/// Waits for that many API servers, from what is asked for to the pods that `scale` selects, which are all of them and no
/// others.
async fn runs(world: &World, count: i32) {
    eventually(&format!("{count} API servers run"), async || {
        let scale = world.api::<HostedControlPlane>().get_scale("demo").await.unwrap();
        let deployment = world.api::<Deployment>().get_opt("demo-apiserver").await.unwrap();
        let deployed = deployment.and_then(|deployment| deployment.spec?.replicas);
        let status = scale.status.unwrap_or_default();
        let asked = scale.spec.unwrap_or_default().replicas;
        let Some(selector) = status
            .selector
            .filter(|_| (asked, deployed, status.replicas) == (Some(count), Some(count), count))
        else {
            return false;
        };
        let selected = world.api::<Pod>().list(&ListParams::default().labels(&selector)).await.unwrap();
        let selected: BTreeSet<String> = selected.iter().map(kube::ResourceExt::name_any).collect();
        let mut all: BTreeSet<String> = world.names::<Pod>().await.into_iter().collect();
        all.retain(|pod| pod.starts_with(PREFIX));
        selected == all && all.len() == usize::try_from(count).unwrap()
    })
    .await;
}

/// Names of pods that somebody was told of.
type Told = Arc<Mutex<BTreeSet<String>>>;

/// Tells how much pods use, as an aggregated API of the management cluster.
struct MetricsServer {
    world: World,
    used: Arc<AtomicU64>,
    told: Told,
    task: JoinHandle<()>,
}

impl MetricsServer {
    async fn start(world: &World) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (used, told) = (Arc::default(), Arc::default());
        let task = tokio::spawn(serve(listener, world.client.clone(), Arc::clone(&used), Arc::clone(&told)));
        let server = Self { world: world.clone(), used, told, task };
        server.register(address).await;
        server
    }

    fn services(&self) -> Api<APIService> {
        Api::all(self.world.client.clone())
    }

    async fn register(&self, address: SocketAddr) {
        let parameters = PostParams::default();
        // The API server has no way to an address of a Service here, but to a name.
        let service = json!({"metadata": {"name": "metrics"}, "spec": {"type": "ExternalName", "externalName": "localhost"}});
        let service = serde_json::from_value(service).unwrap();
        self.world.api::<Service>().create(&parameters, &service).await.unwrap();
        let registered = serde_json::from_value(json!({"metadata": {"name": REGISTRATION}, "spec": {
            "group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100,
            "insecureSkipTLSVerify": true,
            "service": {"name": "metrics", "namespace": self.world.namespace, "port": address.port()},
        }}))
        .unwrap();
        self.services().create(&parameters, &registered).await.unwrap();
    }

    /// From now on every container uses so many per cent of what it requests.
    fn used(&self, per_cent: u64) {
        self.used.store(per_cent, Ordering::SeqCst);
    }

    async fn stop(self) {
        self.services().delete(REGISTRATION, &DeleteParams::default()).await.unwrap();
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, client: Client, used: Arc<AtomicU64>, told: Told) {
    let (acceptor, _) = serving(listener.local_addr().unwrap());
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let accepted = acceptor.accept(stream);
        let (client, used, told) = (client.clone(), Arc::clone(&used), Arc::clone(&told));
        connections.spawn(async move {
            let Ok(stream) = accepted.await else { return };
            let answer = service_fn(|request: Request<Incoming>| {
                let (client, used, told) = (client.clone(), used.load(Ordering::SeqCst), Arc::clone(&told));
                async move { Ok::<_, Infallible>(answer(&request, client, used, &told).await) }
            });
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), answer)
                .await;
        });
    }
}

async fn answer(
    request: &Request<Incoming>,
    client: Client,
    used: u64,
    told: &Told,
) -> Response<Full<Bytes>> {
    let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
    let body = match path.strip_prefix(METRICS) {
        Some("") => {
            json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "metrics.k8s.io/v1beta1",
            "resources": [{"name": "pods", "singularName": "", "namespaced": true, "kind": "PodMetrics",
                "verbs": ["get", "list"]}]})
        }
        // Whoever asks by a selector asks for pods that the cluster selects by it.
        Some(pods) if pods.starts_with("/namespaces/") => {
            let selected = http::Request::get(format!("/api/v1{pods}?{query}")).body(Vec::new()).unwrap();
            let selected: List<Pod> = client.request(selected).await.unwrap();
            told.lock().unwrap().extend(selected.items.iter().map(kube::ResourceExt::name_any));
            let items: Vec<Value> = selected.items.iter().map(|pod| usage(pod, used)).collect();
            json!({"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {}, "items": items})
        }
        _ => {
            let mut absent = Response::new(Full::default());
            *absent.status_mut() = StatusCode::NOT_FOUND;
            return absent;
        }
    };
    let mut answer = Response::new(Full::from(body.to_string()));
    answer
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    answer
}

/// What the containers of a pod use, in per cent of what they request.
fn usage(pod: &Pod, used: u64) -> Value {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers).map(|container| {
        let requests = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        let requested = &requests.expect("containers request something")["cpu"].0;
        let milli: u64 = requested.strip_suffix('m').expect("parts of a processor").parse().unwrap();
        json!({"name": container.name, "usage": {"cpu": format!("{}m", milli * used / 100), "memory": "1Mi"}})
    });
    json!({
        "metadata": {"name": pod.name_any(), "namespace": pod.namespace()},
        "timestamp": jiff::Timestamp::now().to_string(), "window": "1s",
        "containers": containers.collect::<Vec<_>>(),
    })
}
