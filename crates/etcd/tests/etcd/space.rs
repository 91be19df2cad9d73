//! A database that is full, and is made small again.

use bytes::Bytes;
use hangar_etcd::{Alarm, AlarmKind};

use crate::cluster::Cluster;
use crate::place::until;

#[tokio::test(flavor = "multi_thread")]
async fn a_full_database_raises_an_alarm_that_ends_when_there_is_room_again() {
    let cluster = Cluster::start_with(1, &["--quota-backend-bytes=4194304".to_owned()]).await;
    let (member, writer) = (cluster.member(0), cluster.writer(0));
    let value = Bytes::from(vec![b'x'; 400_000]);
    let refusal = until("the quota", async || writer.put("/same", value.clone()).await.err()).await;
    assert!(refusal.message().contains("database space exceeded"), "{refusal}");

    let full = member.status().await.unwrap();
    assert_eq!(full.database_quota, Some(4_194_304));
    assert!(!full.errors.is_empty(), "{full:?}");
    let alarm = Alarm { member: full.member, kind: AlarmKind::NoSpace };
    assert_eq!(member.alarms().await.unwrap(), [alarm]);

    writer.compact(full.revision.number()).await;
    let compacted = member.hash(None).await.unwrap();
    assert_eq!(compacted.compact_revision, Some(full.revision));
    member.defragment().await.unwrap();
    let small = member.status().await.unwrap();
    assert!(small.database_size < full.database_size / 2, "{small:?} after {full:?}");
    assert!(writer.put("/same", value.clone()).await.is_err(), "the alarm is still on");
    member.disarm(alarm).await.unwrap();
    member.disarm(alarm).await.unwrap();
    assert_eq!(member.alarms().await.unwrap(), []);
    writer.put("/same", value).await.unwrap();
}
