//! etcd heals and changes its number of members: real members, each in the place of a pod, with the configuration and
//! the keys that were made for them, while somebody writes. Nothing that was acknowledged is missing in the end.

use std::time::Instant;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use serde_json::json;

use super::kubelet::{Kubelet, Writer, settles, want};
use super::lifecycle::claims;
use super::world::{Manager, World, eventually, turn};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_heals_and_grows_while_somebody_writes() {
    let _turn = turn().await;
    let world = World::new("healing").await;
    world.apply(json!({"version": "v1.34.11", "replicas": 1, "etcd": {"replicas": 1}})).await;
    let manager = Manager::start();
    let (kubelet, etcdctl) = Kubelet::start(&world).await;
    settles(&world, &etcdctl, 1).await;
    let writer = Writer::start(&etcdctl, "/written/");
    for members in [3, 5, 3] {
        let began = Instant::now();
        want(&world, members).await;
        settles(&world, &etcdctl, usize::try_from(members).unwrap()).await;
        println!("{members} members after {:?}", began.elapsed());
        assert_eq!(claims(&world).await.len(), usize::try_from(members).unwrap());
    }
    for lost in ["demo-etcd-0", "demo-etcd-2"] {
        let volumes = world.api::<PersistentVolumeClaim>();
        let claim = format!("data-{lost}");
        let before = volumes.get(&claim).await.unwrap().uid();
        let began = Instant::now();
        volumes.delete(&claim, &DeleteParams::default()).await.unwrap();
        eventually("it has another volume", async || {
            volumes.get_opt(&claim).await.unwrap().is_some_and(|found| found.uid() != before)
        })
        .await;
        settles(&world, &etcdctl, 3).await;
        println!("{lost} was replaced after {:?}", began.elapsed());
    }
    let (acknowledged, failed, missing) = writer.end(&etcdctl);
    println!("{acknowledged} writes were acknowledged, {failed} failed, {} are missing", missing.len());
    assert_eq!(missing, Vec::<String>::new());
    assert!(acknowledged > 20, "{acknowledged}");
    manager.rest().await;
    kubelet.abort();
    manager.stop().await;
}
