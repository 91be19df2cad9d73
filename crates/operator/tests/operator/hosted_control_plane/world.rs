//! The management cluster of these tests, the objects that users would apply, and managers.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use hangar_api::cluster::v1beta2::Cluster;
use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use hangar_api::infrastructure::v1beta1::OpenStackCluster;
use hangar_kit::call::{Answer, Call, CallGate, CallLog};
use hangar_kit::client::{ClientOptions, client};
use hangar_kit::leadership::Always;
use hangar_kit::metrics::{ControllerLabels, Metrics, ReconcileLabels};
use hangar_operator::{Handles, controllers};
use hangar_plan::namespaces::Namespaces;
use hangar_testbed::{Options, Testbed};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::rights::{self, Refusals, nothing_was_forbidden};

pub(crate) const CONTROLLER: &str = "hosted-control-plane";

/// The image of managers.
const IMAGE: &str = "hangar:test";

/// The address that load balancers get. Nobody connects to it.
pub(crate) const BALANCER: &str = "203.0.113.10";

/// One management cluster for all tests here but crash sweeps.
pub(crate) static BED: LazyLock<Arc<Testbed>> = LazyLock::new(management_cluster);

/// One for crash sweeps, which take as long as all others together.
pub(crate) static SWEPT: LazyLock<Arc<Testbed>> = LazyLock::new(management_cluster);

/// A management cluster whose controller-manager makes pods and collects garbage.
fn management_cluster() -> Arc<Testbed> {
    let bed = Testbed::start(Options { controller_manager: true, scheduler: false }).unwrap();
    bed.install(hangar_api::crd::all());
    Arc::new(bed)
}

/// Waits until a claim holds. The limit is only for a test that fails.
pub(crate) async fn eventually(what: &str, mut claim: impl AsyncFnMut() -> bool) {
    for _ in 0..6000 {
        if claim().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never: {what}");
}

/// One test at a time: a manager looks after every namespace, so two would look after each other's objects.
pub(crate) async fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    TURN.lock().await
}

/// One sweep at a time, for the same reason.
pub(crate) async fn turn_to_sweep() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::const_new(());
    TURN.lock().await
}

/// Takes away what earlier tests left, without ceremony.
async fn clear(client: &Client) {
    let all: Api<HostedControlPlane> = Api::all(client.clone());
    for left in all.list(&ListParams::default()).await.unwrap() {
        let api: Api<HostedControlPlane> =
            Api::namespaced(client.clone(), &left.namespace().unwrap_or_default());
        let released = json!({"metadata": {"finalizers": null}});
        // Either may find it gone.
        let _ = api.delete("demo", &DeleteParams::default()).await;
        let _ = api.patch("demo", &PatchParams::default(), &Patch::Merge(&released)).await;
    }
    eventually("the stage is empty", async || {
        all.list(&ListParams::default()).await.unwrap().items.is_empty()
    })
    .await;
}

/// One namespace with a client of its own.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) bed: Arc<Testbed>,
    pub(crate) namespace: String,
    /// The name of the Cluster, after which the objects of its control plane are named.
    pub(crate) cluster: &'static str,
    pub(crate) client: Client,
}

impl World {
    pub(crate) async fn new(prefix: &str) -> Self {
        Self::new_in(&BED, prefix).await
    }

    pub(crate) async fn new_in(bed: &LazyLock<Arc<Testbed>>, prefix: &str) -> Self {
        // Starting the testbed blocks, and what is blocked must not be a worker of this runtime.
        let namespace = tokio::task::block_in_place(|| bed.namespace(prefix));
        let client = bed.client();
        clear(&client).await;
        Self { bed: Arc::clone(bed), namespace, cluster: "demo", client }
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// What a person applies: a Cluster, its infrastructure and its control plane, which the Cluster owns.
    pub(crate) async fn apply(&self, spec: Value) {
        let parameters = PostParams::default();
        let reference = |group: &str, kind: &str| json!({"apiGroup": group, "kind": kind, "name": "demo"});
        let cluster: Cluster = serde_json::from_value(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Cluster",
            "metadata": {"name": "demo"},
            "spec": {
                "clusterNetwork": {
                    "services": {"cidrBlocks": ["10.96.0.0/16"]},
                    "pods": {"cidrBlocks": ["10.244.0.0/16"]},
                },
                "infrastructureRef": reference("infrastructure.cluster.x-k8s.io", "OpenStackCluster"),
                "controlPlaneRef": reference("controlplane.cluster.x-k8s.io", "HostedControlPlane"),
            },
        }))
        .unwrap();
        let cluster = self.api::<Cluster>().create(&parameters, &cluster).await.unwrap();
        let infrastructure: OpenStackCluster = serde_json::from_value(json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "OpenStackCluster",
            "metadata": {"name": "demo"},
            "spec": {"identityRef": {"name": "cloud", "cloudName": "openstack"}},
        }))
        .unwrap();
        self.api::<OpenStackCluster>().create(&parameters, &infrastructure).await.unwrap();
        let control_plane: HostedControlPlane = serde_json::from_value(json!({
            "apiVersion": "controlplane.cluster.x-k8s.io/v1alpha1",
            "kind": "HostedControlPlane",
            "metadata": {
                "name": "demo",
                "labels": {"cluster.x-k8s.io/cluster-name": "demo"},
                "ownerReferences": [{
                    "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "demo",
                    "uid": cluster.uid().unwrap(), "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": spec,
        }))
        .unwrap();
        self.api::<HostedControlPlane>().create(&parameters, &control_plane).await.unwrap();
    }

    /// Deletes the control plane of a Cluster that lives, with consent.
    pub(crate) async fn delete(&self) {
        let consent = json!({"metadata": {"annotations": {"hangar.cluster.x-k8s.io/allow-deletion": ""}}});
        let api = self.api::<HostedControlPlane>();
        api.patch("demo", &PatchParams::default(), &Patch::Merge(&consent)).await.unwrap();
        api.delete("demo", &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn control_plane(&self) -> HostedControlPlane {
        self.api::<HostedControlPlane>().get("demo").await.unwrap()
    }

    /// The status of a condition with its reason and message, empty while there is none.
    pub(crate) async fn condition(&self, type_: &str) -> (String, String, String) {
        let status = self.control_plane().await.status.unwrap_or_default();
        let found = status.conditions.into_iter().find(|found| found.type_ == type_);
        found.map(|found| (found.status, found.reason, found.message)).unwrap_or_default()
    }

    /// Names of all objects of a kind that belong to the cluster.
    pub(crate) async fn names<K>(&self) -> Vec<String>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + serde::de::DeserializeOwned,
    {
        let labelled =
            ListParams::default().labels(&format!("cluster.x-k8s.io/cluster-name={}", self.cluster));
        let mut names: Vec<String> = self
            .api::<K>()
            .list(&labelled)
            .await
            .unwrap()
            .into_iter()
            .map(|found| found.name_any())
            .collect();
        names.sort();
        names
    }
}

/// A running manager with one controller, and what it called.
pub(crate) struct Manager {
    stop: CancellationToken,
    task: JoinHandle<()>,
    pub(crate) metrics: Metrics,
    /// Calls to the management cluster.
    pub(crate) calls: CallLog,
    pub(crate) tenant_calls: CallLog,
}

impl Manager {
    pub(crate) fn start() -> Self {
        Self::start_in(&BED)
    }

    pub(crate) fn start_in(bed: &Testbed) -> Self {
        Self::start_of(bed, IMAGE)
    }

    /// A manager of another image.
    pub(crate) fn start_of(bed: &Testbed, image: &str) -> Self {
        Self::start_with(bed, |handles| Handles { image: Some(image.to_owned()), ..handles })
    }

    /// A manager with other handles.
    pub(crate) fn start_with(bed: &Testbed, change: impl FnOnce(Handles) -> Handles) -> Self {
        let (calls, tenant_calls, metrics) = (CallLog::default(), CallLog::default(), Metrics::new());
        let options = ClientOptions::default().gate(calls.clone()).gate(metrics.calls.clone()).gate(Refusals);
        let config = rights::config(bed, CONTROLLER, &Namespaces::All);
        let handles = change(handles(client(config, &options).unwrap(), &metrics, Some(&tenant_calls)));
        let stop = CancellationToken::new();
        let task = tokio::spawn({
            let stop = stop.clone();
            async move { controllers::run(handles, &CONTROLLER.parse().unwrap(), stop).await.unwrap() }
        });
        Self { stop, task, metrics, calls, tenant_calls }
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
        nothing_was_forbidden();
    }

    /// Returns when nothing was called for some seconds and nothing is waiting.
    pub(crate) async fn rest(&self) {
        let mut quiet = 0;
        let mut before = usize::MAX;
        eventually("the manager rests", async || {
            let calls = not_watches(&self.calls.calls()) + not_watches(&self.tenant_calls.calls());
            quiet = if calls == before && is_at_rest(&self.metrics) { quiet + 1 } else { 0 };
            before = calls;
            quiet >= 60
        })
        .await;
    }

    /// Which pod was to end, and what the API server answered, in order.
    pub(crate) fn evictions(&self) -> Vec<(String, u16)> {
        let calls = self.calls.calls().into_iter().filter(|(call, _)| call.resource == "pods/eviction");
        calls
            .map(|(call, answer)| match answer {
                Answer::Status(status) => (call.name.unwrap(), status.as_u16()),
                answer => panic!("{call}: {answer:?}"),
            })
            .collect()
    }

    /// Writes to anybody since the start.
    pub(crate) fn writes(&self) -> Vec<String> {
        let both = [("", self.calls.calls()), ("tenant: ", self.tenant_calls.calls())];
        let both = both.into_iter().flat_map(|(where_, calls)| {
            let writes = calls.into_iter().filter(|(call, _)| call.verb.is_write());
            writes.map(move |(call, answer)| format!("{where_}{call} ({answer:?})"))
        });
        both.collect()
    }
}

fn not_watches(calls: &[(Call, Answer)]) -> usize {
    calls.iter().filter(|(call, _)| call.verb != hangar_kit::call::Verb::Watch).count()
}

pub(crate) fn handles(client: Client, metrics: &Metrics, tenant_calls: Option<&CallLog>) -> Handles {
    let tenant_gates = tenant_calls.map(|log| Arc::new(log.clone()) as Arc<dyn CallGate>);
    Handles {
        client,
        leadership: Arc::new(Always),
        metrics: metrics.clone(),
        clock: hangar_kit::call::ServerClock::default(),
        namespaces: Namespaces::All,
        concurrency: 2,
        instance: "test".to_owned(),
        tenant_gates: tenant_gates.into_iter().collect(),
        cloud_gates: Vec::new(),
        etcd_gates: Vec::new(),
        settling: crate::SETTLING,
        limits: Arc::default(),
        image: Some(IMAGE.to_owned()),
        // Where previews take it to be.
        own_namespace: Some(hangar_operator::DEFAULT_NAMESPACE.to_owned()),
    }
}

/// Whether the controller has looked at something, and has nothing to do.
pub(crate) fn is_at_rest(metrics: &Metrics) -> bool {
    let labels = ControllerLabels { controller: CONTROLLER };
    let looked = ["done", "waiting", "error"].iter().any(|result| {
        metrics.reconcile.total.get_or_create(&ReconcileLabels { controller: CONTROLLER, result }).get() > 0
    });
    let queue = &metrics.queue;
    let is_zero = [&queue.depth, &queue.running, &queue.failing]
        .iter()
        .all(|family| family.get_or_create(&labels).get() == 0);
    looked && is_zero
}

/// A spec with little in it: one API server, one etcd member.
pub(crate) fn spec() -> Value {
    json!({"version": "v1.34.11", "replicas": 1, "etcd": {"replicas": 1}})
}

pub(crate) fn texts(secret: &k8s_openapi::api::core::v1::Secret) -> BTreeMap<String, String> {
    let data = secret.data.clone().unwrap_or_default();
    data.into_iter().map(|(key, bytes)| (key, String::from_utf8(bytes.0).unwrap())).collect()
}
