//! Objects that the types of their kind cannot read: a number of more than 32 bits that was stored before the schema
//! refused it, a time that no clock shows, values nested deeper than a parser goes. They are told, each on its own
//! object, and disturb no other.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hangar_kit::metrics::Metrics;
use hangar_kit::telemetry::{Telemetry, TelemetrySettings};
use hangar_operator::controllers;
use hangar_plan::controllers::Selection;
use hangar_testbed::{Options, Testbed};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::stubs::{eventually, handles};

/// In every object that cannot be read, and in no log.
const MARK: &str = "b3V0LW9mLWxvZ3M";

const MACHINES: &str = "apis/cluster.x-k8s.io/v1beta2/namespaces/{}/machines";
/// Kinds with conditions: where they are, what they need, and the field that is found wanting.
const ROOTS: [(&str, &str, &str); 8] = [
    ("apis/cluster.x-k8s.io/v1beta2/namespaces/{}/clusters", "Cluster", "spec.controlPlaneEndpoint.port"),
    (MACHINES, "Machine", "spec.minReadySeconds"),
    (
        "apis/cluster.x-k8s.io/v1beta2/namespaces/{}/machinesets",
        "MachineSet",
        "spec.template.spec.minReadySeconds",
    ),
    (
        "apis/cluster.x-k8s.io/v1beta2/namespaces/{}/machinedeployments",
        "MachineDeployment",
        "spec.template.spec.minReadySeconds",
    ),
    (
        "apis/controlplane.cluster.x-k8s.io/v1alpha1/namespaces/{}/hostedcontrolplanes",
        "HostedControlPlane",
        "spec.deployment.apiServer.audit.policy.metadata",
    ),
    (
        "apis/bootstrap.cluster.x-k8s.io/v1beta2/namespaces/{}/kubeadmconfigs",
        "KubeadmConfig",
        "spec.verbosity",
    ),
    (
        "apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/{}/openstackclusters",
        "OpenStackCluster",
        "spec.networkMTU",
    ),
    (
        "apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/{}/openstackmachines",
        "OpenStackMachine",
        "spec.rootVolume.sizeGiB",
    ),
];
/// The other kinds that are watched.
const OTHERS: [(&str, &str); 8] = [
    ("api/v1/namespaces/{}/secrets", "Secret"),
    ("api/v1/namespaces/{}/configmaps", "ConfigMap"),
    ("api/v1/namespaces/{}/services", "Service"),
    ("api/v1/namespaces/{}/pods", "Pod"),
    ("apis/apps/v1/namespaces/{}/statefulsets", "StatefulSet"),
    ("apis/apps/v1/namespaces/{}/deployments", "Deployment"),
    ("apis/policy/v1/namespaces/{}/poddisruptionbudgets", "PodDisruptionBudget"),
    ("apis/networking.k8s.io/v1/namespaces/{}/networkpolicies", "NetworkPolicy"),
];

fn spec(kind: &str) -> Value {
    let reference = |group: &str, kind: &str| json!({"apiGroup": format!("{group}.cluster.x-k8s.io"), "kind": kind, "name": "demo"});
    let machine = |seconds: i64| {
        json!({
            "clusterName": "demo", "version": "v1.34.10", "minReadySeconds": seconds,
            "bootstrap": {"configRef": reference("bootstrap", "KubeadmConfigTemplate")},
            "infrastructureRef": reference("infrastructure", "OpenStackMachineTemplate"),
        })
    };
    let workers = |seconds| {
        json!({"clusterName": "demo", "replicas": 1, "selector": {"matchLabels": {"pool": "odd"}},
            "template": {"metadata": {"labels": {"pool": "odd"}}, "spec": machine(seconds)}})
    };
    let pod = json!({"containers": [{"name": "one", "image": "example.invalid/one"}]});
    let pods = json!({"metadata": {"labels": {"pool": "odd"}}, "spec": pod});
    let selector = json!({"matchLabels": {"pool": "odd"}});
    match kind {
        "Cluster" => json!({"controlPlaneEndpoint": {"host": "api.example", "port": 3_000_000_000_i64},
            "controlPlaneRef": reference("controlplane", "HostedControlPlane")}),
        "Machine" => machine(3_000_000_000),
        "MachineSet" | "MachineDeployment" => workers(3_000_000_000),
        "HostedControlPlane" => {
            let deep = (0..400).fold(json!({}), |inner, _| json!({ "a": inner }));
            let audit = json!({"policy": {"metadata": deep, "rules": [{"level": "None"}]}});
            json!({"version": "v1.34.10", "deployment": {"apiServer": {"audit": audit}}})
        }
        "KubeadmConfig" => json!({"verbosity": 3_000_000_000_i64}),
        "OpenStackCluster" => {
            json!({"identityRef": {"name": "none", "cloudName": "none"}, "networkMTU": 1500.5})
        }
        "OpenStackMachine" => {
            json!({"flavor": "small", "image": {"filter": {"name": "node"}}, "rootVolume": {"sizeGiB": 8.5}})
        }
        "Service" => json!({"ports": [{"port": 80}]}),
        "Pod" => pod,
        "StatefulSet" => json!({"serviceName": "odd", "selector": selector, "template": pods}),
        "Deployment" => json!({"selector": selector, "template": pods}),
        "PodDisruptionBudget" => json!({ "selector": selector }),
        "NetworkPolicy" => json!({ "podSelector": selector }),
        _ => Value::Null,
    }
}

/// An owner of a field since a time that no timestamp holds. The API server keeps what a client says about it.
fn odd_time(api_version: &str) -> Value {
    json!([{"manager": "odd", "operation": "Update", "apiVersion": api_version, "fieldsType": "FieldsV1",
        "time": "9999-12-31T23:59:59Z", "fieldsV1": {"f:metadata": {"f:annotations": {"f:mark": {}}}}}])
}

fn api_version(path: &str) -> String {
    let mut segments = path.split('/').skip(1);
    let (group, version) = (segments.next().unwrap(), segments.next().unwrap());
    if path.starts_with("api/") { group.to_owned() } else { format!("{group}/{version}") }
}

fn odd(path: &str, kind: &str) -> Value {
    let mut object = json!({
        "apiVersion": api_version(path), "kind": kind,
        "metadata": {"name": "odd", "labels": {"cluster.x-k8s.io/cluster-name": "demo"}, "annotations": {"mark": MARK}},
        "spec": spec(kind),
    });
    if matches!(kind, "Secret" | "ConfigMap") {
        object.as_object_mut().unwrap().remove("spec");
    }
    if kind == "Machine" {
        object["metadata"]["finalizers"] = json!(["machine.cluster.x-k8s.io"]);
    }
    object
}

/// One API server whose answers are not read more than a test needs.
struct Server {
    client: Client,
}

impl Server {
    async fn send(&self, verb: &str, path: &str, body: &str) -> kube::Result<()> {
        let kind = if verb == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder().method(verb).uri(format!("/{path}"));
        let request = request.header("content-type", kind).body(body.as_bytes().to_vec()).unwrap();
        self.client.request::<IgnoredAny>(request).await.map(drop)
    }

    async fn create(&self, path: &str, namespace: &str, object: &Value) {
        let path = path.replace("{}", namespace);
        self.send("POST", &path, &text(object)).await.unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    /// Lets somebody own its annotation since a time that no timestamp holds, which matters to nobody.
    async fn spoil(&self, path: &str, namespace: &str, name: &str) {
        let fields = json!({"metadata": {"managedFields": odd_time(&api_version(path))}});
        let path = format!("{}/{name}", path.replace("{}", namespace));
        self.send("PATCH", &path, &text(&fields)).await.unwrap_or_else(|error| panic!("{path}: {error}"));
    }

    /// A condition of an object: status, reason and message, of which whatever is missing is empty.
    async fn condition(&self, path: &str, namespace: &str, name: &str, type_: &str) -> [String; 3] {
        let all = self.conditions(path, namespace, name).await;
        let found = all.into_iter().find(|one| one["type"] == type_).unwrap_or_default();
        ["status", "reason", "message"].map(|field| found[field].as_str().unwrap_or_default().to_owned())
    }

    async fn conditions(&self, path: &str, namespace: &str, name: &str) -> Vec<Value> {
        #[derive(Default, Deserialize)]
        struct Outline {
            #[serde(default)]
            status: Value,
        }
        let path = format!("/{}/{name}", path.replace("{}", namespace));
        let request = http::Request::get(&path).body(Vec::new()).unwrap();
        let outline = self.client.request::<Outline>(request).await.unwrap_or_default();
        outline.status["conditions"].as_array().cloned().unwrap_or_default()
    }

    async fn names(&self, path: &str, namespace: &str) -> Vec<String> {
        #[derive(Deserialize)]
        struct List {
            items: Vec<Outline>,
        }
        #[derive(Deserialize)]
        struct Outline {
            metadata: Named,
        }
        #[derive(Deserialize)]
        struct Named {
            name: String,
        }
        let request =
            http::Request::get(format!("/{}", path.replace("{}", namespace))).body(Vec::new()).unwrap();
        let list: List = self.client.request(request).await.unwrap();
        list.items.into_iter().map(|one| one.metadata.name).collect()
    }
}

/// What nests deeply cannot be written by recursion in a small stack; a `Value` of 400 levels can.
fn text(value: &Value) -> String {
    serde_json::to_string(value).unwrap()
}

/// CRDs as they were before they had bounds; OpenStack's kinds have no small numbers, so that fractions are allowed.
fn boundless(definition: CustomResourceDefinition) -> CustomResourceDefinition {
    fn strip(value: &mut Value) {
        if let Value::Object(fields) = value {
            if fields.get("type").is_some_and(|type_| type_ == "integer") {
                fields.remove("maximum");
            }
            for name in ["networkMTU", "sizeGiB"] {
                if let Some(Value::Object(field)) = fields.get_mut(name) {
                    field.remove("format");
                    field.insert("type".to_owned(), json!("number"));
                }
            }
            fields.values_mut().for_each(strip);
        }
        if let Value::Array(items) = value {
            items.iter_mut().for_each(strip);
        }
    }
    let mut value = serde_json::to_value(definition).unwrap();
    strip(&mut value["spec"]);
    serde_json::from_value(value).unwrap()
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Manager {
    stop: CancellationToken,
    task: JoinHandle<()>,
    metrics: Metrics,
}

impl Manager {
    fn start(client: &Client) -> Self {
        let (stop, metrics) = (CancellationToken::new(), Metrics::new());
        let (handles, until) = (handles(client.clone(), &metrics), stop.clone());
        let task =
            tokio::spawn(async move { controllers::run(handles, &Selection::all(), until).await.unwrap() });
        Self { stop, task, metrics }
    }

    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

/// A Cluster with everything but a cloud.
async fn cluster(server: &Server, namespace: &str) {
    let mut cluster = odd(ROOTS[0].0, "Cluster");
    cluster["metadata"] = json!({"name": "demo"});
    cluster["spec"] = json!({
        "controlPlaneRef": {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "HostedControlPlane", "name": "demo"},
        "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackCluster", "name": "demo"},
    });
    server.create(ROOTS[0].0, namespace, &cluster).await;
    for (path, kind, _) in [ROOTS[4], ROOTS[6], ROOTS[3]] {
        let mut object = odd(path, kind);
        object["metadata"] = json!({"name": "demo"});
        if kind == "OpenStackCluster" {
            object["spec"]["networkMTU"] = json!(1500);
        }
        if kind == "HostedControlPlane" {
            object["spec"] = json!({"version": "v1.34.10"});
        }
        if kind == "MachineDeployment" {
            object["spec"]["template"]["spec"]["minReadySeconds"] = json!(0);
            object["spec"]["template"]["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] = json!("demo");
        }
        server.create(path, namespace, &object).await;
    }
    let server_spec = json!({"flavor": "small", "image": {"filter": {"name": "node"}}});
    let templates = [
        ("bootstrap", "v1beta2", "KubeadmConfigTemplate", json!({"verbosity": 1})),
        ("infrastructure", "v1beta1", "OpenStackMachineTemplate", server_spec),
    ];
    for (group, version, kind, spec) in templates {
        let api_version = format!("{group}.cluster.x-k8s.io/{version}");
        let path = format!("apis/{api_version}/namespaces/{{}}/{}s", kind.to_lowercase());
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "demo"},
            "spec": {"template": {"spec": spec}}});
        server.create(&path, namespace, &object).await;
    }
}

#[tokio::test]
async fn an_object_that_cannot_be_read_is_told_and_disturbs_no_other() {
    let bed = tokio::task::spawn_blocking(|| {
        let bed = Testbed::start(Options::default()).unwrap();
        bed.install(hangar_api::crd::all().into_iter().map(boundless));
        let names = (bed.namespace("evil"), bed.namespace("good"));
        (bed, names)
    });
    let (bed, (evil, good)) = bed.await.unwrap();
    let (server, evil, good) = (Server { client: bed.client() }, evil.as_str(), good.as_str());
    for (path, kind) in ROOTS.map(|(path, kind, _)| (path, kind)).into_iter().chain(OTHERS) {
        server.create(path, evil, &odd(path, kind)).await;
        server.spoil(path, evil, "odd").await;
    }

    let (lines, level) = (Lines::default(), "debug,kube_client=debug".parse().unwrap());
    let (writer, settings) = (lines.clone(), TelemetrySettings { level, ..TelemetrySettings::default() });
    let (subscriber, _telemetry) =
        Telemetry::build(&settings, &Metrics::new(), move || writer.clone()).unwrap();
    let logging = tracing::subscriber::set_default(subscriber);

    let manager = Manager::start(&server.client);
    cluster(&server, good).await;
    for (path, kind, field) in ROOTS {
        let is_told = async || server.condition(path, evil, "odd", "Readable").await[0] == "False";
        if tokio::time::timeout(Duration::from_secs(60), eventually(kind, is_told)).await.is_err() {
            let log = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
            let about: Vec<&str> = log.lines().filter(|line| line.contains("odd")).collect();
            panic!("{kind} is not told: {}", about.join("\n"));
        }
        let [_, reason, message] = server.condition(path, evil, "odd", "Readable").await;
        assert!(reason == "FieldNotReadable" && message.starts_with(field), "{kind}: {message}");
    }
    for (path, kind, _) in ROOTS {
        eventually(&format!("{kind} of another namespace is looked after"), async || {
            let names = server.names(path, good).await;
            match names.first() {
                Some(name) => !server.conditions(path, good, name).await.is_empty(),
                None => false,
            }
        })
        .await;
    }
    let page = manager.metrics.encode();
    // Nobody reads managedFields.
    for watch in
        ["secrets", "pods", "config-maps", "services", "stateful-sets", "deployments", "network-policies"]
    {
        assert!(page.contains(&format!("watch_unreadable{{watch=\"{watch}\"}} 0")), "{watch}: {page}");
    }
    let errors = page.lines().filter(|line| line.starts_with("hangar_watch_errors_total{"));
    assert!(errors.clone().all(|line| line.ends_with(" 0")), "{:?}", errors.collect::<Vec<_>>());
    manager.stop().await;

    // The next process begins with a list that has all of them.
    let manager = Manager::start(&server.client);
    let scaled = |replicas: i32| text(&json!({"spec": {"replicas": replicas}}));
    let deployment = format!("{}/demo", ROOTS[3].0.replace("{}", good));
    server.send("PATCH", &deployment, &scaled(2)).await.unwrap();
    eventually("two Machines", async || server.names(MACHINES, good).await.len() == 2).await;

    // A member that cannot be read is neither absent nor replaced.
    let name = server.names(MACHINES, good).await.remove(0);
    let machine = format!("{}/{name}", MACHINES.replace("{}", good));
    let wrong =
        json!({"metadata": {"annotations": {"mark": MARK}}, "spec": {"minReadySeconds": 3_000_000_000_i64}});
    server.send("PATCH", &machine, &text(&wrong)).await.unwrap();
    eventually("it is told", async || {
        server.condition(MACHINES, good, &name, "Readable").await[0] == "False"
    })
    .await;
    server.send("PATCH", &deployment, &scaled(3)).await.unwrap();
    let set = server.names(ROOTS[2].0, good).await.remove(0);
    eventually("its set does not know", async || {
        let [status, _, message] = server.condition(ROOTS[2].0, good, &set, "ScalingUp").await;
        status == "Unknown" && message.contains(&name)
    })
    .await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(server.names(MACHINES, good).await.len(), 2);

    // What is released is what can be read; a schema that refuses the value by now does not hinder saying so.
    refuse_from_now_on(&server, evil).await;
    let condemned = format!("{}/odd", MACHINES.replace("{}", evil));
    server.send("DELETE", &condemned, "").await.unwrap();
    eventually("it says that it is held", async || {
        server.condition(MACHINES, evil, "odd", "Readable").await[2].contains("cannot be released")
    })
    .await;

    // Corrected, it is one of many again.
    let corrected = json!({"spec": {"minReadySeconds": 0}});
    server.send("PATCH", &machine, &text(&corrected)).await.unwrap();
    eventually("three Machines", async || server.names(MACHINES, good).await.len() == 3).await;
    eventually("nothing is said any more", async || {
        server.condition(MACHINES, good, &name, "Readable").await[0].is_empty()
    })
    .await;
    server.send("PATCH", &condemned, &text(&corrected)).await.unwrap();
    eventually("it is released", async || server.names(MACHINES, evil).await.is_empty()).await;
    manager.stop().await;
    drop(logging);
    let log = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("an object cannot be read") && !log.contains(MARK));
}

/// The CRDs get their bounds, and whoever writes a value beyond them is told the field.
async fn refuse_from_now_on(server: &Server, namespace: &str) {
    let api: Api<CustomResourceDefinition> = Api::all(server.client.clone());
    let bounded = |one: &CustomResourceDefinition| one.spec.group != "infrastructure.cluster.x-k8s.io";
    for definition in hangar_api::crd::all().into_iter().filter(bounded) {
        let name = definition.metadata.name.clone().unwrap();
        let spec = Patch::Merge(json!({ "spec": definition.spec }));
        api.patch(&name, &PatchParams::default(), &spec).await.unwrap();
    }
    let mut another = odd(MACHINES, "Machine");
    another["metadata"]["name"] = json!("another");
    let path = format!("{}?dryRun=All", MACHINES.replace("{}", namespace));
    eventually("a number beyond 32 bits is refused", async || {
        match server.send("POST", &path, &text(&another)).await {
            Err(kube::Error::Api(answer)) => answer.message.contains("spec.minReadySeconds"),
            _ => false,
        }
    })
    .await;
}
