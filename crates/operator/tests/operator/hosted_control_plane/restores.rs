//! Restores by a real manager, from what it backed up to a real S3 server. What the pods do on their volumes is tried in
//! `crates/etcd/tests/etcd/restores.rs`; here they are ready as soon as they are there.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use hangar_api::names::BACKUP_REQUESTED_ANNOTATION;
use hangar_operator::{Handles, Limits};
use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::actor::Actor;
use super::alarms::Member;
use super::store::{Store, write};
use super::world::{BED, Manager, World, eventually, spec, turn};

/// A manager that may connect to this host.
pub(super) fn manager() -> Manager {
    let limits = Limits::parse("backupNetworks: [127.0.0.0/8, \"::1/128\"]").unwrap();
    Manager::start_with(&BED, |handles| Handles { limits: Arc::new(limits), ..handles })
}

fn key(byte: u8) -> Value {
    json!({"key": base64::engine::general_purpose::STANDARD.encode([byte; 32])})
}

async fn data(world: &World, suffix: &str) -> BTreeMap<String, ByteString> {
    let name = format!("demo-{suffix}");
    world.api::<Secret>().get(&name).await.unwrap().data.unwrap_or_default()
}

pub(super) async fn annotation(world: &World, name: &str) -> Value {
    let annotations = world.control_plane().await.metadata.annotations.unwrap_or_default();
    let text = annotations.get(&format!("hangar.cluster.x-k8s.io/{name}"));
    text.map_or(Value::Null, |text| serde_json::from_str(text).unwrap())
}

pub(super) async fn told(world: &World) -> String {
    let (status, reason, _) = world.condition("EtcdRestored").await;
    format!("{status} {reason}")
}

pub(super) async fn change(world: &World, restore: Value) {
    let patch = Patch::Merge(json!({"spec": {"etcd": {"restore": restore}}}));
    world.api::<HostedControlPlane>().patch("demo", &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_clone_starts_from_a_backup_with_its_keys_and_is_replaced_with_consent_alone() {
    let _turn = turn().await;
    let original = World::new("restored").await;
    let (actor, store) = (Actor::start(&original), Store::start(&original));
    store.publish(&original, json!({})).await;
    write(&original, "key", &key(7)).await;
    let encryption = json!({"secretName": "key"});
    let backup = json!({"schedule": "0 3 29 2 *", "secret": {"name": "bucket"}, "encryption": encryption});
    let mut wanted = spec();
    wanted["etcd"]["backup"] = backup.clone();
    original.apply(wanted.clone()).await;
    let running = manager();
    let member = Member::start_with(&original, 1 << 30).await;
    actor.place("demo-etcd-0", member.address);
    actor.run("etcd");
    let ask = json!({"metadata": {"annotations": {BACKUP_REQUESTED_ANNOTATION: "once"}}});
    let api = original.api::<HostedControlPlane>();
    eventually("etcd has data", async || annotation(&original, "etcd").await["generation"] == 1).await;
    api.patch("demo", &PatchParams::default(), &Patch::Merge(ask)).await.unwrap();
    let made = async || original.control_plane().await.status?.etcd_backup?.last_success;
    eventually("there is a backup", async || made().await.is_some()).await;
    let id = made().await.unwrap().id;
    let materials = ["ca", "sa", "encryption", "etcd", "proxy"];
    let mut before = BTreeMap::new();
    for suffix in materials {
        before.insert(suffix, data(&original, suffix).await);
    }
    running.stop().await;

    // Beside it, in another namespace. The key is wrong at first, and the id.
    let clone = World::new("clone").await;
    let actor = Actor::start(&clone);
    actor.run("etcd");
    store.publish(&clone, json!({})).await;
    write(&clone, "key", &key(8)).await;
    let from = json!({"namespace": original.namespace, "name": "demo"});
    wanted["etcd"]["restore"] = json!({"backup": "20200101T000000Z", "from": from});
    clone.apply(wanted).await;
    let running = manager();
    eventually("there is no such backup", async || told(&clone).await == "False NoBackup").await;
    change(&clone, json!({"backup": "latest"})).await;
    eventually("the key is told to be another", async || told(&clone).await == "False Unusable").await;
    let (_, _, message) = clone.condition("EtcdRestored").await;
    assert!(message.contains("it was encrypted with the key"), "{message}");
    assert_eq!(clone.names::<StatefulSet>().await, Vec::<String>::new(), "nothing starts empty");
    assert!(clone.api::<Secret>().get_opt("demo-ca").await.unwrap().is_none(), "it may be in the backup");
    write(&clone, "key", &key(7)).await;
    eventually("it is restored", async || told(&clone).await == "True Restored").await;
    assert_eq!(annotation(&clone, "restore").await["backup"], id.as_str());
    let record = annotation(&clone, "etcd").await;
    assert_eq!((&record["generation"], &record["data"]), (&json!(2), &json!("data-2")));
    for suffix in materials {
        let is_taken = ["ca", "sa", "encryption"].contains(&suffix);
        assert_eq!(data(&clone, suffix).await == before[suffix], is_taken, "{suffix}");
    }
    let members = async || {
        let set = clone.api::<StatefulSet>().get_opt("demo-etcd").await.unwrap();
        let spec = set.filter(|set| set.metadata.deletion_timestamp.is_none())?.spec?.template.spec?;
        Some((spec.init_containers.is_none(), spec.containers[0].args.clone()?.join(" ")))
    };
    eventually("members run", async || {
        members().await.is_some_and(|(is_member, args)| is_member && args.ends_with(".data-2.yaml"))
    })
    .await;

    // The field stays, and the manager comes back: it is restored once.
    running.stop().await;
    let running = manager();
    running.rest().await;
    assert_eq!(annotation(&clone, "etcd").await, record);
    // Another wish: the refusal names the consent, and the consent holds once.
    change(&clone, json!({"backup": id, "replace": "demo/1"})).await;
    eventually("it is refused", async || told(&clone).await == "False NotConfirmed").await;
    let (_, _, message) = clone.condition("EtcdRestored").await;
    assert!(message.contains("replace: demo/2"), "{message}");
    assert_eq!(annotation(&clone, "etcd").await, record);
    change(&clone, json!({"replace": "demo/2"})).await;
    eventually("it is replaced", async || annotation(&clone, "etcd").await["data"] == "data-3").await;
    eventually("it is done", async || told(&clone).await == "True Restored").await;
    for suffix in ["ca", "sa", "encryption"] {
        assert_eq!(data(&clone, suffix).await, before[suffix], "{suffix}");
    }
    running.stop().await;
}
