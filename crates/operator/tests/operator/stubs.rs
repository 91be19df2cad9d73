//! A management cluster with stub providers: kinds that implement the contracts and only report success.
//!
//! The tenant is the same API server. Its Nodes and pods are real objects that no kubelet runs.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use hangar_api::cluster::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet};
use hangar_kit::call::CallLog;
use hangar_kit::client::{ClientOptions, client};
use hangar_kit::leadership::Always;
use hangar_kit::metrics::{ControllerLabels, Metrics, ReconcileLabels};
use hangar_operator::{Handles, controllers};
use hangar_plan::namespaces::Namespaces;
use hangar_testbed::{Options, Testbed};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Node, Pod, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::MutexGuard;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::rights::{self, Refusals, nothing_was_forbidden};

pub(crate) const CONTROLLERS: [&str; 4] = ["cluster", "machine", "machine-set", "machine-deployment"];

/// Kind, group and contract of every stub. The infrastructure of a cluster is of the older contract.
const STUBS: [(&str, &str, &str); 6] = [
    ("AWSCluster", "infrastructure", "v1beta1"),
    ("StubPlane", "controlplane", "v1beta2"),
    ("StubConfig", "bootstrap", "v1beta2"),
    ("StubConfigTemplate", "bootstrap", "v1beta2"),
    ("StubMachine", "infrastructure", "v1beta2"),
    ("StubMachineTemplate", "infrastructure", "v1beta2"),
];

pub(crate) static BED: LazyLock<Testbed> = LazyLock::new(|| {
    let bed = Testbed::start(Options::default()).unwrap();
    let ours = hangar_api::crd::all().into_iter().filter(|one| one.spec.group == "cluster.x-k8s.io");
    bed.install(ours.chain(STUBS.map(|(kind, group, contract)| definition(kind, group, contract))));
    bed
});

fn definition(kind: &str, group: &str, contract: &str) -> CustomResourceDefinition {
    let (singular, group) = (kind.to_lowercase(), format!("{group}.cluster.x-k8s.io"));
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    serde_json::from_value(json!({
        "metadata": {"name": format!("{singular}s.{group}"),
            "labels": {format!("cluster.x-k8s.io/{contract}"): "v1"}},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "plural": format!("{singular}s"), "singular": singular, "listKind": format!("{kind}List")},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}}}],
        },
    }))
    .unwrap()
}

fn resource(kind: &str) -> ApiResource {
    let (_, group, _) = STUBS.iter().find(|(one, ..)| *one == kind).unwrap();
    let group = format!("{group}.cluster.x-k8s.io");
    ApiResource {
        api_version: format!("{group}/v1"),
        group,
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
    }
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

/// One test at a time: a manager looks after every namespace.
pub(crate) async fn turn() -> MutexGuard<'static, ()> {
    static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    TURN.lock().await
}

/// One namespace, which is also the prefix of its Nodes.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) namespace: String,
    pub(crate) client: Client,
}

impl World {
    pub(crate) fn new(prefix: &str) -> Self {
        // Starting the testbed blocks, and what is blocked must not be a worker of this runtime.
        let namespace = tokio::task::block_in_place(|| BED.namespace(prefix));
        Self { namespace, client: BED.client() }
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn stub(&self, kind: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource(kind))
    }

    pub(crate) async fn create<K>(&self, object: Value)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + serde::Serialize
            + DeserializeOwned,
    {
        let object: K = serde_json::from_value(object).unwrap();
        self.api::<K>().create(&PostParams::default(), &object).await.unwrap();
    }

    pub(crate) async fn create_stub(&self, kind: &str, name: &str, spec: Value) {
        let mut object = DynamicObject::new(name, &resource(kind));
        object.data = json!({ "spec": spec });
        self.stub(kind).create(&PostParams::default(), &object).await.unwrap();
    }

    pub(crate) async fn patch<K>(&self, name: &str, patch: Value)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned,
    {
        self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// A Cluster with stub references and the Secret with which it is reached.
    pub(crate) async fn cluster(&self) {
        self.cluster_of("StubPlane").await;
    }

    /// The same with a control plane of this kind.
    pub(crate) async fn cluster_of(&self, control_plane: &str) {
        self.create::<Cluster>(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "demo"},
            "spec": {
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AWSCluster", "name": "demo"},
                "controlPlaneRef": {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": control_plane, "name": "demo"},
            },
        }))
        .await;
        let kubeconfig = std::fs::read_to_string(BED.kubeconfig()).unwrap();
        self.create::<Secret>(json!({
            "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
            "metadata": {"name": "demo-kubeconfig", "labels": {"cluster.x-k8s.io/cluster-name": "demo"}},
            "stringData": {"value": kubeconfig},
        }))
        .await;
    }

    pub(crate) async fn parts_of_the_cluster(&self) {
        self.create_stub("AWSCluster", "demo", json!({})).await;
        self.create_stub("StubPlane", "demo", json!({})).await;
    }

    pub(crate) async fn deployment(&self, replicas: i32) {
        self.workers::<MachineDeployment>("MachineDeployment", replicas).await;
    }

    pub(crate) async fn set(&self, replicas: i32) {
        self.workers::<MachineSet>("MachineSet", replicas).await;
    }

    async fn workers<K>(&self, kind: &str, replicas: i32)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + serde::Serialize
            + DeserializeOwned,
    {
        self.create_stub("StubConfigTemplate", "join", json!({"template": {"spec": {"join": true}}})).await;
        self.create_stub("StubMachineTemplate", "small", json!({"template": {"spec": {"size": "small"}}}))
            .await;
        self.create_stub("StubMachineTemplate", "large", json!({"template": {"spec": {"size": "large"}}}))
            .await;
        let reference = |group: &str, kind: &str, name: &str| json!({"apiGroup": format!("{group}.cluster.x-k8s.io"), "kind": kind, "name": name});
        self.create::<K>(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": "workers"},
            "spec": {
                "clusterName": "demo", "replicas": replicas,
                "selector": {"matchLabels": {"pool": "workers"}},
                "template": {
                    "metadata": {"labels": {"pool": "workers", "cluster.x-k8s.io/cluster-name": "demo",
                        "node.cluster.x-k8s.io/tier": "fast"}},
                    "spec": {
                        "clusterName": "demo", "version": "v1.34.0",
                        "bootstrap": {"configRef": reference("bootstrap", "StubConfigTemplate", "join")},
                        "infrastructureRef": reference("infrastructure", "StubMachineTemplate", "small"),
                    },
                },
            },
        }))
        .await;
    }

    pub(crate) async fn all<K>(&self) -> Vec<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned,
    {
        loop {
            match self.api::<K>().list(&ListParams::default()).await {
                Ok(list) => return list.items,
                // A kept connection that the server closed meanwhile: nothing was asked.
                Err(kube::Error::Service(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    pub(crate) async fn names(&self, kind: &str) -> Vec<String> {
        let all = self.stub(kind).list(&ListParams::default()).await.unwrap();
        all.into_iter().map(|one| one.name_any()).collect()
    }

    pub(crate) async fn nodes(&self) -> Vec<Node> {
        let all: Api<Node> = Api::all(self.client.clone());
        let all = all.list(&ListParams::default()).await.unwrap();
        all.into_iter().filter(|node| node.name_any().starts_with(&format!("{}-", self.namespace))).collect()
    }

    /// Machines with a Node that are available and not going.
    pub(crate) async fn running(&self) -> Vec<Machine> {
        let is_running = |one: &Machine| {
            let status = one.status.clone().unwrap_or_default();
            one.metadata.deletion_timestamp.is_none()
                && status.node_ref.is_some()
                && text(status.conditions.as_deref(), "Available").0 == "True"
        };
        self.all::<Machine>().await.into_iter().filter(is_running).collect()
    }

    pub(crate) async fn cluster_condition(&self, type_: &str) -> (String, String) {
        let cluster = self.api::<Cluster>().get_opt("demo").await.unwrap();
        let status = cluster.and_then(|one| one.status).unwrap_or_default();
        text(status.conditions.as_deref(), type_)
    }

    /// Everything of the kinds under test, without what differs from run to run.
    pub(crate) async fn described(&self) -> BTreeSet<String> {
        let mut lines = BTreeSet::new();
        for one in self.all::<Cluster>().await {
            let status = one.status.clone().unwrap_or_default();
            lines.insert(format!("Cluster {:?} {:?}", status.phase, one.spec.control_plane_endpoint));
        }
        for one in self.all::<MachineDeployment>().await {
            let status = one.status.clone().unwrap_or_default();
            lines.insert(format!("MachineDeployment {:?} {:?}", status.replicas, status.available_replicas));
        }
        let sets = self.all::<MachineSet>().await;
        lines.insert(format!("MachineSets {}", sets.len()));
        let machines = self.all::<Machine>().await;
        let phases: Vec<String> = machines
            .iter()
            .map(|one| format!("{:?}", one.status.clone().unwrap_or_default().phase))
            .collect();
        lines.insert(format!("Machines {phases:?}"));
        for kind in ["AWSCluster", "StubPlane", "StubConfig", "StubMachine"] {
            lines.insert(format!("{kind} {}", self.names(kind).await.len()));
        }
        lines
    }
}

/// Status and message of a condition.
pub(crate) fn text(conditions: Option<&[Condition]>, type_: &str) -> (String, String) {
    let found = conditions.unwrap_or_default().iter().find(|one| one.type_ == type_);
    found.map(|one| (one.status.clone(), one.message.clone())).unwrap_or_default()
}

/// The stub providers and kubelets of one namespace. Dropping them ends them.
pub(crate) struct Providers {
    idle: Arc<Mutex<BTreeSet<&'static str>>>,
    task: JoinHandle<()>,
}

impl Providers {
    pub(crate) fn start(world: &World) -> Self {
        let idle = Arc::new(Mutex::new(BTreeSet::new()));
        let (world, seen) = (world.clone(), Arc::clone(&idle));
        let task = tokio::spawn(async move {
            loop {
                // Objects come and go between a list and a patch.
                let _ = play(&world, &seen).await;
                tokio::time::sleep(Duration::from_millis(30)).await;
            }
        });
        Self { idle, task }
    }

    /// The provider of a kind stops: it neither makes nor deletes.
    pub(crate) fn stop(&self, kind: &'static str) {
        self.idle.lock().unwrap().insert(kind);
    }

    pub(crate) fn go_on(&self, kind: &'static str) {
        self.idle.lock().unwrap().remove(kind);
    }
}

impl Drop for Providers {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn play(world: &World, idle: &Mutex<BTreeSet<&'static str>>) -> kube::Result<()> {
    for kind in ["AWSCluster", "StubPlane", "StubConfig", "StubMachine"] {
        for object in world.stub(kind).list(&ListParams::default()).await? {
            // Asked after the look: whoever stops a provider and then deletes is sure that it does nothing about it.
            if !idle.lock().unwrap().contains(kind) {
                provide(world, kind, &object).await?;
            }
        }
    }
    // Kubelets: what is asked to leave leaves.
    for pod in world.all::<Pod>().await {
        if pod.metadata.deletion_timestamp.is_some() {
            world.api::<Pod>().delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await?;
        }
    }
    Ok(())
}

async fn provide(world: &World, kind: &str, object: &DynamicObject) -> kube::Result<()> {
    let (api, name, parameters) = (world.stub(kind), object.name_any(), PatchParams::default());
    if object.metadata.deletion_timestamp.is_some() {
        let released = json!({"metadata": {"finalizers": null}});
        api.patch(&name, &parameters, &Patch::Merge(released)).await?;
        return Ok(());
    }
    if object.owner_references().is_empty() || object.data.pointer("/status/done").is_some() {
        return Ok(());
    }
    let id = format!("stub:///{}", object.uid().unwrap_or_default());
    let (spec, status) = match kind {
        "AWSCluster" => {
            (json!({}), json!({"ready": true, "failureDomains": {"az1": {"controlPlane": true}}}))
        }
        "StubPlane" => (
            json!({"controlPlaneEndpoint": {"host": "api.example", "port": 6443}}),
            json!({"externalManagedControlPlane": true, "version": "v1.34.0",
                "initialization": {"controlPlaneInitialized": true},
                "conditions": [{"type": "Available", "status": "True", "reason": "Serving", "message": "",
                    "lastTransitionTime": "2027-01-15T08:00:00Z"}]}),
        ),
        "StubConfig" => {
            (json!({}), json!({"dataSecretName": name, "initialization": {"dataSecretCreated": true}}))
        }
        _ => {
            let machine = world.api::<Machine>().get_opt(&name).await?;
            if machine.and_then(|one| one.spec.bootstrap.data_secret_name).is_none() {
                return Ok(());
            }
            let status = json!({"initialization": {"provisioned": true},
                "addresses": [{"type": "InternalIP", "address": "10.0.0.4"}]});
            (json!({"providerID": id}), status)
        }
    };
    let fields = json!({"metadata": {"finalizers": ["stub.example/provider"]}, "spec": spec});
    api.patch(&name, &parameters, &Patch::Merge(fields)).await?;
    if kind == "StubMachine" {
        register(world, &name, &id).await?;
    }
    let mut status = status;
    status["done"] = json!(true);
    api.patch_status(&name, &parameters, &Patch::Merge(json!({ "status": status }))).await?;
    Ok(())
}

/// A kubelet registers its Node.
async fn register(world: &World, machine: &str, provider_id: &str) -> kube::Result<()> {
    let api: Api<Node> = Api::all(world.client.clone());
    let name = format!("{}-{machine}", world.namespace);
    let node: Node = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {"providerID": provider_id,
            "taints": [{"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}]},
    }))
    .unwrap();
    match api.create(&PostParams::default(), &node).await {
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        result => drop(result?),
    }
    let status =
        json!({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}});
    api.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}

/// A running manager with the four controllers, and what it called.
pub(crate) struct Manager {
    stop: CancellationToken,
    task: JoinHandle<()>,
    metrics: Metrics,
    calls: CallLog,
    tenant: CallLog,
}

impl Manager {
    pub(crate) fn start() -> Self {
        let (calls, tenant, metrics) = (CallLog::default(), CallLog::default(), Metrics::new());
        let options = ClientOptions::default().gate(calls.clone()).gate(Refusals);
        let config = rights::config(&BED, &CONTROLLERS.join(","), &Namespaces::All);
        let mut handles = handles(client(config, &options).unwrap(), &metrics);
        handles.tenant_gates.push(Arc::new(tenant.clone()));
        let stop = CancellationToken::new();
        let task = tokio::spawn({
            let stop = stop.clone();
            async move { controllers::run(handles, &CONTROLLERS.join(",").parse().unwrap(), stop).await.unwrap() }
        });
        Self { stop, task, metrics, calls, tenant }
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
        nothing_was_forbidden();
    }

    /// Returns when nothing was written for a while and nothing is waiting.
    pub(crate) async fn rest(&self) {
        let (mut quiet, mut before) = (0, usize::MAX);
        eventually("the manager rests", async || {
            let writes = self.writes().len();
            quiet = if writes == before && is_at_rest(&self.metrics) { quiet + 1 } else { 0 };
            before = writes;
            quiet >= 40
        })
        .await;
    }

    pub(crate) fn tenant(&self) -> &CallLog {
        &self.tenant
    }

    /// Whether anything was asked of a resource.
    pub(crate) fn asked(&self, resource: &str) -> bool {
        self.calls.calls().iter().any(|(call, _)| call.resource.starts_with(resource))
    }

    pub(crate) fn writes(&self) -> Vec<String> {
        let calls = self.calls.calls().into_iter().filter(|(call, _)| call.verb.is_write());
        calls.map(|(call, answer)| format!("{call} ({answer:?})")).collect()
    }
}

pub(crate) fn handles(client: Client, metrics: &Metrics) -> Handles {
    Handles {
        client,
        leadership: Arc::new(Always),
        metrics: metrics.clone(),
        clock: hangar_kit::call::ServerClock::default(),
        namespaces: Namespaces::All,
        concurrency: 4,
        instance: "test".to_owned(),
        tenant_gates: Vec::new(),
        cloud_gates: Vec::new(),
        etcd_gates: Vec::new(),
        settling: crate::SETTLING,
        limits: Arc::default(),
        image: Some("hangar:test".to_owned()),
        own_namespace: None,
    }
}

/// Whether something was looked at, and nothing is to be done.
pub(crate) fn is_at_rest(metrics: &Metrics) -> bool {
    let total = |controller| {
        let results = ["done", "waiting", "error"];
        let count =
            |result| metrics.reconcile.total.get_or_create(&ReconcileLabels { controller, result }).get();
        results.map(count).iter().sum::<u64>()
    };
    let queue = &metrics.queue;
    let is_idle = |controller| {
        let labels = ControllerLabels { controller };
        [&queue.depth, &queue.running, &queue.failing]
            .iter()
            .all(|family| family.get_or_create(&labels).get() == 0)
    };
    CONTROLLERS.iter().any(|controller| total(controller) > 0) && CONTROLLERS.iter().all(|one| is_idle(one))
}
