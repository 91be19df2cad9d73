//! Tests of finalizers and events.

use hangar_kit::{
    Error,
    event::{Event, Recorder, Severity},
    finalizer,
};
use k8s_openapi::api::{core::v1::ConfigMap, events::v1::Event as EventObject};
use kube::{
    Api, Resource as _,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::json;

use crate::world::{config_map, create, eventually, namespace};

#[tokio::test]
async fn finalizers_are_added_and_removed_beside_those_of_others() {
    let (namespace, client, log) = namespace("finalizer");
    let api: Api<ConfigMap> = Api::namespaced(client, &namespace);
    let ours = "hangar.cluster.x-k8s.io/test";
    let bare = create(&api, &config_map("a", "")).await;
    let added = finalizer::add(&api, &bare, ours).await.unwrap().unwrap();
    assert!(finalizer::has(&added, ours));
    log.take();
    assert!(finalizer::add(&api, &added, ours).await.unwrap().is_none() && log.take().is_empty());

    let patch = Patch::Merge(json!({"metadata": {"finalizers": ["example.com/theirs", ours]}}));
    let both = api.patch("a", &PatchParams::default(), &patch).await.unwrap();
    // Computed from the old list, this would remove the wrong one.
    let stale = finalizer::remove(&api, &added, ours).await;
    assert!(matches!(stale, Err(Error::Stale { .. })), "{stale:?}");

    api.delete("a", &DeleteParams::default()).await.unwrap();
    let deleting = api.get("a").await.unwrap();
    assert!(finalizer::add(&api, &deleting, "example.com/late").await.unwrap().is_none());
    assert_ne!(deleting.metadata.resource_version, both.metadata.resource_version);
    let left = finalizer::remove(&api, &deleting, ours).await.unwrap().unwrap();
    assert_eq!(left.metadata.finalizers.as_deref(), Some(&["example.com/theirs".to_owned()][..]));
    finalizer::remove(&api, &left, "example.com/theirs").await.unwrap();
    eventually("it is gone", async || api.get_opt("a").await.unwrap().is_none()).await;
    assert!(finalizer::remove(&api, &left, "example.com/theirs").await.unwrap().is_none());
}

#[tokio::test]
async fn repeated_events_are_one_series() {
    let (namespace, client, log) = namespace("events");
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    let about = create(&api, &config_map("a", "")).await.object_ref(&());
    let recorder = Recorder::new(client.clone(), "kit-test", "pod-0");
    let event = |reason, note: &str| Event {
        severity: Severity::Warning,
        reason,
        action: "Reconciling",
        note: note.to_owned(),
    };
    log.take();
    for number in 0..50 {
        recorder.record(&about, &event("QuotaExceeded", &format!("attempt {number}"))).await;
    }
    let calls = log.calls();
    assert_eq!(calls.len(), 2, "the first and the one that opens the series: {:?}", &calls[..3]);
    assert!(recorder.record(&about, &event("SomethingElse", &"x".repeat(5000))).await);

    let events: Api<EventObject> = Api::namespaced(client, &namespace);
    let mut found = events.list(&ListParams::default()).await.unwrap().items;
    found.sort_by(|one, two| one.reason.cmp(&two.reason));
    let reasons: Vec<_> = found.iter().map(|event| event.reason.as_deref().unwrap()).collect();
    assert_eq!(reasons, ["QuotaExceeded", "SomethingElse"]);
    assert_eq!(found[0].series.as_ref().unwrap().count, 2);
    assert_eq!(found[0].regarding.as_ref().unwrap().name.as_deref(), Some("a"));

    // Its series expired on the server: the next one starts afresh instead of failing for ever.
    events.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    let fresh = Recorder::new(recorder_client(), "kit-test", "pod-0");
    assert!(fresh.record(&about, &event("Expired", "1")).await);
    events.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    assert!(!fresh.record(&about, &event("Expired", "2")).await);
    assert!(fresh.record(&about, &event("Expired", "3")).await);
}

fn recorder_client() -> kube::Client {
    hangar_testbed::shared().client()
}
