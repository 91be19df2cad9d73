//! Objects in tenants: Nodes from one watch, and our objects beside foreign ones.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use hangar_kit::{
    Error,
    call::CallLog,
    client::{TenantOptions, Tenants},
    tenant::{Lease, Nodes, TenantApplier},
};
use hangar_plan::{
    flow::Read,
    inventory::{Found, ObjectIdentity, marked},
};
use hangar_testbed::{Options, Testbed};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    core::{DynamicObject, TypeMeta},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    tenant::{Book, key},
    world::{config_map, create, eventually, namespace},
};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_mins(3);

fn node(name: &str) -> Node {
    let mut node = Node::default();
    node.metadata.name = Some(name.to_owned());
    node.spec.get_or_insert_default().provider_id = Some(format!("openstack:///{name}-server"));
    node
}

fn names(lease: &Lease) -> Vec<String> {
    lease.all().iter().map(|node| node.name.clone()).collect()
}

#[tokio::test]
async fn nodes_are_seen_by_one_list_and_one_watch_and_again_after_a_restart() {
    let bed = Testbed::start(Options::default()).unwrap();
    let api: Api<Node> = Api::all(bed.client());
    let (book, log, stop) = (Book::default(), CallLog::default(), CancellationToken::new());
    book.write("a", bed.config());
    let options = TenantOptions { gates: vec![Arc::new(log.clone())], ..TenantOptions::default() };
    let nodes = Nodes::new(Arc::new(Tenants::new(book, options)), &stop);
    let woken: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    nodes.on_change({
        let woken = Arc::clone(&woken);
        move |tenant, node, provider_id| {
            woken.lock().unwrap().insert(format!("{tenant} {node} {}", provider_id.unwrap_or("-")));
        }
    });
    let lease = nodes.subscribe(&key("a"));
    assert!(lease.count().unwrap_err().why.contains("not listed yet"));
    lease.ready(PATIENCE).await;
    assert_eq!(lease.count(), Ok(0));

    for name in ["n1", "n2", "n3"] {
        api.create(&PostParams::default(), &node(name)).await.unwrap();
    }
    eventually("all are there", async || names(&lease) == ["n1", "n2", "n3"]).await;
    assert!(woken.lock().unwrap().contains("tenants/a n2 openstack:///n2-server"));
    let cordon = Patch::Merge(json!({"spec": {"unschedulable": true}}));
    api.patch("n2", &PatchParams::default(), &cordon).await.unwrap();
    eventually("the change", async || matches!(lease.get("n2"), Read::One(node) if node.is_cordoned)).await;
    api.delete("n3", &DeleteParams::default()).await.unwrap();
    eventually("one is gone", async || lease.get("n3").is_absent()).await;

    for _ in 0..200 {
        let lease = nodes.subscribe(&key("a"));
        let found = lease.find("openstack://region/n1-server");
        assert!(matches!(found, Read::One(node) if node.name == "n1"));
    }
    let counts = log.counts();
    assert_eq!((counts["list nodes"], counts["watch nodes"], counts.len()), (1, 1, 2), "{counts:?}");

    bed.restart_api_server().unwrap();
    api.create(&PostParams::default(), &node("n4")).await.unwrap();
    eventually("the new one", async || {
        lease.ready(PATIENCE).await;
        names(&lease) == ["n1", "n2", "n4"]
    })
    .await;
    stop.cancel();
}

const APPLIER: TenantApplier = TenantApplier {
    manager: "hangar-test",
    annotation: "hangar.cluster.x-k8s.io/test",
    selector: "example.com/of=test",
};

fn wanted(namespace: &str, name: &str, value: &str) -> DynamicObject {
    let map = config_map(name, value);
    let types = TypeMeta { api_version: "v1".to_owned(), kind: "ConfigMap".to_owned() };
    let data = json!({"data": map.data});
    let mut object = DynamicObject { types: Some(types), metadata: map.metadata, data };
    object.metadata.namespace = Some(namespace.to_owned());
    marked(object, APPLIER.annotation)
}

async fn found(client: &Client, object: &DynamicObject) -> Found {
    let mut found = APPLIER.look(client, std::slice::from_ref(object), &[]).await;
    found.remove(&ObjectIdentity::of(object)).unwrap().unwrap()
}

#[tokio::test]
async fn our_objects_are_created_repaired_and_pruned_and_others_are_left_alone() {
    let (namespace, client, _) = namespace("inventory");
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    let object = wanted(&namespace, "ours", "1");
    let identity = ObjectIdentity::of(&object);
    assert_eq!(found(&client, &object).await, Found::Absent);
    let uid = APPLIER.apply(&client, &object, None).await.unwrap();
    let hash = object.annotations()[APPLIER.annotation].clone();
    let ours = |is_drifted| Found::Ours { uid: uid.clone(), applied: Some(hash.clone()), is_drifted };
    assert_eq!(found(&client, &object).await, ours(false));

    let change = Patch::Merge(json!({"data": {"value": "2"}}));
    api.patch("ours", &PatchParams::default(), &change).await.unwrap();
    assert_eq!(found(&client, &object).await, ours(true));
    APPLIER.apply(&client, &object, Some(&uid)).await.unwrap();
    assert_eq!(found(&client, &object).await, ours(false));

    // A successor is neither changed nor deleted for its predecessor.
    api.delete("ours", &DeleteParams::default()).await.unwrap();
    let gone = APPLIER.apply(&client, &object, Some(&uid)).await;
    assert!(matches!(gone, Err(Error::Stale { .. })), "{gone:?}");
    let successor = APPLIER.apply(&client, &object, None).await.unwrap();
    let replaced = APPLIER.apply(&client, &object, Some(&uid)).await;
    assert!(matches!(replaced, Err(Error::Stale { .. })), "{replaced:?}");
    APPLIER.prune(&client, &identity, &uid).await.unwrap();
    assert!(api.get_opt("ours").await.unwrap().is_some());

    // What lost our annotation is no longer ours.
    let unmark = json!({"metadata": {"annotations": {APPLIER.annotation: null}}});
    api.patch("ours", &PatchParams::default(), &Patch::Merge(unmark)).await.unwrap();
    let refused = APPLIER.prune(&client, &identity, &successor).await;
    assert!(matches!(refused, Err(Error::Foreign { .. })), "{refused:?}");
    assert_eq!(found(&client, &object).await, Found::Foreign);
    APPLIER.apply(&client, &object, Some(&successor)).await.unwrap();
    for _ in 0..2 {
        APPLIER.prune(&client, &identity, &successor).await.unwrap();
        assert!(api.get_opt("ours").await.unwrap().is_none());
    }

    create(&api, &config_map("theirs", "1")).await;
    let theirs = wanted(&namespace, "theirs", "2");
    let taken = APPLIER.apply(&client, &theirs, None).await;
    assert!(matches!(taken, Err(Error::Foreign { .. })), "{taken:?}");
    assert_eq!(found(&client, &theirs).await, Found::Foreign);
}

#[tokio::test]
async fn several_objects_of_a_kind_are_read_by_one_list() {
    let (namespace, client, log) = namespace("lists");
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    let labelled = |name: &str| {
        let mut object = wanted(&namespace, name, "1");
        let (label, value) = APPLIER.selector.split_once('=').unwrap();
        object.metadata.labels.get_or_insert_default().insert(label.to_owned(), value.to_owned());
        object
    };
    let objects = ["one", "two", "three"].map(labelled);
    for object in &objects {
        APPLIER.apply(&client, object, None).await.unwrap();
    }
    let is_fine = |found: &Found| matches!(found, Found::Ours { is_drifted: false, .. });
    log.take();
    let found = APPLIER.look(&client, &objects, &[]).await;
    assert!(found.len() == 3 && found.values().all(|found| is_fine(found.as_ref().unwrap())), "{found:?}");
    let counts = |log: &CallLog| -> Vec<(String, usize)> { log.counts().into_iter().collect() };
    assert_eq!(counts(&log), [("list configmaps".to_owned(), 1)]);

    // Whoever takes the label away hides nothing, and drift shows in a list as well.
    let unlabelled = json!({"metadata": {"labels": null}});
    api.patch("one", &PatchParams::default(), &Patch::Merge(unlabelled)).await.unwrap();
    let change = Patch::Merge(json!({"data": {"value": "2"}}));
    api.patch("two", &PatchParams::default(), &change).await.unwrap();
    log.take();
    let found = APPLIER.look(&client, &objects, &[]).await;
    let drifted: Vec<bool> = objects
        .iter()
        .map(|object| matches!(&found[&ObjectIdentity::of(object)], Ok(Found::Ours { is_drifted: true, .. })))
        .collect();
    assert_eq!(drifted, [true, true, false]);
    assert_eq!(counts(&log), [("get configmaps".to_owned(), 1), ("list configmaps".to_owned(), 1)]);
}
