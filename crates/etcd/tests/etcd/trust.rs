//! Who is believed, and who believes us.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hangar_etcd::{Answer, Call, CallGate, Credentials, Delivery, Error, Member, MemberOptions, Verb};

use crate::cluster::Cluster;
use crate::place::Place;

#[tokio::test(flavor = "multi_thread")]
async fn a_member_is_known_by_its_name_and_authority_whatever_address_is_dialled() {
    let cluster = Cluster::start(1).await;
    let named = |name: &str| {
        cluster
            .member_with(0, MemberOptions { server_name: Some(name.to_owned()), ..MemberOptions::default() })
    };
    named("etcd-0.etcd.test").status().await.unwrap();
    let error = named("etcd-1.etcd.test").status().await.unwrap_err();
    assert!(matches!(error, Error::Unreached { .. }), "{error}");

    let stranger = Place::new();
    let url = &cluster.members[0].client_url;
    let ours = cluster.place.credentials();
    let theirs = stranger.credentials();
    let other_authority = Credentials { authorities: theirs.authorities.clone(), ..ours.clone() };
    let member = Member::new("etcd-0", url, &other_authority, MemberOptions::default()).unwrap();
    let error = member.status().await.unwrap_err();
    assert!(matches!(error, Error::Unreached { .. }), "{error}");

    // The member finds out after our side of the handshake is done.
    let other_client = Credentials { authorities: ours.authorities.clone(), ..theirs };
    let member = Member::new("etcd-0", url, &other_client, MemberOptions::default()).unwrap();
    let error = member.status().await.unwrap_err();
    assert!(matches!(error, Error::Unreached { .. } | Error::Lost { .. }), "{error}");
}

#[test]
fn what_cannot_be_used_is_said_at_once() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _inside = runtime.enter();
    let credentials = Place::new().credentials();
    let new = |url: &str, credentials: &Credentials| {
        Member::new("etcd-0", url, credentials, MemberOptions::default()).map(drop)
    };
    assert_eq!(new("https://127.0.0.1:2379", &credentials), Ok(()));
    let broken = [
        Credentials { authorities: "x".to_owned(), ..credentials.clone() },
        Credentials { certificate: String::new(), ..credentials.clone() },
        Credentials { key: "x".to_owned().into(), ..credentials.clone() },
    ];
    for broken in broken {
        assert!(new("https://127.0.0.1:2379", &broken).unwrap_err().is_user_fault());
    }
    for url in ["http://127.0.0.1:2379", "127.0.0.1:2379", "https://"] {
        assert!(new(url, &credentials).is_err(), "{url}");
    }
    assert_eq!(format!("{credentials:?}"), "Credentials");
}

/// Stops one kind of call, and withholds the answers of another.
#[derive(Default)]
struct Gate(AtomicUsize);

impl CallGate for Gate {
    fn before(&self, call: &Call, _: std::time::Duration) -> Result<(), &'static str> {
        if call.verb == Verb::Defragment { Err("not now") } else { Ok(()) }
    }

    fn after(&self, call: &Call, answer: Answer, _: std::time::Duration) -> Delivery {
        if call.verb != Verb::AddLearner {
            return Delivery::Deliver;
        }
        assert_eq!(answer, Answer::Done);
        self.0.fetch_add(1, Ordering::Relaxed);
        Delivery::Withhold("died")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_stops_a_call_or_keeps_its_answer() {
    let cluster = Cluster::start(1).await;
    let gate = Arc::new(Gate::default());
    let member =
        cluster.member_with(0, MemberOptions { gates: vec![gate.clone()], ..MemberOptions::default() });
    let error = member.defragment().await.unwrap_err();
    assert!(matches!(error, Error::Stopped { .. }) && !error.is_lost(), "{error}");
    let error = member.add_learner(&["https://127.0.0.1:1".to_owned()]).await.unwrap_err();
    assert!(matches!(error, Error::Lost { .. }) && error.is_lost(), "{error}");
    assert_eq!(gate.0.load(Ordering::Relaxed), 1);
    assert_eq!(member.members().await.unwrap().members.len(), 2, "it was done all the same");
}
