//! What members tell, and changes of who they are.

use hangar_etcd::{Error, Freshness, Member, MemberId, RefusalKind};

use crate::cluster::Cluster;
use crate::place::until;

fn kind<T: std::fmt::Debug>(result: Result<T, Error>) -> Option<RefusalKind> {
    result.unwrap_err().refusal().map(|refusal| refusal.kind)
}

#[tokio::test(flavor = "multi_thread")]
async fn three_members_tell_the_same() {
    let cluster = Cluster::start(3).await;
    cluster.writer(0).put("/one", "1".into()).await.unwrap();
    let revision = cluster.member(1).revision().await.unwrap();
    let mut told = Vec::new();
    for number in 0..3 {
        let member = cluster.member(number);
        let status = until("the write", async || {
            member.status().await.ok().filter(|status| status.revision >= revision)
        })
        .await;
        assert_eq!(status.version, "3.6.16");
        assert_eq!(status.storage_version.as_deref(), Some("3.6.0"));
        assert!(!status.is_learner && status.errors.is_empty(), "{status:?}");
        assert!(status.database_size >= status.database_in_use && status.database_in_use > 0, "{status:?}");
        assert!(status.database_quota.is_some(), "{status:?}");
        assert!(status.raft_index >= status.raft_applied_index && status.raft_term > 0, "{status:?}");
        let hash = member.hash(Some(revision)).await.unwrap();
        assert_eq!((hash.member, hash.revision, hash.compact_revision), (status.member, revision, None));
        assert_eq!(member.alarms().await.unwrap(), []);
        let membership = member.members().await.unwrap();
        assert_eq!(membership.told_by, status.member);
        assert_eq!(member.members_as_known().await.unwrap(), membership);
        told.push((status.cluster, status.leader, hash.hash, membership.members));
    }
    assert!(told.windows(2).all(|pair| pair[0] == pair[1]), "{told:?}");
    let (_, leader, _, members) = &told[0];
    assert!(members.iter().any(|member| Some(member.id) == *leader));
    assert!(members.iter().all(|member| member.has_started() && !member.is_learner));
    let error = cluster.member(0).hash(Some(hangar_etcd::Revision::new(1000))).await;
    assert_eq!(kind(error), Some(RefusalKind::NoSuchRevision));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_learner_is_added_promoted_and_removed() {
    let mut cluster = Cluster::start(1).await;
    let first = cluster.member(0);
    let number = cluster.prepare();
    let peers = [cluster.members[number].peer_url.clone()];

    let added = first.add_learner(&peers).await.unwrap();
    let id = added.member.id;
    assert!(added.member.is_learner && !added.member.has_started(), "{added:?}");
    assert_eq!(added.membership.members.len(), 2);
    let again = kind(first.add_learner(&peers).await).unwrap();
    // Within the same second it would have the same id too.
    assert!(matches!(again, RefusalKind::PeerUrlExists | RefusalKind::MemberExists), "{again:?}");
    let other = ["https://127.0.0.1:1".to_owned()];
    assert_eq!(kind(first.add_learner(&other).await), Some(RefusalKind::TooManyLearners));
    assert_eq!(kind(first.promote(id).await), Some(RefusalKind::LearnerNotReady), "it does not run");

    let initial = cluster.initial();
    cluster.run(number, "existing", &initial, &[]);
    let learner = cluster.member(number);
    let status = cluster.led(number).await;
    assert!(status.is_learner && status.member == id, "{status:?}");
    assert_eq!(kind(learner.revision().await), Some(RefusalKind::IsLearner));
    assert_eq!(kind(learner.promote(id).await), Some(RefusalKind::IsLearner));

    let promoted = until("the promotion", async || match first.promote(id).await {
        Ok(membership) => Some(membership),
        Err(error) => {
            let kind = error.refusal().map(|refusal| refusal.kind);
            assert_eq!(kind, Some(RefusalKind::LearnerNotReady), "{error}");
            None
        }
    })
    .await;
    assert!(promoted.members.iter().all(|member| !member.is_learner), "{promoted:?}");
    assert_eq!(kind(first.promote(id).await), Some(RefusalKind::NotLearner));

    let moved = first.update_peers(id, &other).await.unwrap();
    assert_eq!(moved.members.iter().find(|member| member.id == id).unwrap().peer_urls, other);
    first.update_peers(id, &peers).await.unwrap();
    for nonsense in ["nonsense", "https://127.0.0.1", "ftp://127.0.0.1:1", "https://127.0.0.1:1/path"] {
        let error = first.update_peers(id, &[nonsense.to_owned()]).await.unwrap_err();
        assert!(error.is_user_fault() && !error.is_lost(), "{error}");
    }

    // The other one has to agree, and etcd wants it connected for a while first.
    let left = until("the removal", async || match first.remove(id).await {
        Ok(membership) => Some(membership),
        Err(error) => {
            assert!(error.is_retryable() && !error.is_lost(), "{error}");
            None
        }
    })
    .await;
    assert_eq!(left.members.len(), 1);
    assert_eq!(kind(first.remove(id).await), Some(RefusalKind::MemberNotFound));
    assert_eq!(kind(first.promote(id).await), Some(RefusalKind::MemberNotFound));
}

#[tokio::test(flavor = "multi_thread")]
async fn leadership_goes_to_who_is_named() {
    let cluster = Cluster::start(3).await;
    let (leader, follower) = cluster.roles().await;
    let target = cluster.member(follower).status().await.unwrap().member;
    assert_eq!(kind(cluster.member(follower).move_leader(target).await), Some(RefusalKind::NotLeader));
    let stranger = MemberId::new(1);
    assert_eq!(kind(cluster.member(leader).move_leader(stranger).await), Some(RefusalKind::BadTransferee));
    cluster.member(leader).move_leader(target).await.unwrap();
    let told =
        async || cluster.member(leader).status().await.ok().filter(|status| status.leader == Some(target));
    until("the new leader", told).await;
    assert!(cluster.member(follower).status().await.unwrap().is_leader());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_member_still_tells_what_it_knows() {
    let mut cluster = Cluster::start(3).await;
    cluster.writer(0).put("/kept", "1".into()).await.unwrap();
    let revision = cluster.member(0).revision().await.unwrap();
    cluster.kill(1);
    cluster.kill(2);
    let last = cluster.impatient(0);
    until("the loss", async || last.status().await.unwrap().leader.is_none().then_some(())).await;
    assert_eq!(last.members_as_known().await.unwrap().members.len(), 3);
    assert!(!last.members().await.unwrap_err().is_lost(), "a read");
    let error = last.snapshot(Freshness::Acknowledged).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    let mut file = Vec::new();
    let taken = last.snapshot(Freshness::AsFound).await.unwrap().copy_to(&mut file).await.unwrap();
    assert_eq!(taken.origin.revision, revision);
    // Proposed to nobody: whether it is done one day is open, and it is never said to be refused for good.
    let error = last.remove(MemberId::new(1)).await.unwrap_err();
    assert!(error.is_lost() || error.is_retryable() || is_not_found(&error), "{error}");
    let id = last.members_as_known().await.unwrap().members[1].id;
    let error = last.remove(id).await.unwrap_err();
    assert!(error.is_lost() || error.is_retryable(), "{error}");
    unreached(&cluster.member(1)).await;
}

fn is_not_found(error: &Error) -> bool {
    error.refusal().is_some_and(|refusal| refusal.kind == RefusalKind::MemberNotFound)
}

/// A write to a member that does not run is known not to have happened.
async fn unreached(member: &Member) {
    let error = member.remove(MemberId::new(1)).await.unwrap_err();
    assert!(matches!(error, Error::Unreached { .. }) && !error.is_lost(), "{error}");
}
