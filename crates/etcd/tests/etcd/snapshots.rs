//! Snapshots of members that are written to, and of one that dies meanwhile.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hangar_etcd::{Error, Freshness, SnapshotFault, Taken};
use hangar_parts::Set;

use crate::cluster::Cluster;
use crate::place::{Place, locate, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_of_a_follower_has_every_write_that_was_acknowledged_before() {
    let cluster = Cluster::start(3).await;
    let (leader, follower) = cluster.roles().await;
    let acknowledged = Arc::new(AtomicU64::new(0));
    let is_over = Arc::new(AtomicBool::new(false));
    let writing = {
        let (writer, acknowledged, is_over) = (cluster.writer(leader), acknowledged.clone(), is_over.clone());
        tokio::spawn(async move {
            let mut number = 0;
            while !is_over.load(Ordering::Relaxed) {
                number += 1;
                writer.put(&format!("/writes/{number}"), vec![b'x'; 4000].into()).await.unwrap();
                acknowledged.store(number, Ordering::Relaxed);
            }
        })
    };
    until("some writes", async || (acknowledged.load(Ordering::Relaxed) > 200).then_some(())).await;
    let least = acknowledged.load(Ordering::Relaxed);
    let snapshot = cluster.member(follower).snapshot(Freshness::Acknowledged).await.unwrap();
    let path = cluster.place.path("snapshot.db");
    let mut file = Vec::new();
    let taken = snapshot.copy_to(&mut file).await.unwrap();
    std::fs::write(&path, file).unwrap();
    is_over.store(true, Ordering::Relaxed);
    writing.await.unwrap();

    assert!(taken.origin.revision.number() >= least, "{taken:?}");
    assert_eq!(std::fs::metadata(&path).unwrap().len(), taken.size);
    assert!(etcdutl_reads(&path).0 >= taken.origin.revision.number(), "{taken:?}");
    assert_eq!((taken.origin.version.as_str(), taken.storage_version.as_deref()), ("3.6.16", Some("3.6.0")));

    // Restored as etcd's own tool does it, and started.
    let mut restored = Cluster { place: Place::new(), members: Vec::new() };
    let number = restored.prepare();
    let data = restored.place.path("etcd-0.data");
    let status = Command::new(locate(Set::Etcd36, "etcdutl"))
        .args(["snapshot", "restore", path.to_str().unwrap(), "--name=etcd-0"])
        .arg(format!("--data-dir={}", data.display()))
        .arg(format!("--initial-cluster={}", restored.initial()))
        .arg(format!("--initial-advertise-peer-urls={}", restored.members[0].peer_url))
        .output()
        .unwrap();
    assert!(status.status.success(), "{status:?}");
    let initial = restored.initial();
    restored.run(number, "existing", &initial, &[]);
    let status = restored.led(number).await;
    assert_ne!(status.cluster, taken.origin.cluster, "a restored cluster is another one");
    let writer = restored.writer(0);
    for number in 1..=least {
        assert!(writer.exists(&format!("/writes/{number}")).await, "{number} of {least}");
    }
}

/// The revision and number of keys that etcd's own tool finds, which also checks the digest.
pub(crate) fn etcdutl_reads(path: &std::path::Path) -> (u64, u64) {
    let output = Command::new(locate(Set::Etcd36, "etcdutl"))
        .args(["snapshot", "status", path.to_str().unwrap(), "--write-out=json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    (status["revision"].as_u64().unwrap(), status["totalKey"].as_u64().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_dies_in_the_middle_leaves_an_error_and_no_snapshot() {
    let mut cluster = Cluster::start(1).await;
    cluster.writer(0).fill(24).await;
    let mut snapshot = cluster.member(0).snapshot(Freshness::Acknowledged).await.unwrap();
    snapshot.next().await.unwrap().unwrap();
    let expected = snapshot.expected_size().unwrap();
    assert!(expected > 24 << 20, "{expected}");
    cluster.kill(0);
    let error = loop {
        match snapshot.next().await {
            Ok(piece) => assert!(piece.is_some(), "it cannot be whole"),
            Err(error) => break error,
        }
    };
    let is_broken = matches!(error, Error::Lost { .. } | Error::Snapshot(SnapshotFault::CutOff { .. }));
    assert!(is_broken && error.is_retryable(), "{error}");
    assert_eq!(snapshot.taken(), None::<Taken>);
}
