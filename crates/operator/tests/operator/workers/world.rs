//! The management cluster of these tests, a cloud of its own for each, and managers.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use hangar_api::bootstrap::v1beta2::KubeadmConfig;
use hangar_api::cluster::v1beta2::{Cluster, Machine, MachineSet};
use hangar_api::infrastructure::v1beta1::{OpenStackCluster, OpenStackMachine};
use hangar_kit::call::CallLog;
use hangar_kit::client::{ClientOptions, client};
use hangar_kit::leadership::Always;
use hangar_kit::metrics::{Metrics, ReconcileLabels};
use hangar_operator::{Handles, controllers};
use hangar_plan::namespaces::Namespaces;
use hangar_testbed::{Options, Testbed};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

use crate::rights::{self, Refusals, nothing_was_forbidden};

/// One management cluster for all tests here. Without a controller-manager: nothing is collected behind our back.
pub(super) static BED: LazyLock<Testbed> = LazyLock::new(|| {
    let bed = Testbed::start(Options::default()).unwrap();
    bed.install(hangar_api::crd::all());
    bed
});

/// Waits until a claim holds. The limit is only for a test that fails.
pub(super) async fn eventually(what: &str, mut claim: impl AsyncFnMut() -> bool) {
    for _ in 0..6000 {
        if claim().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never: {what}");
}

/// One namespace, and the turn: a manager looks after every namespace, so two would look after each other's objects.
pub(super) struct World {
    pub(super) namespace: String,
    pub(super) client: Client,
    _turn: Option<MutexGuard<'static, ()>>,
}

static TURN: Mutex<()> = Mutex::const_new(());

impl World {
    pub(super) async fn new(prefix: &str) -> Self {
        let turn = TURN.lock().await;
        Self { _turn: Some(turn), ..Self::beside(prefix).await }
    }

    /// Another namespace of a test that has the turn already.
    pub(super) async fn beside(prefix: &str) -> Self {
        let namespace = tokio::task::block_in_place(|| BED.namespace(prefix));
        let client = BED.client();
        clear::<MachineSet>(&client).await;
        clear::<Machine>(&client).await;
        clear::<OpenStackMachine>(&client).await;
        clear::<OpenStackCluster>(&client).await;
        clear::<KubeadmConfig>(&client).await;
        Self { namespace, client, _turn: None }
    }

    pub(super) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(super) async fn get<K>(&self, name: &str) -> K
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        self.api().get(name).await.unwrap()
    }

    pub(super) async fn create<K>(&self, object: Value) -> K
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + serde::Serialize
            + std::fmt::Debug,
    {
        let object: K = serde_json::from_value(object).unwrap();
        self.api().create(&PostParams::default(), &object).await.unwrap()
    }

    pub(super) async fn merge<K>(&self, name: &str, fields: Value) -> K
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        self.api().patch(name, &PatchParams::default(), &Patch::Merge(fields)).await.unwrap()
    }

    pub(super) async fn merge_status<K>(&self, name: &str, status: Value) -> K
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let fields = json!({"status": status});
        self.api().patch_status(name, &PatchParams::default(), &Patch::Merge(fields)).await.unwrap()
    }

    /// A Cluster with a hosted control plane, which has answered or not.
    pub(super) async fn cluster(&self) -> Cluster {
        let reference = |group: &str, kind: &str| json!({"apiGroup": group, "kind": kind, "name": "demo"});
        self.create(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Cluster",
            "metadata": {"name": "demo"},
            "spec": {
                "infrastructureRef": reference("infrastructure.cluster.x-k8s.io", "OpenStackCluster"),
                "controlPlaneRef": reference("controlplane.cluster.x-k8s.io", "HostedControlPlane"),
                "controlPlaneEndpoint": {"host": "demo.clusters.hangar.test", "port": 443},
            },
        }))
        .await
    }

    pub(super) async fn provisioned(&self) {
        let done =
            json!({"initialization": {"infrastructureProvisioned": true, "controlPlaneInitialized": true}});
        self.merge_status::<Cluster>("demo", done).await;
    }

    /// A Machine, as a set makes it.
    pub(super) async fn machine(&self, name: &str, data_secret: Option<&str>) -> Machine {
        let bootstrap = match data_secret {
            Some(secret) => json!({"dataSecretName": secret}),
            None => json!({"configRef": {
                "apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": name,
            }}),
        };
        self.create(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Machine",
            "metadata": {"name": name, "labels": {"cluster.x-k8s.io/cluster-name": "demo"}},
            "spec": {
                "clusterName": "demo",
                "version": "v1.35.0",
                "bootstrap": bootstrap,
                "infrastructureRef": {
                    "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackMachine", "name": name,
                },
            },
        }))
        .await
    }

    pub(super) async fn secret(&self, name: &str, data: Value) -> Secret {
        self.create(json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "labels": {"cluster.x-k8s.io/cluster-name": "demo"}},
            "stringData": data,
        }))
        .await
    }

    /// As a person deletes it; waits until it is gone.
    pub(super) async fn delete<K>(&self, name: &str)
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        self.api::<K>().delete(name, &DeleteParams::default()).await.unwrap();
        eventually(&format!("{name} is gone"), async || {
            self.api::<K>().get_opt(name).await.unwrap().is_none()
        })
        .await;
    }
}

/// Takes away what earlier tests left, without ceremony.
async fn clear<K>(client: &Client)
where
    K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let all: Api<K> = Api::all(client.clone());
    for left in all.list(&ListParams::default()).await.unwrap() {
        let api: Api<K> = Api::namespaced(client.clone(), &left.namespace().unwrap_or_default());
        let released = json!({"metadata": {"finalizers": null}});
        // Either may find it gone.
        let _ = api.delete(&left.name_any(), &DeleteParams::default()).await;
        let _ = api.patch(&left.name_any(), &PatchParams::default(), &Patch::Merge(&released)).await;
    }
}

/// An owner reference as controllers write it.
pub(super) fn owner<K: Resource<DynamicType = ()>>(object: &K) -> Value {
    json!([{
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        "name": object.meta().name,
        "uid": object.meta().uid,
        "controller": true,
        "blockOwnerDeletion": true,
    }])
}

/// Tasks of a dropped manager end at their next await; one that does not is left to its thread.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// What a manager called and how often it looked, by transport.
#[derive(Clone)]
pub(super) struct Seen {
    pub(super) management: CallLog,
    pub(super) tenants: CallLog,
    pub(super) metrics: Metrics,
}

impl Seen {
    pub(super) fn new() -> Self {
        Self { management: CallLog::default(), tenants: CallLog::default(), metrics: Metrics::new() }
    }

    /// Passes of a controller so far.
    pub(super) fn passes(&self, controller: &'static str) -> u64 {
        let count = |result| {
            self.metrics.reconcile.total.get_or_create(&ReconcileLabels { controller, result }).get()
        };
        ["done", "waiting", "error"].map(count).iter().sum()
    }
}

/// Controllers that run until they are dropped, in a runtime of their own: what is dropped is gone at once.
pub(super) struct Running {
    runtime: Option<tokio::runtime::Runtime>,
}

impl Running {
    pub(super) fn start(selection: &str, cloud_gates: Vec<Arc<dyn hangar_openstack::CallGate>>) -> Self {
        Self::seen(selection, cloud_gates, &Seen::new())
    }

    pub(super) fn seen(
        selection: &str,
        cloud_gates: Vec<Arc<dyn hangar_openstack::CallGate>>,
        seen: &Seen,
    ) -> Self {
        Self::settling(selection, cloud_gates, seen, crate::SETTLING)
    }

    /// One that waits this long before it believes that a lost request came to nothing.
    pub(super) fn settling(
        selection: &str,
        cloud_gates: Vec<Arc<dyn hangar_openstack::CallGate>>,
        seen: &Seen,
        settling: Duration,
    ) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let config = rights::config(&BED, selection, &Namespaces::All);
        let (selection, seen) = (selection.parse().unwrap(), seen.clone());
        runtime.spawn(async move {
            let options = ClientOptions::default().gate(seen.management).gate(Refusals);
            let handles = Handles {
                client: client(config, &options).unwrap(),
                leadership: Arc::new(Always),
                metrics: seen.metrics,
                clock: hangar_kit::call::ServerClock::default(),
                namespaces: Namespaces::All,
                concurrency: 4,
                instance: "test".to_owned(),
                tenant_gates: vec![Arc::new(seen.tenants)],
                cloud_gates,
                etcd_gates: Vec::new(),
                settling,
                limits: Arc::default(),
                image: Some("hangar:test".to_owned()),
                own_namespace: None,
            };
            controllers::run(handles, &selection, CancellationToken::new()).await.unwrap();
        });
        Self { runtime: Some(runtime) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Waits for what is at work until its next await: the next one must not meet it.
            tokio::task::block_in_place(|| runtime.shutdown_timeout(KILL_LIMIT));
        }
        nothing_was_forbidden();
    }
}
