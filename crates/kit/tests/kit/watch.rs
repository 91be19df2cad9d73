//! The fan-out: every difference reaches every subscriber, whatever happens to the connection.

use std::{collections::BTreeSet, time::Duration};

use hangar_kit::{
    ObjectKey,
    client::{ClientOptions, client},
    queue::WorkQueue,
    watch::{Change, Watch, WatchBuilder},
};
use hangar_plan::flow::Read;
use hangar_testbed::{Options, Testbed, shared};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Secret},
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::PartialObjectMeta,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::world::{Link, config_map, create, eventually, labelled, namespace, owned};

const LABEL: &str = "cluster.x-k8s.io/cluster-name";

fn value(map: ConfigMap) -> String {
    map.data.unwrap_or_default().remove("value").unwrap_or_default()
}

/// The name and value of everything seen; panics when unknown.
fn contents<K: kube::Resource + 'static>(watch: &Watch<K, String>) -> Vec<(String, String)> {
    let all = watch.all().known().unwrap();
    all.iter().map(|kept| (kept.key.name.clone(), kept.value.clone())).collect()
}

/// A queue that is told of every change.
fn changes<K: kube::Resource + 'static>(watch: &Watch<K, String>) -> WorkQueue<ObjectKey> {
    let queue = WorkQueue::default();
    watch.feed(&queue, Change::itself);
    queue
}

/// The names of what changed since the last call; waits for at least one.
async fn next(queue: &WorkQueue<ObjectKey>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    while names.is_empty() || queue.depth() > 0 {
        let key = queue.next().await;
        queue.done(&key);
        names.insert(key.name);
    }
    names
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[tokio::test]
async fn applies_and_deletes_are_seen_by_label_and_name() {
    let (namespace, client, _) = namespace("watch");
    let api: Api<ConfigMap> = Api::namespaced(client, &namespace);
    let stop = CancellationToken::new();
    let builder = WatchBuilder::new("configmaps", api.clone()).labels(LABEL).index_label(LABEL);
    let watch = builder.project(&stop, value);
    assert!(watch.all().is_unknown());
    let changes = changes(&watch);
    watch.synced().await;
    assert!(watch.all().is_absent());

    let root = create(&api, &config_map("unlabelled", "0")).await;
    create(&api, &owned(labelled(config_map("a", "1"), &[(LABEL, "blue")]), &root)).await;
    create(&api, &labelled(config_map("b", "2"), &[(LABEL, "green")])).await;
    eventually("both are seen", async || contents(&watch) == pairs(&[("a", "1"), ("b", "2")])).await;
    let blue = ObjectKey::namespaced(&namespace, "blue");
    assert!(matches!(watch.by_label(LABEL, &blue), Read::One(kept) if kept.key.name == "a"));
    while !next(&changes).await.contains("b") {}

    api.delete("b", &DeleteParams::default()).await.unwrap();
    assert_eq!(next(&changes).await.into_iter().collect::<Vec<_>>(), ["b"]);
    assert_eq!(contents(&watch), pairs(&[("a", "1")]));
    stop.cancel();
}

#[tokio::test]
async fn a_write_is_read_back_before_the_watch_has_it() {
    let (namespace, client, _) = namespace("overlay");
    let link = Link::to(shared().api_port()).await;
    let far = hangar_kit::client::client(link.through(shared().config()), &ClientOptions::default()).unwrap();
    let stop = CancellationToken::new();
    let builder = WatchBuilder::new("configmaps", Api::namespaced(far, &namespace));
    let watch = builder.stale_after(Duration::from_hours(1)).project(&stop, value);
    watch.synced().await;
    // The watch hears nothing now, and what it has is not stale yet.
    link.cut();
    let api: Api<ConfigMap> = Api::namespaced(client, &namespace);
    watch.written(create(&api, &config_map("a", "1")).await);
    let patch = Patch::Merge(json!({"data": {"value": "2"}}));
    watch.written(api.patch("a", &PatchParams::default(), &patch).await.unwrap());
    assert_eq!(contents(&watch), pairs(&[("a", "2")]));

    api.patch("a", &PatchParams::default(), &Patch::Merge(json!({"data": {"value": "3"}}))).await.unwrap();
    link.mend();
    eventually("the watch catches up", async || contents(&watch) == pairs(&[("a", "3")])).await;
    stop.cancel();
}

#[tokio::test]
async fn what_vanished_while_the_connection_was_cut_is_a_change() {
    let (namespace, client, _) = namespace("vanish");
    let api: Api<ConfigMap> = Api::namespaced(client, &namespace);
    for name in ["stays", "changes", "goes"] {
        create(&api, &config_map(name, "1")).await;
    }
    let link = Link::to(shared().api_port()).await;
    let far = hangar_kit::client::client(link.through(shared().config()), &ClientOptions::default()).unwrap();
    let stop = CancellationToken::new();
    let builder = WatchBuilder::new("configmaps", Api::namespaced(far, &namespace));
    let watch = builder.stale_after(Duration::ZERO).project(&stop, value);
    watch.synced().await;
    let changes = changes(&watch);
    next(&changes).await;

    link.cut();
    eventually("the break is noticed", async || watch.all().is_unknown()).await;
    api.delete("goes", &DeleteParams::default()).await.unwrap();
    api.patch("changes", &PatchParams::default(), &Patch::Merge(json!({"data": {"value": "2"}})))
        .await
        .unwrap();
    create(&api, &config_map("comes", "1")).await;
    link.mend();

    eventually("reads are known again", async || !watch.all().is_unknown()).await;
    assert_eq!(contents(&watch), pairs(&[("changes", "2"), ("comes", "1"), ("stays", "1")]));
    assert_eq!(next(&changes).await.into_iter().collect::<Vec<_>>(), ["changes", "comes", "goes"]);
    let stats = watch.stats();
    assert_eq!((stats.vanished, stats.objects), (1, 3));
    assert!(stats.errors > 0 && stats.lists == 2, "{stats:?}");
    stop.cancel();
}

#[tokio::test]
async fn a_restart_of_the_api_server_is_survived() {
    let bed = Testbed::start(Options::default()).unwrap();
    let namespace = bed.namespace("restart");
    let client = client(bed.config(), &ClientOptions::default()).unwrap();
    let api: Api<ConfigMap> = Api::namespaced(client, &namespace);
    create(&api, &config_map("before", "1")).await;
    let stop = CancellationToken::new();
    let builder = WatchBuilder::new("configmaps", api.clone()).stale_after(Duration::ZERO);
    let watch = builder.project(&stop, value);
    watch.synced().await;

    bed.stop_api_server().unwrap();
    eventually("reads become unknown", async || watch.all().is_unknown()).await;
    let why = watch.freshness().unwrap_err().why;
    assert!(why.starts_with("configmaps: watch broken:"), "{why}");
    bed.start_api_server().unwrap();
    create(&api, &config_map("after", "1")).await;
    let both = pairs(&[("after", "1"), ("before", "1")]);
    eventually("the watch works again", async || !watch.all().is_unknown() && contents(&watch) == both).await;
    stop.cancel();
}

#[tokio::test]
async fn a_subscriber_that_does_not_look_holds_up_nobody() {
    let (namespace, client, _) = namespace("slow");
    let api: Api<ConfigMap> = Api::namespaced(client, &namespace);
    let stop = CancellationToken::new();
    let watch = WatchBuilder::new("configmaps", api.clone()).project(&stop, value);
    let (slow, quick) = (changes(&watch), changes(&watch));
    watch.synced().await;
    create(&api, &config_map("a", "0")).await;
    for number in 1..=40 {
        let patch = Patch::Merge(json!({"data": {"value": number.to_string()}}));
        api.patch("a", &PatchParams::default(), &patch).await.unwrap();
    }
    while contents(&watch) != pairs(&[("a", "40")]) {
        next(&quick).await;
    }
    assert_eq!(slow.depth(), 1);
    stop.cancel();
}

#[tokio::test]
async fn kinds_without_types_and_metadata_alone_can_be_watched() {
    let (namespace, client, log) = namespace("kinds");
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    create(&maps, &config_map("a", "1")).await;
    let mut secret = Secret { metadata: config_map("s", "").metadata, ..Secret::default() };
    secret.string_data = Some([("key".to_owned(), "hush".to_owned())].into());
    secret.metadata.annotations = Some([("hash".to_owned(), "x".to_owned())].into());
    Api::<Secret>::namespaced(client.clone(), &namespace)
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();

    let stop = CancellationToken::new();
    let resource = ApiResource::erase::<ConfigMap>(&());
    let dynamic: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &resource);
    let dynamic = WatchBuilder::new("configmaps", dynamic).start(&stop);
    let metadata: Api<PartialObjectMeta<Secret>> = Api::namespaced(client, &namespace);
    let metadata = WatchBuilder::new("secrets", metadata).start(&stop);
    dynamic.synced().await;
    metadata.synced().await;
    let Read::One(kept) = dynamic.get(&ObjectKey::namespaced(&namespace, "a")) else { panic!("not one") };
    assert_eq!(kept.data["data"]["value"], "1");
    assert_eq!(kept.metadata.managed_fields, None);
    let Read::One(kept) = metadata.get(&ObjectKey::namespaced(&namespace, "s")) else { panic!("not one") };
    assert_eq!(kept.metadata.annotations.as_ref().unwrap()["hash"], "x");
    assert!(!serde_json::to_string(&**kept).unwrap().contains("hush"));
    assert!(log.counts().contains_key("list secrets"));
    stop.cancel();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_projection_that_panics_makes_reads_unknown_until_it_no_longer_does() {
    let (namespace, client, _) = namespace("panic");
    let api: Api<ConfigMap> = Api::namespaced(client, &namespace);
    create(&api, &config_map("fine", "1")).await;
    let stop = CancellationToken::new();
    let builder = WatchBuilder::new("configmaps", api.clone()).stale_after(Duration::ZERO);
    let watch = builder.project(&stop, |map| {
        let value = value(map);
        assert_ne!(value, "bomb", "on purpose");
        value
    });
    watch.synced().await;
    create(&api, &config_map("armed", "bomb")).await;
    eventually("the panic is noticed", async || watch.all().is_unknown()).await;
    let why = watch.freshness().unwrap_err().why;
    assert!(why.ends_with("a projection panicked"), "{why}");
    // It starts over, and fails again, for as long as the object is like that.
    eventually("it tries again", async || watch.stats().errors >= 3).await;
    create(&api, &config_map("later", "1")).await;
    api.patch("armed", &PatchParams::default(), &Patch::Merge(json!({"data": {"value": "safe"}})))
        .await
        .unwrap();
    let healed = pairs(&[("armed", "safe"), ("fine", "1"), ("later", "1")]);
    eventually("it works again", async || !watch.all().is_unknown() && contents(&watch) == healed).await;
    api.delete("later", &DeleteParams::default()).await.unwrap();
    let rest = pairs(&[("armed", "safe"), ("fine", "1")]);
    eventually("and follows", async || contents(&watch) == rest).await;
    stop.cancel();
}

#[tokio::test]
async fn a_watch_that_only_lists_backs_off() {
    let (namespace, admin, _) = namespace("list-only");
    let role: Role = serde_json::from_value(json!({
        "metadata": { "name": "list-only" },
        "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"] }],
    }))
    .unwrap();
    let binding: RoleBinding = serde_json::from_value(json!({
        "metadata": { "name": "list-only" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "list-only" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "lister" }],
    }))
    .unwrap();
    Api::namespaced(admin.clone(), &namespace).create(&PostParams::default(), &role).await.unwrap();
    Api::namespaced(admin, &namespace).create(&PostParams::default(), &binding).await.unwrap();
    let lister = client(shared().config_for("lister", &[]), &ClientOptions::default()).unwrap();
    let stop = CancellationToken::new();
    let maps: Api<ConfigMap> = Api::namespaced(lister, &namespace);
    // Before the first list: this task may be late to hear of it, and a delay is under way by then.
    let since = tokio::time::Instant::now();
    let watch = WatchBuilder::new("configmaps", maps).project(&stop, value);
    watch.synced().await;
    let lists = watch.stats().lists;
    eventually("five lists", async || watch.stats().lists >= lists + 5).await;
    // The least that growing delays add up to: 0.2, 0.4, 0.8, 1.6 and 3.2 s, less a fifth. Equal ones are 1 s in all.
    assert!(since.elapsed() >= Duration::from_millis(4_960), "five lists within {:?}", since.elapsed());
    assert!(watch.stats().errors >= 5);
    stop.cancel();
}
