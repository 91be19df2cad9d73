//! Backups that are written, found and read again.

use std::sync::Arc;
use std::sync::Mutex;

use hangar_etcd::{
    BackupFault, BackupKey, Call, CallGate, Error, Freshness, Leftovers, NewBackup, Retention, Verb,
};
use jiff::{SignedDuration, Timestamp};

use crate::cluster::Cluster;
use crate::gateway::{Gateway, backup, id};
use crate::snapshots::etcdutl_reads;

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_comes_back_as_it_was() {
    let (cluster, gateway) = (Cluster::start(1).await, Gateway::start().await);
    // More than two parts.
    cluster.writer(0).fill(18).await;
    let (member, store) = (cluster.member(0), gateway.store());
    let key = BackupKey::generate().unwrap();
    let name = id("20261118T194500Z");
    let written = store
        .write(NewBackup { keys: Some(b"authorities"), ..backup(&member, &name, Some(&key)).await })
        .await
        .unwrap();
    assert!(written.size > 18 << 20 && written.stored_size > written.size, "{written:?}");
    assert_eq!(written.stored_size, std::fs::metadata(gateway.file(&name, ".db")).unwrap().len());
    assert_eq!(store.manifest(&name).await.unwrap(), written);
    assert_eq!(store.list(10).await.unwrap().newest, std::slice::from_ref(&name));
    assert_eq!(gateway.files().len(), 3, "{:?}", gateway.files());

    let path = gateway.place.path("restored.db");
    let mut file = Vec::new();
    let read = store.read(&name, Some(&key)).await.unwrap().copy_to(&mut file).await.unwrap();
    std::fs::write(&path, file).unwrap();
    assert_eq!(read, written);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), written.size);
    let (revision, keys) = etcdutl_reads(&path);
    assert!(revision >= written.revision.number() && keys >= 18, "{revision} {keys}");
    assert_eq!(store.read_keys(&name, &key).await.unwrap().as_deref(), Some(&b"authorities"[..]));

    let again = store.write(backup(&member, &name, Some(&key)).await).await.unwrap_err();
    assert!(matches!(again, Error::Backup { fault: BackupFault::Exists, .. }), "{again}");
    store.delete(&name).await.unwrap();
    store.delete(&name).await.unwrap();
    assert_eq!(gateway.files(), Vec::<std::path::PathBuf>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn backups_are_listed_newest_first_found_by_time_and_kept_by_rule() {
    let (cluster, gateway) = (Cluster::start(1).await, Gateway::start().await);
    let (member, store) = (cluster.member(0), gateway.store());
    let names = ["20261116T000000Z", "20261117T000000Z", "20261117T120000Z", "20261118T000000Z"].map(id);
    for name in [2, 0, 3, 1].map(|number: usize| &names[number]) {
        store.write(backup(&member, name, None).await).await.unwrap();
    }
    std::fs::write(gateway.file(&names[0], ".txt"), "of somebody else").unwrap();
    let listing = store.list(2).await.unwrap();
    assert_eq!((listing.newest, listing.total), (vec![names[3].clone(), names[2].clone()], 4));
    let before = async |time: &str| store.latest_before(time.parse().unwrap()).await.unwrap();
    assert_eq!(before("2026-11-17T12:00:00Z").await.as_ref(), Some(&names[2]));
    assert_eq!(before("2026-11-17T11:59:59Z").await.as_ref(), Some(&names[1]));
    assert_eq!(before("2026-11-15T00:00:00Z").await, None);
    let all = store.list(100).await.unwrap().newest;
    let rule = Retention { daily: 2, ..Retention::default() };
    assert_eq!(rule.expired(&all), [names[0].clone(), names[1].clone()]);
}

/// Stops one call of a run, by its number; counts them all.
struct Death {
    at: usize,
    calls: Mutex<Vec<Verb>>,
}

impl CallGate for Death {
    fn before(&self, call: &Call, _: std::time::Duration) -> Result<(), &'static str> {
        let mut calls = self.calls.lock().unwrap();
        // What an earlier one left is ended first, and would shift the count.
        if call.verb == Verb::AbortUpload && calls.len() <= self.at {
            return Ok(());
        }
        calls.push(call.verb);
        // Dead for good: the failed upload cannot be aborted either.
        if calls.len() > self.at { Err("died") } else { Ok(()) }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_dies_at_any_call_is_none_and_the_next_one_is_whole() {
    let (cluster, gateway) = (Cluster::start(1).await, Gateway::start().await);
    cluster.writer(0).fill(9).await;
    let (member, store) = (cluster.member(0), gateway.store());
    let key = BackupKey::generate().unwrap();
    let name = id("20261118T194500Z");
    let mut died_in = Vec::new();
    loop {
        let death = Arc::new(Death { at: died_in.len(), calls: Mutex::default() });
        let snapshot = member.snapshot(Freshness::Acknowledged).await.unwrap();
        let new = NewBackup { id: name.clone(), snapshot, key: Some(&key), keys: Some(b"keys") };
        if gateway.store_with(death.clone()).write(new).await.is_ok() {
            break;
        }
        died_in.push(death.calls.lock().unwrap()[death.at]);
        assert_eq!(store.list(10).await.unwrap().total, 0, "after {died_in:?}");
        let error = store.read(&name, Some(&key)).await.unwrap_err();
        assert!(matches!(error, Error::Backup { fault: BackupFault::Absent, .. }), "{error}");
        // Every other time something is left for the next backup to find.
        if died_in.len() % 2 == 0 {
            let later = Timestamp::now() + SignedDuration::from_hours(1);
            store.remove_leftovers(later).await.unwrap();
            assert_eq!(gateway.files(), Vec::<std::path::PathBuf>::new(), "after {died_in:?}");
        }
    }
    for verb in [Verb::BeginUpload, Verb::UploadPart, Verb::CompleteUpload, Verb::PutObject] {
        assert!(died_in.contains(&verb), "{verb:?} in {died_in:?}");
    }
    assert_eq!(gateway.files().len(), 3, "{:?}", gateway.files());
    store.read(&name, Some(&key)).await.unwrap().copy_to(&mut tokio::io::sink()).await.unwrap();
    let later = Timestamp::now() + SignedDuration::from_hours(1);
    assert_eq!(
        store.remove_leftovers(later).await.unwrap(),
        Leftovers::default(),
        "a whole backup is no leftover"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_dies_leaves_neither_object_nor_parts() {
    let (mut cluster, gateway) = (Cluster::start(1).await, Gateway::start().await);
    cluster.writer(0).fill(24).await;
    let new = backup(&cluster.member(0), &id("20261118T194500Z"), None).await;
    cluster.kill(0);
    let error = gateway.store().write(new).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    assert_eq!(gateway.files(), Vec::<std::path::PathBuf>::new());
}
