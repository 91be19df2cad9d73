//! Restores as the pods of a control plane do them: fetch, `etcdutl`, place, start.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bytes::Bytes;
use hangar_etcd::{BackupId, BackupKey, BackupStore, Error, fetch, place};
use hangar_parts::Set;

use crate::cluster::Cluster;
use crate::gateway::{Gateway, backup, id, owner};
use crate::place::locate;

/// What a control plane's pods add to every revision.
const REVISIONS: u64 = 1_000_000_000;

/// Set in a process that sees a small file system.
const SMALL: &str = "HANGAR_TEST_SMALL_PLACE";

fn volume(cluster: &Cluster, number: usize) -> PathBuf {
    let volume = cluster.place.path(&format!("volume-{number}"));
    std::fs::create_dir_all(&volume).unwrap();
    volume
}

/// What the pod's second program does, with the arguments of the plan.
fn etcdutl(cluster: &Cluster, number: usize, into: &Path) -> Result<(), String> {
    let member = &cluster.members[number];
    let output = Command::new(locate(Set::Etcd36, "etcdutl"))
        .args(["snapshot", "restore"])
        .arg(into.join("snapshot.db"))
        .arg(format!("--data-dir={}", into.join("data").display()))
        .arg(format!("--name={}", member.name))
        .arg(format!("--initial-cluster={}", cluster.initial()))
        .arg("--initial-cluster-token=team/demo/2")
        .arg(format!("--initial-advertise-peer-urls={}", member.peer_url))
        .arg(format!("--bump-revision={REVISIONS}"))
        .arg("--mark-compacted")
        .output()
        .unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

async fn restore(
    cluster: &Cluster,
    number: usize,
    store: &BackupStore,
    name: &BackupId,
    key: Option<&BackupKey>,
) {
    let into = volume(cluster, number).join("restoring");
    fetch(store, name, key, &into).await.unwrap();
    etcdutl(cluster, number, &into).unwrap();
    let data = cluster.place.path(&format!("{}.data", cluster.members[number].name));
    assert_eq!(place(&into, &data), Ok(false));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_write_acknowledged_before_the_backup_is_there_after_everything_was_lost() {
    let (mut cluster, gateway) = (Cluster::start(3).await, Gateway::start().await);
    let (store, key, name) = (gateway.store(), BackupKey::generate().unwrap(), id("20261118T194500Z"));
    let acknowledged = Arc::new(AtomicU32::new(0));
    let stopped = Arc::new(AtomicBool::new(false));
    let (writer, counted, stop) = (cluster.writer(0), Arc::clone(&acknowledged), Arc::clone(&stopped));
    let load = tokio::spawn(async move {
        while !stop.load(Ordering::SeqCst) {
            let next = counted.load(Ordering::SeqCst);
            writer.put(&format!("/load/{next}"), Bytes::from_static(b"value")).await.unwrap();
            counted.store(next + 1, Ordering::SeqCst);
        }
    });
    cluster.writer(1).fill(4).await;
    let before = acknowledged.load(Ordering::SeqCst);
    assert!(before > 10, "there was no load: {before}");
    let (_, follower) = cluster.roles().await;
    let written = store.write(backup(&cluster.member(follower), &name, Some(&key)).await).await.unwrap();
    stopped.store(true, Ordering::SeqCst);
    load.await.unwrap();
    let last = cluster.member(0).status().await.unwrap();

    let old = cluster.member(0).members().await.unwrap().cluster;
    for number in 0..3 {
        cluster.kill(number);
        let data = cluster.place.path(&format!("{}.data", cluster.members[number].name));
        std::fs::remove_dir_all(data).unwrap();
    }
    let begun = std::time::Instant::now();
    for number in 0..3 {
        restore(&cluster, number, &store, &name, Some(&key)).await;
    }
    let initial = cluster.initial();
    for number in 0..3 {
        cluster.run(number, "existing", &initial, &[]);
    }
    let status = cluster.led(0).await;
    println!("restored {} bytes on three members in {:?}", written.size, begun.elapsed());
    let writer = cluster.writer(2);
    for number in 0..before {
        assert!(writer.exists(&format!("/load/{number}")).await, "/load/{number} of {before} was lost");
    }
    let restored = cluster.member(0).members().await.unwrap();
    assert_eq!(restored.members.len(), 3);
    assert_ne!(restored.cluster, old, "members of before are no members of it");
    // Who watched something after the backup must not go on as if nothing had happened.
    assert!(status.revision.number() >= written.revision.number() + REVISIONS, "{status:?}");
    assert!(status.revision.number() > last.revision.number());
    writer.put("/after", Bytes::from_static(b"value")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_begins_anew_ends_the_same() {
    let (cluster, gateway) = (Cluster::start(1).await, Gateway::start().await);
    cluster.writer(0).fill(1).await;
    let (store, name) = (gateway.store(), id("20261118T194500Z"));
    store.write(backup(&cluster.member(0), &name, None).await).await.unwrap();
    let volume = volume(&cluster, 0);
    let (into, data) = (volume.join("restoring"), volume.join("data-2"));
    fetch(&store, &name, None, &into).await.unwrap();
    etcdutl(&cluster, 0, &into).unwrap();
    // Ended before it had its name. The second program alone cannot go on, and says so.
    let again = etcdutl(&cluster, 0, &into).unwrap_err();
    assert!(again.contains("not empty"), "{again}");
    for was_there in [false, true] {
        fetch(&store, &name, None, &into).await.unwrap();
        etcdutl(&cluster, 0, &into).unwrap();
        assert_eq!(place(&into, &data), Ok(was_there));
        assert_eq!(std::fs::read_dir(&volume).unwrap().count(), 1, "nothing else is left");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_restored_is_refused_clearly_and_nothing_is_lost() {
    let (cluster, gateway) = (Cluster::start(1).await, Gateway::start().await);
    cluster.writer(0).fill(1).await;
    let (store, name) = (gateway.store(), id("20261118T194500Z"));
    let (key, other) = (BackupKey::generate().unwrap(), BackupKey::generate().unwrap());
    let volume = volume(&cluster, 0);
    std::fs::create_dir(volume.join("data")).unwrap();
    std::fs::write(volume.join("data/db"), "of before").unwrap();
    let into = volume.join("restoring");
    let refused = async |key: Option<&BackupKey>| {
        let error = fetch(&store, &name, key, &into).await.unwrap_err();
        assert_eq!(std::fs::read_dir(&into).unwrap().count(), 0, "the room is given back");
        assert_eq!(std::fs::read_to_string(volume.join("data/db")).unwrap(), "of before");
        println!("{error}");
        error.to_string()
    };
    assert!(refused(Some(&key)).await.contains("does not exist"), "an empty bucket");
    store.write(backup(&cluster.member(0), &name, Some(&key)).await).await.unwrap();
    assert!(refused(Some(&other)).await.contains("was encrypted with another key"));
    assert!(refused(None).await.contains("needs a key"));
    let file = gateway.file(&name, ".db");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    assert!(refused(Some(&key)).await.contains("bytes instead of"), "cut off");
    // Cut off, and a manifest that says that this is all.
    let manifest = gateway.file(&name, ".json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let shorter = text.replace(
        &format!("\"storedSize\": {}", whole.len()),
        &format!("\"storedSize\": {}", whole.len() / 2),
    );
    assert_ne!(text, shorter);
    std::fs::write(&manifest, shorter).unwrap();
    let cut = refused(Some(&key)).await;
    assert!(cut.contains("cut off"), "{cut}");
    let elsewhere =
        BackupStore::new(&gateway.config(), &hangar_etcd::Owner::new("tenants", "other").unwrap());
    let error = fetch(&elsewhere.unwrap(), &name, Some(&key), &into).await.unwrap_err();
    assert!(error.to_string().contains("does not exist"), "{error}");
    assert_eq!(owner().to_string(), "tenants/demo");
}

/// On a file system of 70 MiB, in a mount namespace of its own: this test runs itself there.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_refused_before_and_said_when_it_comes_later() {
    let Some(small) = std::env::var_os(SMALL).map(PathBuf::from) else {
        return in_a_small_place("restores::a_full_disk_is_refused_before_and_said_when_it_comes_later");
    };
    let (cluster, gateway) = (Cluster::start(1).await, Gateway::start().await);
    cluster.writer(0).fill(72).await;
    let (store, name) = (gateway.store(), id("20261118T194500Z"));
    let written = store.write(backup(&cluster.member(0), &name, None).await).await.unwrap();
    std::fs::write(small.join("data"), "of before").unwrap();
    let into = small.join("restoring");
    let error = fetch(&store, &name, None, &into).await.unwrap_err();
    assert!(matches!(error, Error::Unusable { .. }), "{error}");
    assert!(error.to_string().contains("MiB left, and the restore needs"), "{error}");
    // Its manifest says less than there is, or somebody else took the room.
    let manifest = gateway.file(&name, ".json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace(&format!("\"size\": {}", written.size), "\"size\": 1")).unwrap();
    let large = small.join("more");
    let error = fetch(&store, &name, None, &large).await.unwrap_err();
    println!("{error}");
    assert!(error.to_string().contains("left") || error.to_string().contains("space"), "{error}");
    assert_eq!(std::fs::read_dir(&large).unwrap().count(), 0, "the room is given back");
    assert_eq!(std::fs::read_to_string(small.join("data")).unwrap(), "of before");
}

fn in_a_small_place(test: &str) {
    let directory = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=70m small \"$1\" && exec \"$2\" --exact \"$3\" --nocapture";
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .arg(directory.path())
        .arg(std::env::current_exe().unwrap())
        .arg(test)
        .env(SMALL, directory.path())
        .output()
        .unwrap();
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "{out}\n{errors}");
    print!("{out}");
}
