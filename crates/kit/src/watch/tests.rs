//! Tests the store's rules, event by event. The integration tests do so with a real API server.

use futures::FutureExt as _;
use hangar_api::cluster::v1beta2::Cluster;
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::runtime::watcher::Event;

use super::place::Driven;
use super::*;

const LABEL: &str = "cluster.x-k8s.io/cluster-name";

fn watch() -> Driven<ConfigMap, String> {
    watch_over(&[None], None).at(0)
}

fn watch_over(places: &[Option<&str>], limit: Option<usize>) -> Watch<ConfigMap, String> {
    let shared = Shared {
        name: "configmaps".to_owned(),
        indexed_labels: vec![LABEL.to_owned()],
        stale_after: STALE_AFTER,
        limit,
        places: places.iter().map(|namespace| Place::new(*namespace)).collect(),
        share: None,
        sinks: Mutex::new(Vec::new()),
        synced: channel::Sender::new(false),
        hurry: Notify::new(),
    };
    let project = |map: ConfigMap| map.data.unwrap_or_default().remove("v").unwrap_or_default();
    Watch { shared: Arc::new(shared), project: Arc::new(project), named: None }
}

/// A config map of one owner and cluster whose content is its version.
fn map(name: &str, uid: &str, version: u64) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.namespace = Some("ns".to_owned());
    map.metadata.name = Some(name.to_owned());
    map.metadata.uid = Some(uid.to_owned());
    map.metadata.resource_version = Some(version.to_string());
    map.metadata.labels = Some([(LABEL.to_owned(), "blue".to_owned())].into());
    map.metadata.owner_references = Some(vec![OwnerReference {
        api_version: "cluster.x-k8s.io/v1beta2".to_owned(),
        kind: "Cluster".to_owned(),
        name: "blue".to_owned(),
        uid: "owner".to_owned(),
        controller: Some(true),
        ..OwnerReference::default()
    }]);
    map.data = Some([("v".to_owned(), version.to_string())].into());
    map
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("ns", name)
}

fn list(watch: &Driven<ConfigMap, String>, objects: impl IntoIterator<Item = ConfigMap>) {
    watch.handle(Event::Init);
    for object in objects {
        watch.handle(Event::InitApply(Item::Readable(object)));
    }
    watch.handle(Event::InitDone);
}

fn value(watch: &Watch<ConfigMap, String>, name: &str) -> Option<String> {
    match watch.get(&key(name)) {
        Read::One(kept) => Some(kept.value.clone()),
        Read::Absent => None,
        other => panic!("{other:?}"),
    }
}

fn changes(watch: &Watch<ConfigMap, String>) -> WorkQueue<ObjectKey> {
    let queue = WorkQueue::default();
    watch.feed(&queue, Change::itself);
    queue
}

/// The names of what changed since the last call, in order.
fn drained(queue: &WorkQueue<ObjectKey>) -> Vec<String> {
    let mut names = Vec::new();
    while let Some(key) = queue.next().now_or_never() {
        queue.done(&key);
        names.push(key.name);
    }
    names.sort();
    names
}

#[tokio::test]
async fn reads_are_unknown_until_the_first_list_is_complete() {
    let watch = watch();
    let seen = changes(&watch);
    watch.handle(Event::Init);
    watch.handle(Event::InitApply(Item::Readable(map("a", "1", 1))));
    assert!(watch.get(&key("a")).is_unknown() && watch.all().is_unknown() && !watch.is_synced());
    watch.handle(Event::InitDone);
    assert_eq!(value(&watch, "a"), Some("1".to_owned()));
    assert!(watch.get(&key("b")).is_absent() && watch.is_synced());
    assert_eq!(drained(&seen), ["a"]);
}

#[tokio::test]
async fn a_list_reports_what_is_new_changed_and_vanished_and_nothing_else() {
    let watch = watch();
    list(&watch, [map("same", "1", 1), map("changed", "2", 2), map("gone", "3", 3)]);
    let seen = changes(&watch);
    assert_eq!(drained(&seen), ["changed", "gone", "same"]);
    list(&watch, [map("same", "1", 1), map("changed", "2", 9), map("new", "4", 8)]);
    assert_eq!(drained(&seen), ["changed", "gone", "new"]);
    assert!(watch.get(&key("gone")).is_absent());
    assert_eq!((watch.stats().vanished, watch.stats().lists), (1, 2));
}

#[tokio::test]
async fn indexes_follow_every_change() {
    let watch = watch();
    list(&watch, [map("a", "1", 1), map("b", "2", 2)]);
    let names = |read: Read<Arc<Kept<String>>>| {
        read.known().unwrap().iter().map(|kept| kept.key.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(watch.by_label(LABEL, &key("blue"))), ["a", "b"]);
    let mut moved = map("a", "1", 5);
    moved.metadata.labels = Some([(LABEL.to_owned(), "green".to_owned())].into());
    watch.handle(Event::Apply(Item::Readable(moved)));
    watch.handle(Event::Delete(Item::Readable(map("b", "2", 6))));
    assert!(watch.by_label(LABEL, &key("blue")).is_absent());
    assert_eq!(names(watch.by_label(LABEL, &key("green"))), ["a"]);
    assert!(watch.by_label("other", &key("x")).is_unknown());
}

#[tokio::test]
async fn a_write_is_visible_at_once_and_older_events_do_not_undo_it() {
    let watch = watch();
    list(&watch, [map("a", "1", 1)]);
    watch.written(map("a", "1", 7));
    watch.handle(Event::Apply(Item::Readable(map("a", "1", 5))));
    assert_eq!(value(&watch, "a"), Some("7".to_owned()));
    let seen = changes(&watch);
    drained(&seen);
    watch.handle(Event::Apply(Item::Readable(map("a", "1", 7))));
    assert_eq!(drained(&seen), Vec::<String>::new());
    watch.handle(Event::Apply(Item::Readable(map("a", "1", 8))));
    assert_eq!(value(&watch, "a"), Some("8".to_owned()));
    watch.written(map("a", "1", 7));
    assert_eq!(value(&watch, "a"), Some("8".to_owned()));
}

#[tokio::test]
async fn a_created_object_survives_a_list_that_began_before_and_not_one_that_began_after() {
    let watch = watch();
    list(&watch, []);
    watch.handle(Event::Init);
    watch.written(map("a", "1", 7));
    watch.handle(Event::InitDone);
    assert_eq!(value(&watch, "a"), Some("7".to_owned()));
    list(&watch, []);
    assert_eq!(value(&watch, "a"), None);
}

#[tokio::test]
async fn a_removed_object_stays_hidden_and_its_successor_does_not() {
    let watch = watch();
    list(&watch, [map("a", "1", 1)]);
    watch.removed(&key("a"), "1");
    watch.handle(Event::Apply(Item::Readable(map("a", "1", 2))));
    assert_eq!(value(&watch, "a"), None);
    watch.handle(Event::Apply(Item::Readable(map("a", "2", 9))));
    watch.handle(Event::Delete(Item::Readable(map("a", "1", 8))));
    assert_eq!(value(&watch, "a"), Some("9".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_makes_reads_unknown_after_a_while_and_a_list_heals() {
    let watch = watch();
    list(&watch, [map("a", "1", 1)]);
    let broke = || watch.place().write().broke(Instant::now(), "refused".to_owned());
    broke();
    tokio::time::advance(Duration::from_secs(9)).await;
    broke();
    assert!(watch.freshness().is_ok());
    tokio::time::advance(Duration::from_secs(2)).await;
    let why = watch.freshness().unwrap_err().why;
    assert_eq!(why, "configmaps: watch broken: refused");
    list(&watch, [map("a", "1", 1)]);
    assert!(watch.freshness().is_ok());
}

#[tokio::test]
async fn a_change_names_the_owners_of_both_sides() {
    let watch = watch();
    let queue = WorkQueue::default();
    watch.feed(&queue, Change::controllers::<Cluster>);
    list(&watch, [map("a", "1", 1)]);
    assert_eq!(queue.next().await, key("blue"));
    queue.done(&key("blue"));
    let mut adopted = map("a", "1", 2);
    adopted.metadata.owner_references.as_mut().unwrap()[0].name = "green".to_owned();
    watch.handle(Event::Apply(Item::Readable(adopted)));
    assert_eq!((queue.next().await, queue.next().await), (key("blue"), key("green")));
}

#[tokio::test]
async fn a_subscriber_that_never_looks_costs_its_distinct_keys() {
    let watch = watch();
    let slow = changes(&watch);
    list(&watch, []);
    for version in 1..=1000 {
        watch.handle(Event::Apply(Item::Readable(map("a", "1", version))));
    }
    assert_eq!(slow.depth(), 1);
}

#[tokio::test]
async fn an_answer_that_comes_after_the_deletion_leaves_no_ghost() {
    let watch = watch();
    list(&watch, [map("b", "9", 1)]);
    // Its last finalizer was removed: the watch has told the end before the answer is handed in.
    watch.handle(Event::Apply(Item::Readable(map("a", "1", 5))));
    watch.handle(Event::Delete(Item::Readable(map("a", "1", 7))));
    watch.written(map("a", "1", 6));
    assert_eq!(value(&watch, "a"), None);
    // What is newer than all that was seen is still shown at once.
    watch.written(map("a", "2", 8));
    assert_eq!(value(&watch, "a"), Some("8".to_owned()));
}

#[tokio::test]
async fn a_list_that_is_newer_than_a_write_ends_it() {
    let watch = watch();
    list(&watch, []);
    watch.handle(Event::Init);
    // Written at 5, deleted by somebody at 6, and the list is from 7 or later.
    watch.written(map("a", "1", 5));
    watch.handle(Event::InitApply(Item::Readable(map("b", "2", 7))));
    watch.handle(Event::InitDone);
    assert_eq!(value(&watch, "a"), None);
}

#[tokio::test]
async fn versions_that_begin_lower_again_do_not_blind_us() {
    let watch = watch();
    list(&watch, [map("a", "1", 900)]);
    list(&watch, [map("a", "1", 10)]);
    watch.written(map("a", "1", 12));
    assert_eq!(value(&watch, "a"), Some("12".to_owned()));
}

#[tokio::test]
async fn a_mapper_that_panics_keeps_nothing_from_the_others() {
    let watch = watch();
    let (panics, after) = (WorkQueue::default(), WorkQueue::default());
    watch.feed(&panics, |change| {
        assert_ne!(change.key.name, "bomb", "on purpose");
        change.itself()
    });
    watch.feed(&after, Change::itself);
    list(&watch, [map("bomb", "1", 1), map("fine", "2", 2)]);
    assert!(watch.is_synced());
    assert_eq!((after.next().await, after.next().await), (key("bomb"), key("fine")));
    assert_eq!((panics.next().await, panics.depth()), (key("fine"), 0));
}

#[tokio::test]
async fn a_bounded_watch_says_what_is_too_much() {
    let watch = watch_over(&[None], Some(2)).at(0);
    list(&watch, [map("a", "1", 1), map("b", "2", 2)]);
    assert_eq!(watch.excess(&Event::InitApply(Item::Readable(map("b", "2", 2))), 2), None);
    assert_eq!(watch.excess(&Event::Apply(Item::Readable(map("a", "1", 3))), 2), None);
    let too_many = Some("the watch has more than 2 objects".to_owned());
    assert_eq!(watch.excess(&Event::InitApply(Item::Readable(map("b", "2", 2))), 3), too_many);
    assert_eq!(watch.excess(&Event::Apply(Item::Readable(map("c", "3", 3))), 2), too_many);
    assert!(watch.excess(&Event::Apply(Item::Readable(map("a", &"u".repeat(300), 3))), 2).is_some());
    // Owners are not kept: there may be any number of them.
    assert!(watch.all().iter().all(|kept| kept.owners.is_empty()));
}

fn odd(name: &str, uid: &str, version: u64) -> Item<ConfigMap> {
    let why = "data: invalid".to_owned();
    Item::Unreadable(Box::new(Unreadable {
        metadata: map(name, uid, version).metadata,
        why,
        ..Unreadable::default()
    }))
}

#[tokio::test]
async fn an_object_that_cannot_be_read_is_unknown_and_matters_to_its_own_alone() {
    let watch = watch();
    watch.handle(Event::Init);
    watch.handle(Event::InitApply(odd("odd", "1", 1)));
    let mut other = map("other", "2", 2);
    other.metadata.labels = Some([(LABEL.to_owned(), "green".to_owned())].into());
    watch.handle(Event::InitApply(Item::Readable(other)));
    let mut far = map("far", "3", 3);
    far.metadata.namespace = Some("far".to_owned());
    watch.handle(Event::InitApply(Item::Readable(far)));
    watch.handle(Event::InitDone);

    assert!(watch.is_synced());
    assert!(
        matches!(watch.get(&key("odd")), Read::Unknown(unknown) if unknown.why == "ns/odd: data: invalid")
    );
    assert!(watch.by_label(LABEL, &key("blue")).is_unknown());
    assert_eq!(watch.keys_by_label(LABEL, &key("blue")), [key("odd")]);
    assert_eq!(value(&watch, "other"), Some("2".to_owned()));
    assert!(matches!(watch.by_label(LABEL, &key("green")), Read::One(_)));
    assert!(matches!(watch.by_label(LABEL, &ObjectKey::namespaced("far", "blue")), Read::One(_)));
    let near = Some("ns".to_owned());
    assert!(watch.in_namespace(&near, |_| true).is_unknown());
    assert!(matches!(watch.in_namespace(&near, |odd| odd.labels[LABEL] == "green"), Read::One(_)));
    assert!(matches!(watch.in_namespace(&Some("far".to_owned()), |_| true), Read::One(_)));
    assert_eq!((watch.all().iter().count(), watch.unreadable().len()), (2, 1));
    assert_eq!((watch.stats().objects, watch.stats().unreadable), (3, 1));
}

#[tokio::test]
async fn becoming_unreadable_readable_and_gone_wakes_itself_and_its_owner() {
    let watch = watch();
    list(&watch, [map("a", "1", 1)]);
    let (own, owners) = (changes(&watch), WorkQueue::default());
    watch.feed(&owners, Change::controllers::<Cluster>);
    let woken = || (drained(&own), drained(&owners));
    let both = (vec!["a".to_owned()], vec!["blue".to_owned()]);
    assert_eq!(woken(), both);
    watch.handle(Event::Apply(odd("a", "1", 2)));
    assert_eq!((woken(), watch.get(&key("a")).is_unknown()), (both.clone(), true));
    watch.handle(Event::Apply(odd("a", "1", 3)));
    assert_eq!(woken(), both);
    watch.handle(Event::Apply(Item::Readable(map("a", "1", 4))));
    assert_eq!((woken(), value(&watch, "a")), (both.clone(), Some("4".to_owned())));
    watch.handle(Event::Apply(odd("a", "1", 5)));
    woken();
    watch.handle(Event::Delete(odd("a", "1", 6)));
    assert_eq!((woken(), watch.get(&key("a")).is_absent(), watch.unreadable().len()), (both, true, 0));
}

fn at(namespace: &str, name: &str, version: u64) -> ConfigMap {
    let mut map = map(name, name, version);
    map.metadata.namespace = Some(namespace.to_owned());
    map
}

#[tokio::test]
async fn a_namespace_that_cannot_be_read_is_unknown_alone() {
    let watch = watch_over(&[Some("a"), Some("b")], None);
    let (a, b) = (watch.at(0), watch.at(1));
    let seen = changes(&watch);
    list(&a, [at("a", "one", 5)]);
    assert!(!watch.is_synced(), "the other may still come");
    b.broke_because("forbidden".to_owned());
    assert!(watch.is_synced());
    let key = ObjectKey::namespaced;
    assert!(matches!(watch.get(&key("a", "one")), Read::One(_)) && watch.get(&key("a", "two")).is_absent());
    assert!(
        watch.get(&key("b", "one")).is_unknown() && watch.by_label(LABEL, &key("b", "blue")).is_unknown()
    );
    assert!(matches!(watch.all(), Read::One(_)) && watch.freshness().is_err());
    // A list of one namespace says nothing about the other, and neither does its version about a write there.
    list(&b, [at("b", "one", 9)]);
    watch.written(at("a", "two", 7));
    list(&b, []);
    assert_eq!(drained(&seen), ["one", "one", "two"], "one in each");
    assert!(watch.get(&key("b", "one")).is_absent() && watch.freshness().is_ok());
    assert_eq!((watch.all().iter().count(), watch.stats().objects, watch.stats().lists), (2, 2, 3));
}

#[tokio::test]
async fn an_object_of_another_namespace_is_not_ours() {
    let watch = watch_over(&[Some("a")], None);
    list(&watch.at(0), []);
    let seen = changes(&watch);
    watch.written(at("c", "one", 7));
    watch.removed(&ObjectKey::namespaced("c", "one"), "one");
    assert_eq!(drained(&seen), Vec::<String>::new());
    let Read::Unknown(unknown) = watch.get(&ObjectKey::namespaced("c", "one")) else { panic!("it is known") };
    assert_eq!(unknown.why, "configmaps: the namespace c is not looked after");
}

#[tokio::test]
async fn nothing_is_known_where_no_namespace_can_be_read() {
    let watch = watch_over(&[Some("a"), Some("b")], None);
    for place in 0..2 {
        watch.at(place).broke_because("forbidden".to_owned());
    }
    assert!(watch.all().is_unknown() && !watch.is_synced());
}
