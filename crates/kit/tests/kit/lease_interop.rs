//! A lease shared with a program of Kubernetes itself, which elects by client-go.

#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

use std::path::Path;
use std::time::Duration;

use hangar_kit::lease::{Candidate, LeaseSettings};
use hangar_parts::{Parts, Process, ProcessSpec, Set};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Api;
use tokio_util::sync::CancellationToken;

const NAME: &str = "shared";
const US: &str = "hangar_interop";

/// Long enough for a busy machine to renew in time: it changes hands because it is given back.
const DURATION: Duration = Duration::from_mins(1);
const RENEW_DEADLINE: Duration = Duration::from_secs(40);

/// Nothing here takes this long; it only keeps a broken test from hanging.
const PATIENCE: Duration = Duration::from_mins(3);

/// Starts a scheduler that competes for the lease.
fn scheduler(directory: &Path, namespace: &str) -> Process {
    let parts = Parts::from_env().expect("the environment");
    let programs = [(Set::Kubernetes134, "kube-scheduler")];
    parts.ensure_programs(&programs).expect("the scheduler");
    let program = parts.program(Set::Kubernetes134, "kube-scheduler").expect("the scheduler");
    ProcessSpec::new("kube-scheduler", program, directory.join("scheduler.log"))
        .arguments([
            format!("--kubeconfig={}", hangar_testbed::shared().kubeconfig().display()),
            "--secure-port=0".to_owned(),
            "--leader-elect=true".to_owned(),
            "--leader-elect-retry-period=500ms".to_owned(),
            format!("--leader-elect-renew-deadline={}s", RENEW_DEADLINE.as_secs()),
            format!("--leader-elect-lease-duration={}s", DURATION.as_secs()),
            format!("--leader-elect-resource-namespace={namespace}"),
            format!("--leader-elect-resource-name={NAME}"),
        ])
        .start()
        .expect("started")
}

/// Asks for the lease until it is as wanted.
async fn lease_that(api: &Api<Lease>, what: &str, wanted: impl Fn(&LeaseSpec) -> bool) -> LeaseSpec {
    let search = async {
        loop {
            let lease = api.get_opt(NAME).await.expect("an answer");
            if let Some(spec) = lease.and_then(|lease| lease.spec).filter(|spec| wanted(spec)) {
                return spec;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, search).await.unwrap_or_else(|_| panic!("never: {what}"))
}

/// Waits for three renewals, and checks that nobody else got it in between.
async fn keeps(api: &Api<Lease>, holder: &str) {
    let mut last = None;
    for _ in 0..4 {
        let spec = lease_that(api, "a renewal", |spec| spec.renew_time != last).await;
        assert_eq!(spec.holder_identity.as_deref(), Some(holder));
        last = spec.renew_time;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lease_goes_back_and_forth_between_client_go_and_us() {
    let bed = hangar_testbed::shared();
    let (client, namespace) = (bed.client(), bed.namespace("lease-interop"));
    let directory = tempfile::tempdir().expect("a directory");
    let api: Api<Lease> = Api::namespaced(client.clone(), &namespace);
    let settings = LeaseSettings {
        duration: DURATION,
        renew_deadline: RENEW_DEADLINE,
        retry_period: Duration::from_millis(500),
        ..LeaseSettings::new(&namespace, NAME, US)
    };
    let candidate = Candidate::new(client.clone(), settings).expect("settings");

    let mut theirs = scheduler(directory.path(), &namespace);
    let first = lease_that(&api, "the scheduler leads", |spec| spec.holder_identity.is_some()).await;
    let holder = first.holder_identity.clone().expect("a holder");
    let stop = CancellationToken::new();
    let waiting = tokio::spawn({
        let (candidate, stop) = (candidate.clone(), stop.clone());
        async move { candidate.acquire(&stop).await }
    });
    keeps(&api, &holder).await;

    theirs.stop(Duration::from_secs(30)).expect("stopped");
    let held = tokio::time::timeout(PATIENCE, waiting)
        .await
        .expect("acquired in time")
        .expect("no panic")
        .expect("not stopped");
    let ours = lease_that(&api, "we lead", |spec| spec.holder_identity.as_deref() == Some(US)).await;
    let keys = |spec: &LeaseSpec| -> Vec<String> {
        let value = serde_json::to_value(spec).expect("a value");
        value.as_object().expect("an object").keys().cloned().collect()
    };
    assert_eq!(keys(&ours), keys(&first), "the same fields");
    assert_eq!(ours.lease_transitions, first.lease_transitions.map(|count| count + 1));
    assert_eq!(ours.lease_duration_seconds, first.lease_duration_seconds);

    let mut theirs = scheduler(directory.path(), &namespace);
    keeps(&api, US).await;
    assert!(held.term().holds());
    held.release().await.expect("released");
    let back = lease_that(&api, "the scheduler leads again", |spec| {
        spec.holder_identity.as_deref().is_some_and(|holder| holder != US)
    })
    .await;
    assert_eq!(back.lease_transitions, ours.lease_transitions.map(|count| count + 1));
    theirs.stop(Duration::from_secs(30)).expect("stopped");
}
