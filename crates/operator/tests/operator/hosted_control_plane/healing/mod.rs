//! etcd heals and changes its number of members: real members, each in the place of a pod, with the configuration and
//! the keys that were made for them, while somebody writes. Nothing that was acknowledged is missing in the end.

mod chaos;
mod clients;
mod crash;
mod members;
mod rolling;

use std::time::Instant;

use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::lifecycle::claims;
use super::world::{Manager, World, eventually, turn};
pub(super) use clients::Etcdctl;
use clients::Writer;
pub(super) use members::Members;

/// How many members vote, where that many are wanted and all is well.
pub(super) async fn settles(world: &World, etcdctl: &Etcdctl, members: usize) {
    eventually("etcd has settled", async || {
        let list = etcdctl.run("member list").unwrap_or_default();
        let voters = list.lines().filter(|line| line.contains("started") && line.ends_with("false")).count();
        let record = world.control_plane().await.annotations().get("hangar.cluster.x-k8s.io/etcd").cloned();
        let record: Value = serde_json::from_str(&record.unwrap_or_default()).unwrap_or_default();
        voters == members
            && list.lines().count() == members
            && record["members"] == json!(members)
            && record.get("joining").is_none()
            && record.get("leaving").is_none()
            && claims(world).await.len() == members
            && world.condition("EtcdClusterHealthy").await.1 == "AllReady"
    })
    .await;
}

async fn want(world: &World, members: usize) {
    let patch = json!({"spec": {"etcd": {"replicas": members}}});
    let api = world.api::<HostedControlPlane>();
    api.patch("demo", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

/// Deletes the volume of a pod's member; returns when it has another one.
async fn lose(world: &World, pod: &str) {
    let volumes = world.api::<PersistentVolumeClaim>();
    let claim = format!("data-{pod}");
    let before = volumes.get(&claim).await.unwrap().uid();
    volumes.delete(&claim, &DeleteParams::default()).await.unwrap();
    eventually("it has another volume", async || {
        volumes.get_opt(&claim).await.unwrap().is_some_and(|found| found.uid() != before)
    })
    .await;
}

fn nothing_is_missing(writer: Writer, etcdctl: &Etcdctl) {
    let report = writer.end(etcdctl);
    let (acknowledged, failed) = (report.acknowledged, report.failed);
    println!(
        "{acknowledged} writes were acknowledged, {failed} failed, {} are missing",
        report.missing.len()
    );
    assert_eq!(report.missing, Vec::<String>::new());
    assert!(acknowledged > 20, "{acknowledged}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_heals_and_grows_while_somebody_writes() {
    let _turn = turn().await;
    let world = World::new("healing").await;
    world.apply(json!({"version": "v1.34.11", "replicas": 1, "etcd": {"replicas": 1}})).await;
    let manager = Manager::start();
    let members = Members::start(&world);
    let etcdctl = &members.etcdctl;
    settles(&world, etcdctl, 1).await;
    let writer = Writer::start(etcdctl);
    for wanted in [3, 5, 3] {
        let began = Instant::now();
        want(&world, wanted).await;
        settles(&world, etcdctl, wanted).await;
        println!("{wanted} members after {:?}", began.elapsed());
    }
    for lost in ["demo-etcd-0", "demo-etcd-2"] {
        let began = Instant::now();
        lose(&world, lost).await;
        settles(&world, etcdctl, 3).await;
        println!("{lost} was replaced after {:?}", began.elapsed());
    }
    nothing_is_missing(writer, etcdctl);
    manager.rest().await;
    manager.stop().await;
}
