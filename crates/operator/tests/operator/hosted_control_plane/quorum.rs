//! Two of three members are away or have lost their data, while somebody writes: each way out, with real members. Says
//! what each costs: acknowledged writes that are missing (RPO), and the time until writes are acknowledged again (RTO).

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use hangar_api::names::BACKUP_REQUESTED_ANNOTATION;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::ResourceExt as _;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use super::kubelet::{Away, Kubelet, Writer, keys, settles};
use super::restores::{annotation, change, manager, told};
use super::store::Store;
use super::world::{World, eventually, turn};

const PREFIXES: [&str; 3] = ["/waiting/", "/going-on/", "/restoring/"];

/// Long enough for some writes.
async fn some_writes(writer: &Writer) {
    eventually("there is a load", async || writer.acknowledged_before(Instant::now()).len() > 20).await;
}

async fn health(world: &World) -> (String, String) {
    let (_, reason, message) = world.condition("EtcdClusterHealthy").await;
    (reason, message)
}

/// Their pods end, and their claims go with their volumes.
async fn lose(world: &World, members: [u8; 2]) {
    let (pods, volumes) = (world.api::<Pod>(), world.api::<PersistentVolumeClaim>());
    let mut before = BTreeSet::new();
    for member in members {
        let claim = format!("data-demo-etcd-{member}");
        before.insert(volumes.get(&claim).await.unwrap().uid());
        volumes.delete(&claim, &DeleteParams::default()).await.unwrap();
    }
    for member in members {
        pods.delete(&format!("demo-etcd-{member}"), &DeleteParams::default()).await.unwrap();
    }
    eventually("both have another volume", async || {
        let mut is_lost = true;
        for member in members {
            let found = volumes.get_opt(&format!("data-demo-etcd-{member}")).await.unwrap();
            is_lost &= found.is_some_and(|found| !before.contains(&found.uid()));
        }
        is_lost
    })
    .await;
}

fn cost(way: &str, missing: usize, acknowledged: usize, took: Duration) {
    println!("{way}: RPO {missing} of {acknowledged} acknowledged writes, RTO {:.1} s", took.as_secs_f64());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_quorum_that_is_lost_leaves_three_ways_and_each_leads_back_to_three_members() {
    let _turn = turn().await;
    let world = World::new("quorum").await;
    let store = Store::start(&world);
    store.publish(&world, json!({})).await;
    let backup = json!({"schedule": "0 3 29 2 *", "secret": {"name": "bucket"}});
    world
        .apply(json!({"version": "v1.34.11", "replicas": 1, "etcd": {"replicas": 3, "backup": backup}}))
        .await;
    let mut running = manager();
    let away = Away::default();
    let (kubelet, etcdctl) = Kubelet::start_with(&world, Away::clone(&away)).await;
    settles(&world, &etcdctl, 3).await;
    let [waiting, going_on, restoring] = PREFIXES;

    // Their nodes are away, and come back with the volumes.
    let writer = Writer::start(&etcdctl.impatient(), waiting);
    some_writes(&writer).await;
    away.lock().unwrap().extend([0, 1]);
    eventually("it is said that there is no quorum", async || health(&world).await.0 == "NoQuorum").await;
    change(&world, json!({"member": "demo-etcd-2", "replace": "demo/1"})).await;
    eventually("nobody goes on while all volumes are there", async || told(&world).await == "False Unusable")
        .await;
    change(&world, json!(null)).await;
    let back = Instant::now();
    away.lock().unwrap().clear();
    let took = writer.goes_on_after(back).await;
    settles(&world, &etcdctl, 3).await;
    let (acknowledged, _, missing) = writer.end(&etcdctl);
    cost("waiting", missing.len(), acknowledged, took);
    assert_eq!(missing, Vec::<String>::new());

    // Their volumes are lost, and people go on from the last member, which is not the first.
    let writer = Writer::start(&etcdctl.impatient(), going_on);
    some_writes(&writer).await;
    running.stop().await;
    lose(&world, [0, 1]).await;
    running = manager();
    eventually("the loss is said", async || health(&world).await.0 == "DataLost").await;
    let (_, message) = health(&world).await;
    println!("{message}");
    for choice in ["volumes to come back", "a backup", "member: demo-etcd-2 and replace: demo/1"] {
        assert!(message.contains(choice), "{choice}: {message}");
    }
    let known =
        etcdctl.run_at(2..3, &format!("get --consistency=s --prefix --keys-only {going_on}")).unwrap();
    let known = keys(&known);
    change(&world, json!({"member": "demo-etcd-2"})).await;
    eventually("it needs consent", async || told(&world).await == "False NotConfirmed").await;
    change(&world, json!({"member": "demo-etcd-1", "replace": "demo/1"})).await;
    eventually("who has lost its data is refused", async || told(&world).await == "False Unusable").await;
    let consent = Instant::now();
    change(&world, json!({"member": "demo-etcd-2"})).await;
    let took = writer.goes_on_after(consent).await;
    // The manager dies in the middle of the growth.
    running.stop().await;
    running = manager();
    settles(&world, &etcdctl, 3).await;
    println!("three members {:.1} s after the consent", consent.elapsed().as_secs_f64());
    assert_eq!(told(&world).await, "True Restored");
    let record = annotation(&world, "etcd").await;
    assert_eq!((&record["generation"], &record["data"]), (&json!(2), &json!("data-2")));
    let there = keys(&etcdctl.run(&format!("get --prefix --keys-only {going_on}")).unwrap());
    assert_eq!(known.difference(&there).collect::<Vec<_>>(), Vec::<&String>::new());
    let (acknowledged, _, missing) = writer.end(&etcdctl);
    cost("going on from a member", missing.len(), acknowledged, took);
    // What it was not told before the others ended: less than what etcd sends at once.
    assert!(missing.len() <= 1, "{missing:?}");

    // The same once more: the consent is spent, and a backup is restored.
    let writer = Writer::start(&etcdctl.impatient(), restoring);
    some_writes(&writer).await;
    let asked = Instant::now();
    let ask = json!({"metadata": {"annotations": {BACKUP_REQUESTED_ANNOTATION: "once"}}});
    let api = world.api::<HostedControlPlane>();
    api.patch("demo", &PatchParams::default(), &Patch::Merge(ask)).await.unwrap();
    eventually("it is backed up", async || {
        let status = world.control_plane().await.status.unwrap_or_default();
        status.etcd_backup.is_some_and(|backup| backup.last_request.as_deref() == Some("once"))
    })
    .await;
    let promised = writer.acknowledged_before(asked);
    running.stop().await;
    lose(&world, [0, 2]).await;
    running = manager();
    eventually("the loss is said", async || health(&world).await.0 == "DataLost").await;
    assert_eq!(annotation(&world, "etcd").await, record, "a consent is spent once");
    let consent = Instant::now();
    change(&world, json!({"member": null, "backup": "latest", "replace": "demo/2"})).await;
    let took = writer.goes_on_after(consent).await;
    settles(&world, &etcdctl, 3).await;
    assert_eq!(told(&world).await, "True Restored");
    let there = keys(&etcdctl.run(&format!("get --prefix --keys-only {restoring}")).unwrap());
    assert_eq!(promised.difference(&there).collect::<Vec<_>>(), Vec::<&String>::new());
    let (acknowledged, _, missing) = writer.end(&etcdctl);
    cost("restoring", missing.len(), acknowledged, took);

    running.rest().await;
    kubelet.abort();
    running.stop().await;
}
