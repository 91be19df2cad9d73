//! Members are restarted for other settings while somebody writes: followers first, the leader last. One whose image
//! cannot be pulled stops the others, and gets the next image before them.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::super::world::{Manager, World, eventually, turn};
use super::{HostedControlPlane, Members, Writer, nothing_is_missing, settles};

const MEMBERS: [&str; 3] = ["demo-etcd-1", "demo-etcd-2", "demo-etcd-0"];

/// Changes etcd's settings.
pub(super) async fn set(world: &World, etcd: Value) {
    let patch = json!({"spec": {"etcd": etcd}});
    let api = world.api::<HostedControlPlane>();
    api.patch("demo", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

/// Whether all members are ready with the latest template, after so many changes of it.
pub(super) async fn is_rolled(world: &World, generation: i64) -> bool {
    let set = world.api::<StatefulSet>().get("demo-etcd").await.unwrap();
    let status = set.status.clone().unwrap_or_default();
    let labelled = ListParams::default().labels("app.kubernetes.io/component=etcd");
    let pods = world.api::<Pod>().list(&labelled).await.unwrap().items;
    let is_latest =
        |pod: &Pod| pod.labels().get("controller-revision-hash") == status.update_revision.as_ref();
    set.metadata.generation >= Some(generation)
        && status.observed_generation == set.metadata.generation
        && status.ready_replicas == Some(status.replicas)
        && i32::try_from(pods.len()) == Ok(status.replicas)
        && pods.iter().all(|pod| is_latest(pod) && is_ready(pod))
}

/// The StatefulSet counts the pod that is gone for a moment longer.
fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|found| found.type_ == "Ready" && found.status == "True")
}

async fn generation(world: &World) -> i64 {
    world.api::<StatefulSet>().get("demo-etcd").await.unwrap().metadata.generation.unwrap()
}

/// The pods that were to end, in order. A budget that is late is asked again.
fn evicted(manager: &Manager) -> Vec<String> {
    let answered = manager.evictions().into_iter().filter(|(_, code)| *code == 201);
    answered.map(|(name, _)| name).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_settings_restart_followers_first_and_an_image_that_cannot_be_pulled_stops_only_one() {
    let _turn = turn().await;
    let world = World::new("rolling").await;
    world.apply(json!({"version": "v1.34.11", "replicas": 1, "etcd": {"replicas": 3}})).await;
    let manager = Manager::start();
    let members = Members::start(&world);
    let etcdctl = &members.etcdctl;
    settles(&world, etcdctl, 3).await;
    manager.rest().await;
    assert_eq!(evicted(&manager), [] as [String; 0], "the first start is no rollout");
    let writer = Writer::start(etcdctl);

    etcdctl.lead("demo-etcd-0").await;
    let before = generation(&world).await;
    set(&world, json!({"args": {"snapshot-count": "5000"}})).await;
    eventually("all members have other arguments", async || is_rolled(&world, before + 1).await).await;
    let expected = MEMBERS.map(str::to_owned);
    assert_eq!(evicted(&manager), expected, "the leader comes last, and nobody twice");
    for name in MEMBERS {
        assert_eq!(members.configuration(name)["snapshot-count"], 5000);
    }

    etcdctl.lead("demo-etcd-0").await;
    members.break_image(":3.6.17-0");
    set(&world, json!({"image": {"tag": "3.6.17-0"}})).await;
    eventually("it stops at the first member", async || {
        let (status, reason, message) = world.condition("RollingOut").await;
        (status.as_str(), reason.as_str()) == ("True", "Stopped")
            && message.contains("demo-etcd-1: etcd: ImagePullBackOff")
            && message.contains("0 of 3 are on 3.6.17-0")
    })
    .await;
    manager.rest().await;
    assert_eq!(evicted(&manager).len(), 4, "the others stay");
    set(&world, json!({"image": {"tag": "3.6.18-0"}})).await;
    eventually("all members have an image that can be pulled", async || is_rolled(&world, before + 3).await)
        .await;
    assert_eq!(evicted(&manager)[4..], expected, "the broken one was the first");

    nothing_is_missing(writer, etcdctl);
    eventually("it is over", async || world.condition("RollingOut").await.1 == "NotRollingOut").await;
    manager.rest().await;
    manager.stop().await;
}
