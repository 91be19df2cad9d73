//! Upgrades go through in order, wait for whoever would be left behind, stop where a pod does not become ready, and can be
//! taken back until something newer has served. Another manager changes nothing.

use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use hangar_plan::hosted_control_plane::names::{
    EPOCH_ANNOTATION, ETCD_VERSION_ANNOTATION, SERVED_VERSION_ANNOTATION,
};
use hangar_testbed::Port;
use http::StatusCode;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use super::super::actor::TROUBLE;
use super::super::tenant::Tenant;
use super::super::world::{BED, Manager, eventually, turn};
use super::{API_SERVER, CONTROLLERS, ETCD, NEW, NEW_ETCD, OLD, OLD_ETCD, Stage};

const OF_TOMORROW: &str = "hangar.cluster.x-k8s.io/of-tomorrow";

/// What is read later comes earlier in the order, so nothing can be overtaken between two reads.
async fn nothing_is_overtaken(stage: &Stage, tenant: &Client) {
    let proxies: Api<DaemonSet> = Api::namespaced(tenant.clone(), "kube-system");
    let proxy = proxies.get("kube-proxy").await.unwrap().spec.unwrap().template.spec.unwrap();
    let is_proxy_new = proxy.containers[0].image.as_ref().unwrap().ends_with(&format!(":{NEW}"));
    let controllers = stage.pods(&CONTROLLERS).await;
    assert!(!is_proxy_new || controllers.iter().all(|(_, version, _)| version == NEW), "{controllers:?}");
    let mut is_deployed = false;
    for name in CONTROLLERS {
        is_deployed |= stage.deployed(&format!("demo-{name}")).await == NEW;
    }
    let servers = stage.pods(&[API_SERVER]).await;
    assert!(!is_deployed || servers.iter().all(|(_, version, _)| version == NEW), "{servers:?}");
    let is_deployed = stage.deployed("demo-apiserver").await == NEW;
    let members = stage.pods(&[ETCD]).await;
    assert!(!is_deployed || members.iter().all(|(_, version, _)| version == NEW_ETCD), "{members:?}");
    let is_recorded = stage.recorded(ETCD_VERSION_ANNOTATION).await.is_some();
    assert!(is_recorded || members.iter().all(|(_, version, _)| version == OLD_ETCD), "{members:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_waits_for_kubelets_and_goes_through_in_order() {
    let _turn = turn().await;
    let port = Port::reserve().unwrap();
    // With a program of the manager's image.
    let audit = json!({
        "policy": {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]},
        "webhook": {"targets": [{"server": "http://collector.logs.svc:8080"}]},
    });
    let more = json!({"replicas": 2, "deployment": {"apiServer": {"audit": audit}}});
    let stage = Stage::new(&BED, "upgrade", port.number(), more).await;
    let manager = Manager::start();
    stage.is_minted().await;
    let tenant = Tenant::start(&stage.world, port.number()).await;
    stage.is_ready().await;
    eventually("what served is recorded", async || {
        stage.recorded(SERVED_VERSION_ANNOTATION).await.as_deref() == Some(OLD)
    })
    .await;

    // 1.37 works with kubelets of 1.34. There is no way back from another etcd, so it is not begun.
    node(&tenant.client(), "v1.33.4").await;
    let kubelet = async || stage.world.control_plane().await.status.unwrap().oldest_kubelet_version;
    eventually("the kubelet is seen", async || kubelet().await.as_deref() == Some("v1.33.4")).await;
    stage.want(json!({"version": NEW})).await;
    eventually("it says what it waits for", async || {
        stage.rolls("True", "Held", &["a Node runs kubelet v1.33.4", "1.34 or newer"]).await
    })
    .await;
    assert_eq!((stage.etcd().await.as_str(), manager.evictions()), (OLD_ETCD, Vec::new()));
    assert_eq!(stage.recorded(ETCD_VERSION_ANNOTATION).await, None);
    let nodes: Api<Node> = Api::all(tenant.client());
    nodes.delete("old", &DeleteParams::default()).await.unwrap();

    eventually("it is upgraded", async || {
        nothing_is_overtaken(&stage, &tenant.client()).await;
        stage.rolls("False", "NotRollingOut", &[]).await
            && stage.all_are(&CONTROLLERS, 2, NEW).await
            && stage.world.condition("WorkloadReady").await.0 == "True"
    })
    .await;
    assert!(stage.all_are(&[API_SERVER], 2, NEW).await && stage.all_are(&[ETCD], 3, NEW_ETCD).await);
    let order = ["demo-etcd-1", "demo-etcd-2", "demo-etcd-0"].map(|name| (name.to_owned(), 201));
    assert_eq!(manager.evictions(), order, "the leader comes last, and nobody twice");
    eventually("the status says so", async || {
        let status = stage.world.control_plane().await.status.unwrap();
        status.version.as_deref() == Some(NEW) && status.oldest_kubelet_version.is_none()
    })
    .await;
    assert_eq!(stage.recorded(SERVED_VERSION_ANNOTATION).await.as_deref(), Some(NEW));
    assert_eq!(stage.recorded(ETCD_VERSION_ANNOTATION).await.as_deref(), Some(NEW_ETCD));
    manager.rest().await;
    manager.stop().await;
    other_managers_replace_nobody(&stage).await;
}

async fn node(tenant: &Client, kubelet: &str) {
    let api: Api<Node> = Api::all(tenant.clone());
    let node = serde_json::from_value(json!({"metadata": {"name": "old"}})).unwrap();
    api.create(&PostParams::default(), &node).await.unwrap();
    let unknown =
        ["machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion"];
    let rest = ["kubeProxyVersion", "operatingSystem", "architecture"];
    let mut info: serde_json::Map<String, serde_json::Value> =
        unknown.into_iter().chain(rest).map(|name| (name.to_owned(), json!(""))).collect();
    info.insert("kubeletVersion".to_owned(), json!(kubelet));
    let status = Patch::Merge(json!({"status": {"nodeInfo": info}}));
    api.patch_status("old", &PatchParams::default(), &status).await.unwrap();
}

/// Managers of another image; then one that finds what a newer one recorded, and does not know it.
async fn other_managers_replace_nobody(stage: &Stage) {
    let before = generations(stage).await;
    let api = stage.world.api::<HostedControlPlane>();
    let finalizers: Vec<String> = stage.world.control_plane().await.finalizers().to_vec();
    let more: Vec<String> = finalizers.iter().cloned().chain([OF_TOMORROW.to_owned()]).collect();
    let records = json!({"metadata": {"annotations": {OF_TOMORROW: "something"}, "finalizers": more}});
    api.patch("demo", &PatchParams::default(), &Patch::Merge(&records)).await.unwrap();
    let manager = Manager::start_of(&BED, "registry.example.org/hangar:other");
    manager.rest().await;
    assert_eq!(manager.writes(), [] as [&str; 0]);
    let present = stage.world.control_plane().await;
    assert_eq!(present.annotations()[OF_TOMORROW], "something");
    assert!(present.finalizers().contains(&OF_TOMORROW.to_owned()));

    // What a newer one rendered is not rendered over, and its pods serve on.
    let epoch = present.annotations()[EPOCH_ANNOTATION].clone();
    let record = |epoch: &str| Patch::Merge(json!({"metadata": {"annotations": {EPOCH_ANNOTATION: epoch}}}));
    api.patch("demo", &PatchParams::default(), &record("999")).await.unwrap();
    eventually("it says that a newer one is needed", async || {
        let (status, reason, message) = stage.world.condition("Ready").await;
        (status.as_str(), reason.as_str()) == ("False", "NewerEpoch") && message.contains("999")
    })
    .await;
    manager.rest().await;
    let writes = manager.writes();
    let is_of_status = |write: &&String| write.contains("/status") || write.contains("events");
    assert!(writes.iter().all(|write| is_of_status(&write)), "{writes:#?}");
    api.patch("demo", &PatchParams::default(), &record(&epoch)).await.unwrap();
    stage.is_ready().await;
    manager.rest().await;
    assert_eq!(generations(stage).await, before);
    let released = json!({"metadata": {"finalizers": finalizers}});
    api.patch("demo", &PatchParams::default(), &Patch::Merge(&released)).await.unwrap();
    manager.stop().await;
}

/// What changes when a workload is written, and its pods.
async fn generations(stage: &Stage) -> Vec<String> {
    let mut all = Vec::new();
    for name in ["demo-apiserver", "demo-controller-manager", "demo-scheduler"] {
        let found = stage.world.api::<Deployment>().get(name).await.unwrap();
        all.push(format!("{name} {:?} {:?}", found.uid(), found.metadata.generation));
    }
    let etcd = stage.world.api::<StatefulSet>().get("demo-etcd").await.unwrap();
    all.push(format!("etcd {:?} {:?}", etcd.uid(), etcd.metadata.generation));
    let pods = stage.pods(&[ETCD, API_SERVER, "controller-manager", "scheduler"]).await;
    all.extend(pods.into_iter().map(|(name, ..)| name));
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_that_does_not_become_ready_stops_and_is_taken_back() {
    let _turn = turn().await;
    let port = Port::reserve().unwrap();
    let stage = Stage::new(&BED, "stopped", port.number(), json!({"replicas": 2})).await;
    let manager = Manager::start();
    stage.is_minted().await;
    let tenant = Tenant::start(&stage.world, port.number()).await;
    stage.is_ready().await;

    // A member that does not come back is the only one that is missing.
    stage.members.break_image(NEW_ETCD);
    stage.want(json!({"version": NEW})).await;
    eventually("it stops at the first member", async || {
        stage.rolls("True", "Stopped", &["demo-etcd-1: etcd: ", TROUBLE, "0 of 3 are on 3.7.3-0"]).await
    })
    .await;
    manager.rest().await;
    assert_eq!(manager.evictions(), [("demo-etcd-1".to_owned(), 201)]);
    assert_eq!(stage.deployed("demo-apiserver").await, OLD);
    assert_eq!(stage.world.condition("Available").await.0, "True");
    manager.stop().await;

    // The member is back, and somebody else needs all of them at this moment.
    a_budget_that_allows_nothing(&stage).await;
    stage.actor.break_version(API_SERVER, NEW);
    let manager = Manager::start();
    eventually("it is stopped at the first API server", async || {
        let advice = format!("{OLD} serves on, and spec.version can be set back to it");
        stage.rolls("True", "Stopped", &["kube-apiserver: ", TROUBLE, "0 of 2 are on v1.37.1", &advice]).await
    })
    .await;
    let refused = u16::from(StatusCode::TOO_MANY_REQUESTS);
    let evicted = manager.evictions();
    assert_eq!(evicted.first(), Some(&("demo-etcd-2".to_owned(), refused)), "{evicted:?}");
    let done: Vec<_> = evicted.into_iter().filter(|(_, code)| *code != refused).collect();
    assert_eq!(done, ["demo-etcd-2", "demo-etcd-0"].map(|name| (name.to_owned(), 201)));
    assert_eq!(stage.world.condition("Available").await.0, "True");
    let status = stage.world.control_plane().await.status.unwrap();
    assert_eq!((status.version.as_deref(), status.ready_replicas), (Some(OLD), Some(2)));
    assert_eq!(stage.recorded(SERVED_VERSION_ANNOTATION).await.as_deref(), Some(OLD));
    assert_eq!(stage.deployed("demo-scheduler").await, OLD);

    stage.want(json!({"version": OLD})).await;
    eventually("it is taken back", async || {
        stage.all_are(&[API_SERVER], 2, OLD).await && stage.rolls("False", "NotRollingOut", &[]).await
    })
    .await;
    manager.rest().await;
    assert_eq!(stage.world.condition("SpecificationValid").await.0, "True");
    assert!(stage.all_are(&[ETCD], 3, NEW_ETCD).await, "etcd does not go back");
    assert_eq!(stage.etcd().await, NEW_ETCD);

    // Once something newer has served there is no way back.
    stage.actor.mend();
    stage.want(json!({"version": NEW})).await;
    eventually("it is upgraded", async || {
        stage.rolls("False", "NotRollingOut", &[]).await && stage.all_are(&CONTROLLERS, 2, NEW).await
    })
    .await;
    assert!(stage.all_are(&[API_SERVER], 2, NEW).await);
    stage.want(json!({"version": OLD})).await;
    eventually("it is told", async || {
        let (status, reason, message) = stage.world.condition("SpecificationValid").await;
        (status.as_str(), reason.as_str()) == ("False", "Invalid") && message.contains("have served")
    })
    .await;
    manager.rest().await;
    assert!(stage.all_are(&[API_SERVER], 2, NEW).await);
    assert!(stage.all_are(&[ETCD], 3, NEW_ETCD).await);
    manager.stop().await;
    drop(tenant);
}

/// A budget of somebody who wants all members. Hangar's next pass puts back its own, so this is what one pass meets.
async fn a_budget_that_allows_nothing(stage: &Stage) {
    let budgets = stage.world.api::<PodDisruptionBudget>();
    let none = Patch::Merge(json!({"spec": {"maxUnavailable": 0}}));
    budgets.patch("demo-etcd", &PatchParams::default(), &none).await.unwrap();
    stage.members.mend();
    eventually("all members are back, and none may be missed", async || {
        let budget = budgets.get("demo-etcd").await.unwrap();
        let status = budget.status.unwrap_or_default();
        let members = stage.world.api::<StatefulSet>().get("demo-etcd").await.unwrap().status.unwrap();
        status.observed_generation == budget.metadata.generation
            && (status.current_healthy, status.disruptions_allowed) == (3, 0)
            && members.ready_replicas == Some(3)
    })
    .await;
}
