//! Previews against a live management cluster.

use std::fs;

use hangar_kit::call::CallLog;
use hangar_operator::Namespaces;
use hangar_operator::preview::{Against, Given, Preview, preview, render};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::actor::Actor;
use super::world::{BED, Manager, World, eventually, spec, turn};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/plan.md");

/// Compares the page's only block of text; `INSTA_UPDATE=always` writes it.
fn the_book_shows(text: &str) {
    let page = fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once("```text\n").unwrap();
    let (block, after) = rest.split_once("```").unwrap();
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(PAGE, format!("{before}```text\n{text}```{after}")).unwrap();
    } else {
        assert_eq!(block, text, "docs/plan.md");
    }
}

async fn previewed(world: &World, spec: Value) -> (Preview, CallLog) {
    let object = json!({
        "apiVersion": "controlplane.cluster.x-k8s.io/v1alpha1",
        "kind": "HostedControlPlane",
        "metadata": { "name": "demo" },
        "spec": spec,
    });
    let given = Given::read(&object.to_string(), "demo.yaml", &world.namespace).unwrap();
    let against = Against::new(BED.config());
    let calls = against.calls.clone();
    (preview(given, Some(against), std::sync::Arc::default(), Namespaces::All).await.unwrap(), calls)
}

/// Workloads whose pods would start again.
fn restarting(preview: &Preview) -> Vec<String> {
    let changes = preview.plans.iter().flat_map(|planned| &planned.changes);
    changes
        .filter(|change| change.restarts)
        .map(|change| format!("{} {}", change.kind, change.name))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_preview_names_what_would_restart_and_writes_nothing() {
    let _turn = turn().await;
    let world = World::new("preview").await;
    let actor = Actor::start(&world);
    world.apply(spec()).await;
    let manager = Manager::start();
    eventually("etcd is there", async || world.names::<StatefulSet>().await == ["demo-etcd"]).await;
    actor.run("etcd");
    eventually("the API server follows", async || world.names::<Deployment>().await == ["demo-apiserver"])
        .await;
    manager.rest().await;
    manager.stop().await;
    let generation = async || {
        let deployment = world.api::<Deployment>().get("demo-apiserver").await.unwrap();
        (deployment.metadata.generation, world.control_plane().await.resource_version())
    };
    let before = generation().await;

    let (same, calls) = previewed(&world, spec()).await;
    assert_eq!(restarting(&same), [] as [&str; 0], "{}", render(&same));
    assert!(!calls.calls().is_empty(), "the cluster was read");

    let mut other = spec();
    other["deployment"] = json!({ "apiServer": { "args": { "v": "4" } } });
    let (changed, more) = previewed(&world, other).await;
    let text = render(&changed);
    assert_eq!(restarting(&changed), ["Deployment demo-apiserver"], "{text}");
    let namespace = &world.namespace;
    let expected =
        format!("would restart: the pods of Deployment {namespace}/demo-apiserver, because of spec.template");
    assert!(text.contains(&expected), "{text}");
    assert!(text.contains("+ \"--v=4\""), "{text}");
    assert!(text.contains("spec.deployment: + {\"apiServer\":{\"args\":{\"v\":\"4\"}}}"), "{text}");

    // The book shows this, of the object that is changed.
    let plans =
        changed.plans.iter().filter(|planned| planned.kind == "HostedControlPlane").cloned().collect();
    let shown = render(&Preview { plans, ..changed }).replace(namespace.as_str(), "default");
    the_book_shows(&shown);

    let writes: Vec<String> = calls
        .calls()
        .into_iter()
        .chain(more.calls())
        .filter(|(call, _)| call.verb.is_write())
        .map(|(call, _)| call.to_string())
        .collect();
    assert_eq!(writes, [] as [&str; 0]);
    assert_eq!(generation().await, before);
}
