//! Backups of a real etcd to a real S3 server, by managers that come and go.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use base64::Engine as _;
use hangar_api::controlplane::v1alpha1::{EtcdBackupStatus, EtcdBackupSuccess, HostedControlPlane};
use hangar_etcd::KeyFiles;
use hangar_operator::backups::{self, Asked, BackupKey};
use hangar_operator::{Handles, Limits};
use hangar_parts::{Parts, Set};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::actor::Actor;
use super::alarms::Member;
use super::store::{Store, write};
use super::world::{BED, Manager, World, eventually, spec, turn};

/// Larger than everything that is written here.
const QUOTA: u32 = 1 << 30;
const MEBIBYTE: usize = 1 << 20;

/// A manager that may connect to this host.
fn manager() -> Manager {
    let limits = Limits::parse("backupNetworks: [127.0.0.0/8, \"::1/128\"]").unwrap();
    Manager::start_with(&BED, |handles| Handles { limits: Arc::new(limits), ..handles })
}

async fn status(world: &World) -> EtcdBackupStatus {
    world.control_plane().await.status.unwrap_or_default().etcd_backup.unwrap_or_default()
}

/// As `hangar backup create` does.
async fn ask(world: &World, token: &str) {
    backups::ask(&world.client, &world.namespace, "demo", token).await.unwrap();
}

async fn asked(world: &World, token: &str) -> Asked {
    backups::asked(&world.client, &world.namespace, "demo", token).await.unwrap()
}

/// Asks for a backup, and waits for it.
async fn back_up(world: &World, token: &str) -> EtcdBackupSuccess {
    ask(world, token).await;
    eventually("the backup is on record", async || matches!(asked(world, token).await, Asked::Made(_))).await;
    let Asked::Made(made) = asked(world, token).await else { panic!("it is no longer on record") };
    *made
}

async fn change(world: &World, fields: Value) {
    let patch = Patch::Merge(json!({"spec": {"etcd": {"backup": fields}}}));
    world.api::<HostedControlPlane>().patch("demo", &PatchParams::default(), &patch).await.unwrap();
}

/// The revision, as etcd's own tool reads it from the file.
fn revision_in(store: &Store, world: &World, id: &str) -> i64 {
    let file = store.directory(world).join(format!("{id}.db"));
    let program = Parts::from_env().unwrap().program(Set::Etcd36, "etcdutl").unwrap();
    let ended =
        Command::new(program).args(["snapshot", "status", "--write-out=json"]).arg(file).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let told: Value = serde_json::from_slice(&ended.stdout).unwrap();
    told["revision"].as_i64().unwrap()
}

/// Writes one key after the other until it is told to end; how many were acknowledged.
fn load(member: &Arc<Member>) -> (Arc<AtomicBool>, Arc<AtomicU32>, std::thread::JoinHandle<()>) {
    let (end, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let (member, ended, count) = (Arc::clone(member), Arc::clone(&end), Arc::clone(&written));
    let thread = std::thread::spawn(move || {
        while !ended.load(Ordering::Relaxed) {
            let number = count.load(Ordering::Relaxed);
            member.etcdctl(&["put", &format!("load-{number}"), "x"], b"").unwrap();
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    (end, written, thread)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn backups_are_made_told_pruned_and_survive_the_manager() {
    let _turn = turn().await;
    let world = World::new("backup").await;
    let actor = Actor::start(&world);
    let mut wanted = spec();
    wanted["etcd"]["backup"] = json!({
        "schedule": "0 3 29 2 *", "secret": {"name": "bucket"}, "beforeDeletion": true,
        "retention": {"last": 2},
    });
    world.apply(wanted).await;
    let manager = manager();
    let member = Arc::new(Member::start_with(&world, QUOTA).await);
    actor.place("demo-etcd-0", member.address);
    for component in ["etcd", "api-server", "controller-manager", "scheduler"] {
        actor.run(component);
    }
    let told = async || {
        let (status, reason, _) = world.condition("EtcdBackedUp").await;
        format!("{status} {reason}")
    };

    // What is wrong is told, and nothing else waits for it.
    eventually("the Secret is missed", async || told().await == "False SecretUnusable").await;
    let (_, _, message) = world.condition("EtcdBackedUp").await;
    assert!(message.contains("Secret bucket does not exist"), "{message}");
    eventually("etcd is healthy all the same", async || {
        world.condition("EtcdClusterHealthy").await.1 == "AllReady"
    })
    .await;
    let store = Store::start(&world);
    store.publish(&world, json!({"secretAccessKey": "wrong"})).await;
    ask(&world, "wrong-key").await;
    eventually("the store is told to refuse", async || told().await == "False StoreFailing").await;
    assert!(matches!(asked(&world, "wrong-key").await, Asked::Failed(_)));
    let (_, _, message) = world.condition("EtcdBackedUp").await;
    assert!(message.contains("must act") && !message.contains("wrong"), "{message}");
    store.publish(&world, json!({"host": "169.254.169.254"})).await;
    ask(&world, "inside").await;
    eventually("the address is told to be refused", async || told().await == "False SecretUnusable").await;
    let (_, _, message) = world.condition("EtcdBackedUp").await;
    assert!(message.contains("169.254.169.254") && message.contains("backupNetworks"), "{message}");

    // Under load: what was acknowledged before is in it.
    store.publish(&world, json!({})).await;
    let (end, written, thread) = load(&member);
    eventually("it is under load", async || written.load(Ordering::Relaxed) > 20).await;
    let before = revision(&member);
    let first = back_up(&world, "first").await;
    assert!(first.revision >= before && revision_in(&store, &world, &first.id) >= before);
    assert_eq!(told().await, "True UpToDate");
    assert_eq!(world.condition("EtcdBackupComplete").await.1, "WithoutKeys");
    let next = world.control_plane().await.status.unwrap().etcd_next_backup_time.unwrap();
    assert!(next.0.to_string().contains("-02-29T03:00:00Z"), "{}", next.0);
    end.store(true, Ordering::Relaxed);
    thread.join().unwrap();

    // Encrypted, and then with the keys.
    let text = base64::engine::general_purpose::STANDARD.encode([7; 32]);
    let key = BackupKey::new(text.as_bytes()).unwrap();
    write(&world, "backup-key", &json!({"key": text})).await;
    change(&world, json!({"encryption": {"secretName": "backup-key"}})).await;
    let second = back_up(&world, "second").await;
    assert!(second.encrypted && second.has_keys && second.stored_size > second.size);
    assert_eq!(world.condition("EtcdBackupComplete").await.1, "Complete");
    keys_are_those_of_the_control_plane(&world, &second, &key).await;

    // Two are kept.
    let third = back_up(&world, "third").await;
    let ids = |success: &EtcdBackupSuccess| success.id.clone();
    let kept: Vec<String> = [&second, &third]
        .into_iter()
        .flat_map(|backup| ["db", "json", "keys"].map(|suffix| format!("{}.{suffix}", ids(backup))))
        .collect();
    assert_eq!(store.objects(&world), kept);
    assert_eq!(third.retention_failure, None);

    // At rest nothing is written and no Secret is read.
    manager.rest().await;
    manager.stop().await;

    let fourth = a_manager_dies_in_an_upload(&world, &store, &member).await;
    a_deletion_waits_for_the_last_one(&world, &store, &fourth).await;
}

/// What the dead one left is gone with the next backup.
async fn a_manager_dies_in_an_upload(world: &World, store: &Store, member: &Member) -> EtcdBackupSuccess {
    let value: Vec<u8> = (0..MEBIBYTE).map(|number| u8::try_from(number * 31 % 251).unwrap()).collect();
    for number in 0..40 {
        member.etcdctl(&["put", &format!("large-{number}")], &value).unwrap();
    }
    let dying = manager();
    ask(world, "fourth").await;
    eventually("an upload has begun", async || store.parts() > 0).await;
    store.signal("STOP");
    dying.stop().await;
    store.signal("CONT");
    assert!(status(world).await.last_request.as_deref() != Some("fourth"));
    assert!(store.parts() > 0, "it left something");
    let next = manager();
    eventually("the next one makes it", async || {
        status(world).await.last_request.as_deref() == Some("fourth")
    })
    .await;
    assert_eq!(store.parts(), 0);
    let fourth = status(world).await.last_success.unwrap();
    assert!(fourth.size > 40 * i64::try_from(MEBIBYTE).unwrap());
    next.stop().await;
    fourth
}

/// And the condition says how to go on without.
async fn a_deletion_waits_for_the_last_one(world: &World, store: &Store, before: &EtcdBackupSuccess) {
    let manager = manager();
    store.publish(world, json!({"bucket": "nobodys"})).await;
    world.delete().await;
    eventually("the deletion waits", async || {
        let (_, reason, message) = world.condition("Deleting").await;
        reason == "LastBackup"
            && message.contains("spec.etcd.backup.suspend")
            && message.contains("NoSuchBucket")
    })
    .await;
    assert_eq!(world.names::<k8s_openapi::api::apps::v1::StatefulSet>().await, ["demo-etcd"]);
    assert_eq!(world.names::<k8s_openapi::api::apps::v1::Deployment>().await, [] as [&str; 0]);
    store.publish(world, json!({})).await;
    // Other settings are tried at once.
    change(world, json!({"retention": {"daily": 1}})).await;
    eventually("it is gone", async || {
        world.api::<HostedControlPlane>().get_opt("demo").await.unwrap().is_none()
    })
    .await;
    let objects = store.objects(world);
    assert_eq!(
        (objects.len(), objects.iter().any(|name| name.starts_with(&before.id))),
        (6, true),
        "{objects:?}"
    );
    assert!(objects.iter().any(|name| name[..16] > before.id[..]), "a newer one: {objects:?}");
    manager.stop().await;
}

fn revision(member: &Member) -> i64 {
    let status = member.etcdctl(&["endpoint", "status", "--write-out=fields"], b"").unwrap();
    status.lines().find_map(|line| line.strip_prefix("\"Revision\" : ")).unwrap().parse().unwrap()
}

/// What went along opens with the key, and is what the Secrets have.
async fn keys_are_those_of_the_control_plane(world: &World, backup: &EtcdBackupSuccess, key: &BackupKey) {
    // As `hangar backup list` does.
    let owner = backups::Owner::new(&world.namespace, "demo").unwrap();
    let store = backups::store_of(&world.client, (&world.namespace, "demo"), &owner).await.unwrap();
    let id = backup.id.parse().unwrap();
    assert_eq!(store.list(1).await.unwrap().newest, std::slice::from_ref(&id));
    assert_eq!(store.manifest(&id).await.unwrap().size, u64::try_from(backup.size).unwrap());
    let keys = store.read_keys(&id, key).await.unwrap().unwrap();
    let keys = KeyFiles::from_json(&keys).unwrap();
    assert_eq!(keys.names().count(), 5);
    for name in ["ca", "etcd", "proxy", "sa", "encryption"] {
        let Some(files) = keys.get(name) else { panic!("{name} of {:?}", keys.names().collect::<Vec<_>>()) };
        let secret = world.api::<Secret>().get(&format!("demo-{name}")).await.unwrap().data.unwrap();
        assert!(files.iter().eq(secret.iter().map(|(file, content)| (file, &content.0))), "{name}");
    }
}
