//! What somebody deletes under a living control plane with data: keys, the StatefulSet, the claim of a volume.

use std::collections::BTreeMap;

use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim, Pod, Secret};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use super::actor::Actor;
use super::lifecycle::{claims, nothing_is_left};
use super::tenant::Tenant;
use super::world::{Manager, World, eventually, spec, texts, turn};

const IRREPLACEABLE: [&str; 5] = ["demo-ca", "demo-etcd", "demo-proxy", "demo-sa", "demo-encryption"];

/// Deleted keys come back with the same content, and what was encrypted with them can be read.
pub(super) async fn keys_come_back(world: &World, tenant: &mut Tenant) {
    let secrets = world.api::<Secret>();
    let stored: Secret =
        serde_json::from_value(json!({"metadata": {"name": "stored"}, "stringData": {"word": "old"}}))
            .unwrap();
    let theirs: Api<Secret> = Api::namespaced(tenant.client(), "default");
    theirs.create(&PostParams::default(), &stored).await.unwrap();
    let mut before = BTreeMap::new();
    for name in IRREPLACEABLE {
        let secret = secrets.get(name).await.unwrap();
        before.insert(name, (texts(&secret), secret.uid().unwrap()));
        secrets.delete(name, &DeleteParams::default()).await.unwrap();
    }
    for (name, (content, uid)) in &before {
        eventually("a deleted key is there again", async || {
            let found = secrets.get_opt(name).await.unwrap();
            found.is_some_and(|found| {
                found.uid().as_ref() != Some(uid) && found.metadata.deletion_timestamp.is_none()
            })
        })
        .await;
        assert_eq!(texts(&secrets.get(name).await.unwrap()), *content, "{name}");
        eventually("its copy is gone", async || {
            secrets.get_opt(&format!("{name}-copy")).await.unwrap().is_none()
        })
        .await;
    }
    eventually("all is well", async || world.condition("CertificatesValid").await.0 == "True").await;
    tenant.restart_with_secrets(world).await;
    let theirs: Api<Secret> = Api::namespaced(tenant.client(), "default");
    assert_eq!(texts(&theirs.get("stored").await.unwrap())["word"], "old");
}

/// The volumes stay, and the same members start with them.
pub(super) async fn a_stateful_set_comes_back_over_its_volumes(world: &World, tenant: &mut Tenant) {
    let before: Vec<_> = claims(world).await.iter().map(ResourceExt::uid).collect();
    let sets = world.api::<StatefulSet>();
    let old = sets.get("demo-etcd").await.unwrap().uid();
    sets.delete("demo-etcd", &DeleteParams::default()).await.unwrap();
    eventually("the StatefulSet is there again", async || {
        sets.get_opt("demo-etcd").await.unwrap().is_some_and(|found| found.uid() != old)
    })
    .await;
    eventually("etcd is healthy again", async || world.condition("EtcdClusterHealthy").await.0 == "True")
        .await;
    assert_eq!(claims(world).await.iter().map(ResourceExt::uid).collect::<Vec<_>>(), before);
    tenant.restart_etcd(world).await;
    let theirs: Api<Secret> = Api::namespaced(tenant.client(), "default");
    assert_eq!(texts(&theirs.get("stored").await.unwrap())["word"], "old");
}

/// With its volume gone an etcd is not started again; with its finalizer removed a key is not minted again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_lost_is_said_and_nothing_is_made_anew() {
    let _turn = turn().await;
    let world = World::new("losses").await;
    let actor = Actor::start(&world);
    actor.run("etcd");
    world.apply(spec()).await;
    let manager = Manager::start();
    eventually("keys are on record", async || {
        world.control_plane().await.annotations().contains_key("hangar.cluster.x-k8s.io/keys")
    })
    .await;
    // A Secret whose finalizer somebody removes is gone.
    let secrets = world.api::<Secret>();
    secrets.delete("demo-encryption", &DeleteParams::default()).await.unwrap();
    eventually("it comes back while it is held", async || {
        let found = secrets.get_opt("demo-encryption").await.unwrap();
        found.is_some_and(|found| found.metadata.deletion_timestamp.is_none())
            && secrets.get_opt("demo-encryption-copy").await.unwrap().is_none()
    })
    .await;
    manager.stop().await;
    let released = json!({"metadata": {"finalizers": null}});
    secrets.patch("demo-encryption", &PatchParams::default(), &Patch::Merge(&released)).await.unwrap();
    secrets.delete("demo-encryption", &DeleteParams::default()).await.unwrap();
    // The StatefulSet and its volume go together.
    let sets = world.api::<StatefulSet>();
    sets.delete("demo-etcd", &DeleteParams::default()).await.unwrap();
    let (pods, volumes) = (world.api::<Pod>(), world.api::<PersistentVolumeClaim>());
    eventually("its pod is gone", async || pods.get_opt("demo-etcd-0").await.unwrap().is_none()).await;
    volumes.delete("data-demo-etcd-0", &DeleteParams::default()).await.unwrap();
    eventually("its claim is gone", async || volumes.get_opt("data-demo-etcd-0").await.unwrap().is_none())
        .await;
    let manager = Manager::start();
    eventually("the loss of data is said", async || {
        world.condition("EtcdClusterHealthy").await.1 == "DataLost"
    })
    .await;
    let (_, reason, message) = world.condition("CertificatesValid").await;
    assert_eq!(reason, "KeyLost");
    assert!(message.contains("demo-encryption"), "{message}");
    manager.rest().await;
    assert!(sets.get_opt("demo-etcd").await.unwrap().is_none());
    assert!(secrets.get_opt("demo-encryption").await.unwrap().is_none());
    assert_eq!(claims(&world).await, []);
    // A control plane that was deleted while its Cluster lives stays until somebody consents.
    let planes = world.api::<HostedControlPlane>();
    planes.delete("demo", &DeleteParams::default()).await.unwrap();
    eventually("it is held", async || world.condition("Deleting").await.1 == "Held").await;
    let consent = json!({"metadata": {"annotations": {"hangar.cluster.x-k8s.io/allow-deletion": ""}}});
    planes.patch("demo", &PatchParams::default(), &Patch::Merge(&consent)).await.unwrap();
    eventually("it is gone", async || planes.get_opt("demo").await.unwrap().is_none()).await;
    nothing_is_left(&world).await;
    manager.stop().await;
}

/// The finalizers of keys go with the namespace, and with a control plane that somebody removed by force.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn finalizers_of_keys_hold_up_no_deletion() {
    let _turn = turn().await;
    let manager = Manager::start();
    for is_forced in [false, true] {
        let world = World::new("ends").await;
        let actor = Actor::start(&world);
        actor.run("etcd");
        world.apply(spec()).await;
        eventually("keys are on record", async || {
            world.control_plane().await.annotations().contains_key("hangar.cluster.x-k8s.io/keys")
        })
        .await;
        if is_forced {
            let planes = world.api::<HostedControlPlane>();
            let released = json!({"metadata": {"finalizers": null}});
            planes.delete("demo", &DeleteParams::default()).await.unwrap();
            planes.patch("demo", &PatchParams::default(), &Patch::Merge(&released)).await.unwrap();
            eventually("no key is left", async || world.names::<Secret>().await.is_empty()).await;
            assert_eq!(claims(&world).await.len(), 1, "nobody asked for the data to be deleted");
        } else {
            let namespaces: Api<Namespace> = Api::all(world.client.clone());
            crate::rights::will_end(&world.namespace);
            namespaces.delete(&world.namespace, &DeleteParams::default()).await.unwrap();
            eventually("the namespace is gone", async || {
                namespaces.get_opt(&world.namespace).await.unwrap().is_none()
            })
            .await;
        }
    }
    manager.stop().await;
}
