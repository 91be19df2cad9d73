//! Add-ons in the tenant: those that do not run are told where there are Nodes. Nobody runs pods in this tenant, so the
//! test writes what its controllers and kubelets would.

use hangar_kit::call::Verb;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use super::tenant::Tenant;
use super::world::{Manager, World, eventually};

/// What its controller says of a Deployment with one pod.
fn deployed(ready: i32, generation: Option<i64>) -> Patch<Value> {
    Patch::Merge(json!({"status": {
        "observedGeneration": generation,
        "replicas": 1, "updatedReplicas": 1, "readyReplicas": ready, "availableReplicas": ready,
    }}))
}

/// What its controller says of a DaemonSet where there is one Node.
fn everywhere(ready: i32, generation: Option<i64>) -> Patch<Value> {
    Patch::Merge(json!({"status": {
        "observedGeneration": generation, "currentNumberScheduled": 1, "desiredNumberScheduled": 1,
        "numberMisscheduled": 0, "updatedNumberScheduled": 1, "numberReady": ready,
    }}))
}

/// How many pods of a Deployment are ready from now on, of one.
async fn ready(tenant: &Tenant, name: &str, ready: i32) {
    let api: Api<Deployment> = Api::namespaced(tenant.client(), "kube-system");
    let generation = api.get(name).await.unwrap().metadata.generation;
    api.patch_status(name, &PatchParams::default(), &deployed(ready, generation)).await.unwrap();
}

/// On how many Nodes kube-proxy is ready from now on, of one.
async fn ready_proxies(tenant: &Tenant, ready: i32) {
    let api: Api<DaemonSet> = Api::namespaced(tenant.client(), "kube-system");
    let generation = api.get("kube-proxy").await.unwrap().metadata.generation;
    api.patch_status("kube-proxy", &PatchParams::default(), &everywhere(ready, generation)).await.unwrap();
}

/// All add-ons run on the only Node from now on. One that is deleted meanwhile does not.
pub(crate) async fn run_all(client: &Client) {
    let (deployments, sets): (Api<Deployment>, Api<DaemonSet>) =
        (Api::namespaced(client.clone(), "kube-system"), Api::namespaced(client.clone(), "kube-system"));
    let (all, parameters) = (ListParams::default(), PatchParams::default());
    for found in deployments.list(&all).await.unwrap() {
        let generation = found.metadata.generation;
        if found.status.as_ref().is_none_or(|status| status.observed_generation != generation) {
            let _ = deployments.patch_status(&found.name_any(), &parameters, &deployed(1, generation)).await;
        }
    }
    for found in sets.list(&all).await.unwrap() {
        let generation = found.metadata.generation;
        if found.status.as_ref().is_none_or(|status| status.observed_generation != generation) {
            let _ = sets.patch_status(&found.name_any(), &parameters, &everywhere(1, generation)).await;
        }
    }
}

/// A pod of CoreDNS whose image cannot be pulled.
async fn pod_without_image(tenant: &Tenant) {
    let api: Api<Pod> = Api::namespaced(tenant.client(), "kube-system");
    let pod = serde_json::from_value(json!({
        "metadata": {"name": "coredns-1", "labels": {"k8s-app": "kube-dns"}},
        "spec": {"serviceAccountName": "coredns", "containers": [{"name": "coredns", "image": "nowhere/coredns"}]},
    }));
    api.create(&PostParams::default(), &pod.unwrap()).await.unwrap();
    let status = json!({"status": {"phase": "Pending", "containerStatuses": [{
        "name": "coredns", "ready": false, "restartCount": 0, "image": "", "imageID": "",
        "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image\n* Ready: True"}},
    }]}});
    api.patch_status("coredns-1", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
}

/// The manager sees every change without being started again.
pub(super) async fn add_ons_that_do_not_run_are_told(world: &World, tenant: &Tenant, manager: &Manager) {
    let told = async || {
        let (addons, ready) = (world.condition("AddonsReady").await, world.condition("Ready").await);
        (format!("{} {}", addons.0, addons.1), ready.0)
    };
    let is = |status: &str, ready: &str| (status.to_owned(), ready.to_owned());
    assert_eq!(told().await, is("False NoNodes", "True"));
    let calls = manager.tenant_calls.calls().into_iter().map(|(call, _)| call);
    let watched: Vec<String> = calls
        .filter(|call| call.verb == Verb::Watch && call.resource != "nodes")
        .map(|call| call.to_string())
        .collect();
    assert_eq!(watched, [] as [&str; 0], "without Nodes nothing else is watched");

    ready(tenant, "coredns", 0).await;
    ready(tenant, "konnectivity-agent", 1).await;
    ready_proxies(tenant, 1).await;
    pod_without_image(tenant).await;
    let nodes: Api<Node> = Api::all(tenant.client());
    let node = serde_json::from_value(json!({"metadata": {"name": "node-1"}})).unwrap();
    nodes.create(&PostParams::default(), &node).await.unwrap();
    eventually("CoreDNS is told", async || told().await == is("False NotRunning", "False")).await;
    let expected = "Deployment kube-system/coredns: 0 of 1 pods are ready (coredns-1: coredns: ImagePullBackOff: no such \
         image * Ready: True); waiting for coredns to run in the tenant (the cluster owner must act)";
    eventually(expected, async || world.condition("AddonsReady").await.2 == expected).await;
    assert_eq!(world.condition("Available").await.0, "True");

    ready(tenant, "coredns", 1).await;
    eventually("all run", async || told().await == is("True Running", "True")).await;
    manager.rest().await;
    let before = manager.writes().len();
    manager.rest().await;
    assert_eq!(manager.writes()[before..], [] as [String; 0], "nothing is written at rest");
    ready_proxies(tenant, 0).await;
    eventually("kube-proxy is told", async || {
        let (status, _, message) = world.condition("AddonsReady").await;
        status == "False" && message.contains("DaemonSet kube-system/kube-proxy: 0 of 1 pods are ready;")
    })
    .await;
    nodes.delete("node-1", &DeleteParams::default()).await.unwrap();
    eventually("nothing is missed without Nodes", async || told().await == is("False NoNodes", "True")).await;
}
