//! Clusters with stub providers.

use hangar_api::cluster::v1beta2::{Cluster, ClusterPhase};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::stubs::{Manager, Providers, World, eventually, turn};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_becomes_available_rests_and_goes_in_order() {
    let _turn = turn().await;
    let world = World::new("cluster");
    let providers = Providers::start(&world);
    let manager = Manager::start();
    world.cluster().await;
    eventually("it says what is missing", async || {
        world.cluster_condition("InfrastructureReady").await.1.contains("AWSCluster demo to be created")
    })
    .await;
    world.parts_of_the_cluster().await;
    eventually("it is available", async || world.cluster_condition("Available").await.0 == "True").await;
    manager.rest().await;
    let cluster: Cluster = world.api().get("demo").await.unwrap();
    let status = cluster.status.clone().unwrap();
    assert_eq!(cluster.finalizers(), ["cluster.cluster.x-k8s.io"]);
    assert_eq!(status.phase, Some(ClusterPhase::Provisioned));
    assert_eq!(status.observed_generation, cluster.metadata.generation);
    assert_eq!(status.failure_domains.unwrap()[0].name, "az1");
    let endpoint = cluster.spec.control_plane_endpoint.unwrap();
    assert_eq!((endpoint.host.as_deref(), endpoint.port), (Some("api.example"), Some(6443)));
    for kind in ["AWSCluster", "StubPlane"] {
        let object = world.stub(kind).get("demo").await.unwrap();
        assert_eq!(object.labels()["cluster.x-k8s.io/cluster-name"], "demo");
        let owner = &object.owner_references()[0];
        assert_eq!((owner.kind.as_str(), owner.controller), ("Cluster", None));
    }
    manager.stop().await;

    // Another manager finds everything as it should be.
    let second = Manager::start();
    second.rest().await;
    assert_eq!(second.writes(), [] as [&str; 0]);

    // The control plane goes first, and the infrastructure waits for it.
    providers.stop("StubPlane");
    let api: Api<Cluster> = world.api();
    api.delete("demo", &DeleteParams::default()).await.unwrap();
    eventually("it waits for the control plane", async || {
        world.cluster_condition("Deleting").await.1.contains("StubPlane demo")
    })
    .await;
    second.rest().await;
    let infrastructure = world.stub("AWSCluster").get("demo").await.unwrap();
    assert!(infrastructure.metadata.deletion_timestamp.is_none());
    assert!(world.stub("StubPlane").get("demo").await.unwrap().metadata.deletion_timestamp.is_some());
    providers.go_on("StubPlane");
    eventually("it is gone", async || api.get_opt("demo").await.unwrap().is_none()).await;
    assert!(world.names("AWSCluster").await.is_empty() && world.names("StubPlane").await.is_empty());
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_cluster_is_left_alone() {
    let _turn = turn().await;
    let world = World::new("paused");
    let providers = Providers::start(&world);
    world.cluster().await;
    world.patch::<Cluster>("demo", json!({"spec": {"paused": true}})).await;
    world.parts_of_the_cluster().await;
    let manager = Manager::start();
    eventually("it says so", async || world.cluster_condition("Paused").await.0 == "True").await;
    manager.rest().await;
    let cluster: Cluster = world.api().get("demo").await.unwrap();
    assert_eq!(cluster.finalizers(), [] as [&str; 0]);
    assert!(world.stub("AWSCluster").get("demo").await.unwrap().owner_references().is_empty());
    world.patch::<Cluster>("demo", json!({"spec": {"paused": null}})).await;
    eventually("it goes on", async || world.cluster_condition("Available").await.0 == "True").await;
    manager.stop().await;
    drop(providers);
    clear(&world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_without_a_definition_is_unknown_and_not_absent() {
    let _turn = turn().await;
    let world = World::new("unknown");
    world.cluster().await;
    let odd = json!({"spec": {"infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io",
        "kind": "NobodysCluster", "name": "demo"}}});
    world.patch::<Cluster>("demo", odd).await;
    let manager = Manager::start();
    eventually("it says which", async || {
        let (status, message) = world.cluster_condition("InfrastructureReady").await;
        status == "Unknown" && message.contains("nobodysclusters.infrastructure.cluster.x-k8s.io")
    })
    .await;
    // A deletion does not pass over what it cannot see.
    let api: Api<Cluster> = world.api();
    api.delete("demo", &DeleteParams::default()).await.unwrap();
    eventually("it waits", async || world.cluster_condition("Deleting").await.1.contains("NobodysCluster"))
        .await;
    manager.rest().await;
    assert!(api.get_opt("demo").await.unwrap().is_some());
    manager.stop().await;
    clear(&world).await;
}

/// Any provider may have written the kubeconfig, and whoever may write Secrets can change it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kubeconfig_that_wants_more_than_a_connection_gets_none() {
    let _turn = turn().await;
    let world = World::new("kubeconfig");
    let providers = Providers::start(&world);
    let manager = Manager::start();
    world.cluster().await;
    world.parts_of_the_cluster().await;
    eventually("it is available", async || world.cluster_condition("Available").await.0 == "True").await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.namespace);
    let before = secrets.get("demo-kubeconfig").await.unwrap();
    let text = String::from_utf8(before.data.unwrap()["value"].0.clone()).unwrap();
    let mut changed: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
    let token = "/var/run/secrets/kubernetes.io/serviceaccount/token";
    changed["clusters"][0]["cluster"]["server"] =
        json!(format!("https://{}", listener.local_addr().unwrap()));
    changed["users"][0]["user"]["tokenFile"] = json!(token);
    let patch = json!({"stringData": {"value": changed.to_string()}});
    secrets.patch("demo-kubeconfig", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    eventually("the field is named, and nothing of what is in it", async || {
        let (status, message) = world.cluster_condition("RemoteConnectionProbe").await;
        assert!(!message.contains(token), "{message}");
        status == "False" && message.contains("users[].user.tokenFile is set")
    })
    .await;
    let heard = tokio::time::timeout(std::time::Duration::from_millis(10), listener.accept()).await;
    assert!(heard.is_err(), "somebody connected");
    manager.stop().await;
    drop(providers);
    clear(&world).await;
}

/// Takes away what a test leaves, without ceremony.
async fn clear(world: &World) {
    let api: Api<Cluster> = world.api();
    let _ = api.delete("demo", &DeleteParams::default()).await;
    let released = json!({"metadata": {"finalizers": null}});
    let _ = api.patch("demo", &PatchParams::default(), &Patch::Merge(released)).await;
}
