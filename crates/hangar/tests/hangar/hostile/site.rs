//! A namespace and what is in it: clusters whose tenants wish us ill, and a good one with workers in a cloud.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use hangar_cloud::driver::RecordingDriver;
use hangar_cloud::model::Status;
use hangar_cloud::{Cloud, Config, Handle};
use hangar_testbed::Testbed;
use http::Method;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::servers::provider_id;
use crate::installation::eventually;

/// Providers' kinds that only report success, and their groups.
const STUBS: [(&str, &str); 3] =
    [("StubPlane", "controlplane"), ("StubCluster", "infrastructure"), ("StubMachine", "infrastructure")];

/// Serves the stub kinds from now on.
pub(crate) fn install_stubs(bed: &Testbed) {
    bed.install(STUBS.map(|(kind, group)| definition(kind, group)));
}

fn definition(kind: &str, group: &str) -> CustomResourceDefinition {
    let (singular, group) = (kind.to_lowercase(), format!("{group}.cluster.x-k8s.io"));
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    serde_json::from_value(json!({
        "metadata": {"name": format!("{singular}s.{group}"), "labels": {"cluster.x-k8s.io/v1beta2": "v1"}},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "plural": format!("{singular}s"), "singular": singular, "listKind": format!("{kind}List")},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}}}}],
        },
    }))
    .unwrap()
}

pub(crate) const CORE: &str = "cluster.x-k8s.io/v1beta2";
pub(crate) const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io/v1beta1";
const STUB: &str = "infrastructure.cluster.x-k8s.io/v1";
const PLANE: &str = "controlplane.cluster.x-k8s.io/v1";

/// One namespace.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

impl Site {
    pub(crate) fn new(bed: &Testbed, prefix: &str) -> Self {
        let namespace = tokio::task::block_in_place(|| bed.namespace(prefix));
        Self { client: bed.client(), namespace }
    }

    fn path(&self, api_version: &str, kind: &str, name: &str) -> String {
        let root = if api_version == "v1" { "api" } else { "apis" };
        let (namespace, plural) = (&self.namespace, kind.to_lowercase());
        format!("/{root}/{api_version}/namespaces/{namespace}/{plural}s{name}")
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> kube::Result<Value> {
        let content =
            if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(body).unwrap() };
        let request = http::Request::builder().method(method).uri(path).header("content-type", content);
        self.client.request(request.body(body).unwrap()).await
    }

    pub(crate) async fn create(&self, object: Value) -> kube::Result<Value> {
        let text = |field: &str| object[field].as_str().unwrap().to_owned();
        self.send(Method::POST, &self.path(&text("apiVersion"), &text("kind"), ""), &object).await
    }

    pub(crate) async fn patch(
        &self,
        api_version: &str,
        kind: &str,
        name: &str,
        patch: Value,
    ) -> kube::Result<Value> {
        self.send(Method::PATCH, &self.path(api_version, kind, &format!("/{name}")), &patch).await
    }

    pub(crate) async fn delete(&self, api_version: &str, kind: &str, name: &str) -> kube::Result<Value> {
        self.send(Method::DELETE, &self.path(api_version, kind, &format!("/{name}")), &Value::Null).await
    }

    pub(crate) async fn list(&self, api_version: &str, kind: &str) -> Vec<Value> {
        let list = self.send(Method::GET, &self.path(api_version, kind, ""), &Value::Null).await;
        list.ok().and_then(|list| list["items"].as_array().cloned()).unwrap_or_default()
    }

    pub(crate) async fn kubeconfig(&self, cluster: &str, kubeconfig: &str) {
        self.create(json!({
            "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
            "metadata": {"name": format!("{cluster}-kubeconfig"), "labels": {"cluster.x-k8s.io/cluster-name": cluster}},
            "stringData": {"value": kubeconfig},
        }))
        .await
        .unwrap();
    }

    /// A Cluster whose control plane serves, with infrastructure of this kind.
    pub(crate) async fn cluster(&self, name: &str, infrastructure: &str) {
        let reference = |group: &str, kind: &str| json!({"apiGroup": format!("{group}.cluster.x-k8s.io"), "kind": kind, "name": name});
        self.create(json!({"apiVersion": PLANE, "kind": "StubPlane", "metadata": {"name": name},
            "spec": {"controlPlaneEndpoint": {"host": "api.example", "port": 6443}}}))
            .await
            .unwrap();
        let served = json!({"status": {"externalManagedControlPlane": true, "version": "v1.34.10",
            "initialization": {"controlPlaneInitialized": true},
            "conditions": [{"type": "Available", "status": "True", "reason": "Serving", "message": "",
                "lastTransitionTime": "2026-01-15T08:00:00Z"}]}});
        self.patch(PLANE, "StubPlane", &format!("{name}/status"), served).await.unwrap();
        self.create(json!({"apiVersion": CORE, "kind": "Cluster", "metadata": {"name": name}, "spec": {
            "controlPlaneRef": reference("controlplane", "StubPlane"),
            "infrastructureRef": reference("infrastructure", infrastructure),
        }}))
        .await
        .unwrap();
    }

    /// A Cluster whose tenant is asked for the Nodes of so many Machines.
    pub(crate) async fn tenant(&self, name: &str, kubeconfig: &str, machines: usize) {
        self.kubeconfig(name, kubeconfig).await;
        let stub = json!({"apiVersion": STUB, "kind": "StubCluster", "metadata": {"name": name}, "spec": {}});
        self.create(stub).await.unwrap();
        let done = json!({"status": {"initialization": {"provisioned": true}}});
        self.patch(STUB, "StubCluster", &format!("{name}/status"), done.clone()).await.unwrap();
        self.cluster(name, "StubCluster").await;
        for number in 0..machines {
            let machine = format!("{name}-{number}");
            self.create(json!({"apiVersion": STUB, "kind": "StubMachine", "metadata": {"name": machine},
                "spec": {"providerID": provider_id(number)}}))
                .await
                .unwrap();
            self.patch(STUB, "StubMachine", &format!("{machine}/status"), done.clone()).await.unwrap();
            self.create(json!({"apiVersion": CORE, "kind": "Machine",
                "metadata": {"name": machine, "labels": {"cluster.x-k8s.io/cluster-name": name}},
                "spec": {"clusterName": name, "version": "v1.34.10", "bootstrap": {"dataSecretName": "data"},
                    "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "StubMachine", "name": machine}}}))
                .await
                .unwrap();
        }
    }
}

/// A cluster with workers in a cloud of its own. Its tenant is the management cluster.
pub(crate) struct Good {
    site: Site,
    cloud: Arc<Handle>,
    kubeconfig: String,
    kubelets: JoinHandle<()>,
}

impl Drop for Good {
    fn drop(&mut self) {
        self.kubelets.abort();
    }
}

impl Good {
    pub(crate) async fn new(bed: &Testbed, prefix: &str) -> Self {
        let site = Site::new(bed, prefix);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let cloud =
            Arc::new(Cloud::serve(listener, Config::for_tests(), RecordingDriver::new()).await.unwrap());
        let kubelets = tokio::spawn(join(site.clone(), Arc::clone(&cloud)));
        let kubeconfig = std::fs::read_to_string(bed.kubeconfig()).unwrap();
        Self { site, cloud, kubeconfig, kubelets }
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.site.namespace
    }

    /// Creates, scales and deletes it, as people do.
    pub(crate) async fn lives(&self) {
        self.create().await;
        eventually("one worker runs", async || self.runs(1).await).await;
        self.scale(3).await;
        eventually("three workers run", async || self.runs(3).await).await;
        self.scale(1).await;
        eventually("one worker is left", async || self.runs(1).await).await;
        self.site.delete(CORE, "Cluster", "demo").await.unwrap();
        eventually("the cluster is gone", async || self.site.list(CORE, "Cluster").await.is_empty()).await;
        let model = self.cloud.model();
        assert_eq!((model.servers.len(), model.ports.len(), model.routers.len()), (0, 0, 0));
        drop(model);
        for (api_version, kind, name) in [
            (INFRASTRUCTURE, "OpenStackMachineTemplate", "small"),
            ("v1", "Secret", "demo-kubeconfig"),
            ("v1", "Secret", "cloud"),
            ("v1", "Secret", "data"),
        ] {
            // There is no garbage collector here.
            self.site.delete(api_version, kind, name).await.unwrap();
        }
    }

    async fn create(&self) {
        let clouds = clouds_yaml(&self.cloud.auth_url(), "secret");
        let secret = |name: &str, data: Value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data});
        self.site.create(secret("cloud", json!({"clouds.yaml": clouds}))).await.unwrap();
        let data = json!({"value": "#cloud-config\n", "format": "cloud-config"});
        self.site.create(secret("data", data)).await.unwrap();
        self.site.kubeconfig("demo", &self.kubeconfig).await;
        self.site.create(openstack_cluster("demo", "cloud")).await.unwrap();
        self.site.cluster("demo", "OpenStackCluster").await;
        let worker = json!({"flavor": "small", "image": {"filter": {"name": "node-v1.34.10"}}});
        self.site
            .create(json!({"apiVersion": INFRASTRUCTURE, "kind": "OpenStackMachineTemplate",
                "metadata": {"name": "small"}, "spec": {"template": {"spec": worker}}}))
            .await
            .unwrap();
        let labels = json!({"pool": "workers", "cluster.x-k8s.io/cluster-name": "demo"});
        self.site
            .create(json!({"apiVersion": CORE, "kind": "MachineDeployment", "metadata": {"name": "workers"},
                "spec": {"clusterName": "demo", "replicas": 1, "selector": {"matchLabels": {"pool": "workers"}},
                    "template": {"metadata": {"labels": labels}, "spec": {
                        "clusterName": "demo", "version": "v1.34.10", "bootstrap": {"dataSecretName": "data"},
                        "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io",
                            "kind": "OpenStackMachineTemplate", "name": "small"}}}}}))
            .await
            .unwrap();
    }

    async fn scale(&self, replicas: usize) {
        let patch = json!({"spec": {"replicas": replicas}});
        self.site.patch(CORE, "MachineDeployment", "workers", patch).await.unwrap();
    }

    /// Whether there are so many Machines, all of them available, and no other server.
    async fn runs(&self, count: usize) -> bool {
        let machines = self.site.list(CORE, "Machine").await;
        let is_available = |machine: &Value| {
            let conditions = machine["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|one| one["type"] == "Available" && one["status"] == "True")
        };
        machines.len() == count
            && machines.iter().all(is_available)
            && self.cloud.model().servers.len() == count
    }
}

/// An OpenStackCluster with the credentials of a Secret.
pub(crate) fn openstack_cluster(name: &str, secret: &str) -> Value {
    json!({"apiVersion": INFRASTRUCTURE, "kind": "OpenStackCluster",
        "metadata": {"name": name, "labels": {"cluster.x-k8s.io/cluster-name": name}},
        "spec": {"identityRef": {"name": secret, "cloudName": "openstack"},
            "managedSubnets": [{"cidr": "10.6.0.0/24"}], "disableAPIServerFloatingIP": true,
            "managedSecurityGroups": {"allowAllInClusterTraffic": true}}})
}

/// Credentials for a cloud.
pub(crate) fn clouds_yaml(auth_url: &str, password: &str) -> String {
    format!(
        "clouds:\n  openstack:\n    auth:\n      auth_url: {auth_url}\n      username: demo\n      password: {password}\n      \
         project_name: demo\n      user_domain_name: Default\n      project_domain_name: Default\n    region_name: RegionOne\n"
    )
}

/// Every server that runs registers a Node, once.
async fn join(site: Site, cloud: Arc<Handle>) {
    let mut joined = BTreeSet::new();
    loop {
        let running: Vec<(String, String)> = {
            let model = cloud.model();
            let active = model.servers.values().filter(|server| server.status == Status::Active);
            active
                .map(|server| (format!("{}-{}", site.namespace, server.name), server.id.to_string()))
                .collect()
        };
        for (name, id) in running {
            if joined.insert(id.clone()) {
                let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
                    "spec": {"providerID": format!("openstack:///{id}"),
                        "taints": [{"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}]}});
                site.send(Method::POST, "/api/v1/nodes", &node).await.unwrap();
                let status = json!({"status": {"conditions": [
                    {"type": "Ready", "status": "True", "reason": "KubeletReady"}]}});
                site.send(Method::PATCH, &format!("/api/v1/nodes/{name}/status"), &status).await.unwrap();
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
