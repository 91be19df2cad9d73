//! Workers follow the version of their hosted control plane, which nobody reconciles here: the test says what it serves.

use hangar_api::cluster::v1beta2::{MachineDeployment, MachineSet};
use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::machines::delete_cluster;
use crate::stubs::{BED, Manager, Providers, World, eventually, text, turn};

async fn serves(world: &World, version: &str) {
    let status = json!({"status": {
        "externalManagedControlPlane": true, "version": version,
        "initialization": {"controlPlaneInitialized": true},
        "conditions": [{"type": "Available", "status": "True", "reason": "Available", "message": "",
            "lastTransitionTime": "2027-01-15T08:00:00Z"}],
    }});
    let api = world.api::<HostedControlPlane>();
    api.patch_status("demo", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}

/// Both versions may be applied at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_wait_for_the_version_of_their_control_plane() {
    let _turn = turn().await;
    let is_needed = |name: &str| name == "hostedcontrolplanes.controlplane.cluster.x-k8s.io";
    let kinds = hangar_api::crd::all().into_iter().filter(|kind| is_needed(&kind.name_any()));
    // Blocks, which no worker of this runtime may.
    tokio::task::block_in_place(|| BED.install(kinds));
    let world = World::new("following");
    let _providers = Providers::start(&world);
    let manager = Manager::start();
    world.cluster_of("HostedControlPlane").await;
    world.parts_of_the_cluster().await;
    world
        .create::<HostedControlPlane>(json!({
            "apiVersion": "controlplane.cluster.x-k8s.io/v1alpha1", "kind": "HostedControlPlane",
            "metadata": {"name": "demo"},
            "spec": {"version": "v1.34.10", "controlPlaneEndpoint": {"host": "api.example", "port": 6443}},
        }))
        .await;
    serves(&world, "v1.34.10").await;
    world.deployment(1).await;
    eventually("a Machine runs", async || world.running().await.len() == 1).await;
    let before = world.running().await[0].name_any();

    let newer = json!({"spec": {"template": {"spec": {"version": "v1.35.8"}}}});
    world.patch::<MachineDeployment>("workers", newer).await;
    eventually("it says what it waits for", async || {
        let status = world.api::<MachineDeployment>().get("workers").await.unwrap().status.unwrap();
        let (_, message) = text(status.conditions.as_deref(), "RollingOut");
        message.contains("the control plane to serve v1.35.8") && message.contains("it serves v1.34.10")
    })
    .await;
    manager.rest().await;
    assert_eq!(world.all::<MachineSet>().await.len(), 1, "no set leads the control plane");
    // What it has is kept meanwhile.
    world.patch::<MachineDeployment>("workers", json!({"spec": {"replicas": 2}})).await;
    eventually("another of the old version runs", async || world.running().await.len() == 2).await;
    assert!(world.running().await.iter().any(|machine| machine.name_any() == before));

    serves(&world, "v1.35.0").await;
    eventually("it follows", async || {
        let running = world.running().await;
        running.len() == 2 && running.iter().all(|machine| machine.spec.version.as_deref() == Some("v1.35.8"))
    })
    .await;
    delete_cluster(&world).await;
    manager.stop().await;
}
