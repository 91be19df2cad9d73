//! Leader election on a real API server.

#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use hangar_kit::lease::{Candidate, Held, LeaseSettings, Term};
use hangar_kit::metrics::Metrics;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::client::ClientBuilder;
use kube::discovery::ApiResource;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const NAME: &str = "leader";

/// Nothing here takes this long; it only keeps a broken test from hanging.
const PATIENCE: Duration = Duration::from_mins(2);

/// Long enough for a busy machine to renew in time; tests that wait for it to run out say so.
fn settings(namespace: &str, identity: &str) -> LeaseSettings {
    LeaseSettings {
        duration: Duration::from_mins(1),
        renew_deadline: Duration::from_secs(40),
        retry_period: Duration::from_millis(100),
        ..LeaseSettings::new(namespace, NAME, identity)
    }
}

fn candidate(client: &Client, settings: LeaseSettings) -> Candidate {
    Candidate::new(client.clone(), settings).expect("settings")
}

async fn acquired(candidate: &Candidate) -> Held {
    tokio::time::timeout(PATIENCE, candidate.acquire(&CancellationToken::new()))
        .await
        .expect("acquired in time")
        .expect("not stopped")
}

async fn lost(term: &Term) {
    tokio::time::timeout(PATIENCE, term.lost()).await.expect("lost in time");
}

async fn spec(client: &Client, namespace: &str) -> Value {
    let api: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), namespace, &ApiResource::erase::<Lease>(&()));
    api.get(NAME).await.expect("the lease").data["spec"].clone()
}

/// Creates the lease as another program would have left it.
async fn foreign_lease(client: &Client, namespace: &str, spec: Value) -> Api<Lease> {
    let api: Api<Lease> = Api::namespaced(client.clone(), namespace);
    let lease = serde_json::from_value(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": NAME }, "spec": spec,
    }))
    .expect("a lease");
    api.create(&PostParams::default(), &lease).await.expect("created");
    api
}

async fn set(api: &Api<Lease>, patch: Value) {
    api.patch(NAME, &PatchParams::default(), &Patch::Merge(patch)).await.expect("patched");
}

#[tokio::test]
async fn the_record_is_written_as_client_go_writes_it() {
    let bed = hangar_testbed::shared();
    let (client, namespace) = (bed.client(), bed.namespace("lease-record"));
    let metrics = Metrics::new();
    let candidate = candidate(&client, settings(&namespace, "first")).with_metrics(metrics.leader.clone());
    let held = acquired(&candidate).await;
    assert!(held.term().holds());
    assert_eq!(metrics.leader.leading.get(), 1);

    let first = spec(&client, &namespace).await;
    let keys: Vec<_> = first.as_object().expect("a spec").keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        ["acquireTime", "holderIdentity", "leaseDurationSeconds", "leaseTransitions", "renewTime"]
    );
    assert_eq!((&first["holderIdentity"], &first["leaseDurationSeconds"]), (&json!("first"), &json!(60)));
    assert_eq!(first["leaseTransitions"], 0);
    let acquire_time = first["acquireTime"].as_str().expect("a time");
    assert_eq!(acquire_time.len(), "2026-11-15T07:00:00.000000Z".len(), "{acquire_time}");

    // Renewals move one field only.
    let renewed = loop {
        let now = spec(&client, &namespace).await;
        if now["renewTime"] != first["renewTime"] {
            break now;
        }
    };
    assert_eq!(renewed["acquireTime"], first["acquireTime"]);
    assert_eq!(renewed["leaseTransitions"], 0);

    held.release().await.expect("released");
    let released = spec(&client, &namespace).await;
    assert_eq!(released.get("holderIdentity"), None);
    assert_eq!((&released["leaseDurationSeconds"], &released["leaseTransitions"]), (&json!(1), &json!(0)));
    assert_eq!(metrics.leader.leading.get(), 0);
    assert_eq!(metrics.leader.lost.get(), 0);
}

#[tokio::test]
async fn a_silent_holder_is_replaced_after_its_duration_whatever_its_clock_says() {
    let bed = hangar_testbed::shared();
    let client = bed.client();
    for renewed in ["1999-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"] {
        let namespace = bed.namespace("lease-silent");
        let silent = json!({
            "holderIdentity": "silent", "leaseDurationSeconds": 2, "leaseTransitions": 7, "renewTime": renewed,
        });
        foreign_lease(&client, &namespace, silent).await;
        let started = Instant::now();
        let held = acquired(&candidate(&client, settings(&namespace, "next"))).await;
        assert!(started.elapsed() >= Duration::from_secs(2), "taken over after {:?}", started.elapsed());
        let taken = spec(&client, &namespace).await;
        assert_eq!((&taken["holderIdentity"], &taken["leaseTransitions"]), (&json!("next"), &json!(8)));
        held.release().await.expect("released");
    }
}

#[tokio::test]
async fn a_holder_that_renews_with_an_absurd_clock_keeps_the_lease() {
    let bed = hangar_testbed::shared();
    let (client, namespace) = (bed.client(), bed.namespace("lease-skew"));
    let time = |count: u32| format!("1999-01-01T00:00:{count:02}.000000Z");
    let live = json!({ "holderIdentity": "skewed", "leaseDurationSeconds": 20, "renewTime": time(0) });
    let api = foreign_lease(&client, &namespace, live).await;

    let stop = CancellationToken::new();
    let waiting = tokio::spawn({
        let (candidate, stop) = (candidate(&client, settings(&namespace, "waiting")), stop.clone());
        async move { candidate.acquire(&stop).await.is_some() }
    });
    // In all longer than the duration: without a look at the changes it would be taken over.
    for count in 1..=11 {
        tokio::time::sleep(Duration::from_secs(2)).await;
        set(&api, json!({ "spec": { "renewTime": time(count) } })).await;
    }
    assert_eq!(spec(&client, &namespace).await["holderIdentity"], "skewed");
    stop.cancel();
    assert!(!waiting.await.expect("no panic"), "the lease was taken from a live holder");
}

#[tokio::test]
async fn release_hands_over_without_a_wait() {
    let bed = hangar_testbed::shared();
    let (client, namespace) = (bed.client(), bed.namespace("lease-release"));
    // With a duration of an hour only a release can hand over.
    let hour = |identity| LeaseSettings {
        duration: Duration::from_hours(1),
        renew_deadline: Duration::from_mins(50),
        ..settings(&namespace, identity)
    };
    let first = acquired(&candidate(&client, hour("first"))).await;
    let term = first.term().clone();
    let second = tokio::spawn({
        let candidate = candidate(&client, hour("second"));
        async move { acquired(&candidate).await }
    });
    first.release().await.expect("released");
    assert!(!term.holds());
    let second = second.await.expect("acquired");
    assert!(second.term().holds());
    assert_eq!(spec(&client, &namespace).await["leaseTransitions"], 1);
    second.release().await.expect("released");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_candidates_one_leads_at_a_time_and_each_gets_its_turn() {
    const COUNT: usize = 5;
    let bed = hangar_testbed::shared();
    let (client, namespace) = (bed.client(), bed.namespace("lease-many"));
    let leading = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..COUNT)
        .map(|number| {
            let candidate = candidate(&client, settings(&namespace, &format!("candidate-{number}")));
            let leading = leading.clone();
            tokio::spawn(async move {
                let held = acquired(&candidate).await;
                assert_eq!(leading.fetch_add(1, Ordering::SeqCst), 0, "two lead at once");
                tokio::time::sleep(Duration::from_millis(50)).await;
                assert_eq!(leading.fetch_sub(1, Ordering::SeqCst), 1, "two led at once");
                assert!(held.term().holds());
                held.release().await.expect("released");
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a turn");
    }
    assert_eq!(spec(&client, &namespace).await["leaseTransitions"], COUNT - 1);
}

#[tokio::test]
async fn a_stolen_lease_ends_the_term_and_what_runs_under_it() {
    let bed = hangar_testbed::shared();
    let (client, namespace) = (bed.client(), bed.namespace("lease-stolen"));
    let metrics = Metrics::new();
    let candidate = candidate(&client, settings(&namespace, "victim")).with_metrics(metrics.leader.clone());
    let held = acquired(&candidate).await;
    let standing = candidate.standing();
    assert!(standing.term().is_some());
    let term = held.term().clone();
    let running = tokio::spawn({
        let term = term.clone();
        async move { term.token().run_until_cancelled(std::future::pending::<()>()).await }
    });

    let api: Api<Lease> = Api::namespaced(client.clone(), &namespace);
    set(&api, json!({ "spec": { "holderIdentity": "thief" } })).await;
    lost(&term).await;
    assert!(!term.holds());
    assert_eq!(running.await.expect("no panic"), None);
    assert!(standing.term().is_none());
    assert_eq!((metrics.leader.leading.get(), metrics.leader.lost.get()), (0, 1));

    // Giving back what one does not have must not take it from the thief.
    held.release().await.expect("nothing to release");
    assert_eq!(spec(&client, &namespace).await["holderIdentity"], "thief");
}

#[tokio::test]
async fn a_touched_lease_stays_ours() {
    let bed = hangar_testbed::shared();
    let (client, namespace) = (bed.client(), bed.namespace("lease-touched"));
    let held = acquired(&candidate(&client, settings(&namespace, "holder"))).await;
    let api: Api<Lease> = Api::namespaced(client.clone(), &namespace);
    for count in 0..10 {
        // Each one makes the holder's next renewal conflict.
        set(&api, json!({ "metadata": { "labels": { "count": count.to_string() } } })).await;
        let before = spec(&client, &namespace).await["renewTime"].clone();
        while spec(&client, &namespace).await["renewTime"] == before {
            assert!(held.term().holds());
        }
    }
    assert_eq!(spec(&client, &namespace).await["leaseTransitions"], 0);
    let lease = api.get(NAME).await.expect("the lease");
    assert_eq!(lease.metadata.labels.expect("labels")["count"], "9", "renewals keep what others wrote");
    held.release().await.expect("released");
}

/// A client whose calls hang while the switch is on, as behind a broken network.
fn breakable(config: kube::Config) -> (Client, Arc<AtomicBool>) {
    let broken = Arc::new(AtomicBool::new(false));
    let layer = tower::util::MapFutureLayer::new({
        let broken = broken.clone();
        move |call| {
            let broken = broken.clone();
            Box::pin(async move {
                while broken.load(Ordering::SeqCst) {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                call.await
            })
        }
    });
    (ClientBuilder::try_from(config).expect("a builder").with_layer(&layer).build(), broken)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_cut_off_from_the_api_server_stops_before_anybody_else_starts() {
    let bed = hangar_testbed::shared();
    let (client, namespace) = (bed.client(), bed.namespace("lease-cut"));
    let (fragile, broken) = breakable(bed.config());
    let short = |identity| LeaseSettings {
        duration: Duration::from_secs(9),
        renew_deadline: Duration::from_secs(5),
        retry_period: Duration::from_millis(500),
        ..settings(&namespace, identity)
    };
    let first = acquired(&candidate(&fragile, short("cut-off"))).await;
    let term = first.term().clone();
    assert!(term.remaining() < Duration::from_secs(9), "a call may take as long as the lease");

    let second = tokio::spawn({
        let candidate = candidate(&client, short("next"));
        let term = term.clone();
        async move {
            let held = acquired(&candidate).await;
            (held, term.holds())
        }
    });
    broken.store(true, Ordering::SeqCst);
    let (second, first_still_led) = second.await.expect("acquired");
    assert!(!first_still_led, "two lead at once");
    assert_eq!(term.remaining(), Duration::ZERO);
    assert!(second.term().holds());

    // The network is back: the old holder must not take anything back.
    broken.store(false, Ordering::SeqCst);
    first.release().await.expect("nothing to release");
    assert_eq!(spec(&client, &namespace).await["holderIdentity"], "next");
    second.release().await.expect("released");
}

#[tokio::test]
async fn contradictory_settings_are_refused() {
    let client = hangar_testbed::shared().client();
    let good = settings("default", "somebody");
    let bad = [
        LeaseSettings { identity: String::new(), ..good.clone() },
        LeaseSettings { duration: Duration::from_millis(1500), ..good.clone() },
        LeaseSettings { renew_deadline: good.duration, ..good.clone() },
        LeaseSettings { retry_period: good.renew_deadline, ..good.clone() },
    ];
    for settings in bad {
        let refusal = Candidate::new(client.clone(), settings.clone()).expect_err("refused");
        assert!(matches!(refusal, hangar_kit::lease::Error::Settings(_)), "{settings:?}: {refusal}");
    }
    assert!(Candidate::new(client, good).is_ok());
}
