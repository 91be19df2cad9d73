//! The crash sweep over creation, rollout and deletion of a cluster: interrupted at every write, the end is the same.

use hangar_api::cluster::v1beta2::{Machine, MachineSet};
use hangar_plan::flow::crash::{World, sweep};
use hangar_plan::flow::{Identified as _, Next, Rounds, Setbacks};
use serde_json::{Value, json};

use crate::world::{Act, Memory};

const LIMIT: usize = 3000;

fn reference(group: &str, kind: &str, name: &str) -> Value {
    json!({"apiGroup": format!("{group}.cluster.x-k8s.io"), "kind": kind, "name": name})
}

fn template(version: &str) -> Value {
    json!({
        "metadata": {"labels": {"pool": "one", "node.cluster.x-k8s.io/tier": "fast"}},
        "spec": {
            "clusterName": "demo", "version": version,
            "bootstrap": {"configRef": reference("bootstrap", "StubConfigTemplate", "join")},
            "infrastructureRef": reference("infrastructure", "StubMachineTemplate", "small"),
        },
    })
}

/// What a person applies.
fn applied(replicas: i32) -> Memory {
    let mut memory = Memory::default();
    memory.add(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "demo"},
        "spec": {
            "infrastructureRef": reference("infrastructure", "StubCluster", "demo"),
            "controlPlaneRef": reference("controlplane", "StubPlane", "demo"),
        },
    }));
    memory.add(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment", "metadata": {"name": "workers"},
        "spec": {"clusterName": "demo", "replicas": replicas, "selector": {"matchLabels": {"pool": "one"}},
            "template": template("v1.33.0")},
    }));
    let sized = |size: &str| json!({"template": {"spec": {"size": size}}});
    for (group, kind, name, spec) in [
        ("infrastructure", "StubCluster", "demo", json!({})),
        ("controlplane", "StubPlane", "demo", json!({})),
        ("bootstrap", "StubConfigTemplate", "join", sized("join")),
        ("infrastructure", "StubMachineTemplate", "small", sized("small")),
    ] {
        memory.add(json!({"apiVersion": format!("{group}.cluster.x-k8s.io/v1"), "kind": kind,
            "metadata": {"name": name}, "spec": spec}));
    }
    memory
}

/// The same after everything has come to rest.
fn settled(mut memory: Memory) -> Memory {
    for _ in 0..100 {
        let mut observation = memory.observe();
        let (mut rounds, setbacks) = (Rounds::default(), Setbacks::default());
        loop {
            let frontier = memory.plan(&observation);
            let Next::Run(act) = rounds.next(&frontier, &setbacks, memory.now()) else { break };
            let outcome = memory.run(act);
            memory.fold(&mut observation, act, &outcome);
            rounds.ran(act.id(), outcome);
        }
        let moved =
            rounds.into_ran().iter().any(|ran| ran.outcome.is_success() || ran.outcome.ends_the_pass());
        memory.settle();
        if !moved {
            return memory;
        }
    }
    panic!("never at rest: {:#?}", memory.end_state());
}

#[test]
fn creation_survives_a_crash_anywhere() {
    let end = settled(applied(2));
    assert!(end.all::<Machine>().len() == 2 && end.nodes.len() == 2, "{:#?}", end.end_state());
    insta::assert_snapshot!(end.end_state().join("\n"));
    let swept = sweep(&applied(2), LIMIT).unwrap();
    assert!(swept.points > 80, "{}", swept.points);
}

#[test]
fn at_rest_nothing_is_written() {
    let end = settled(applied(1));
    assert_eq!(end.plan(&end.observe()).iter().map(|act| act.id().to_string()).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn a_rollout_survives_a_crash_anywhere() {
    let mut memory = settled(applied(1));
    memory.change("MachineDeployment", "workers", &json!({"spec": {"template": template("v1.34.0")}}));
    let end = settled(memory.clone());
    assert_eq!(end.most, 2, "one above the wanted one");
    assert_eq!(end.all::<MachineSet>().len(), 1, "{:#?}", end.end_state());
    assert!(end.all::<Machine>().values().all(|one| one.spec.version.as_deref() == Some("v1.34.0")));
    let swept = sweep(&memory, LIMIT).unwrap();
    assert!(swept.points > 60, "{}", swept.points);
}

#[test]
fn scaling_down_survives_a_crash_anywhere() {
    let mut memory = settled(applied(1));
    memory.change("MachineDeployment", "workers", &json!({"spec": {"replicas": 0}}));
    let end = settled(memory.clone());
    assert!(end.all::<Machine>().is_empty() && end.nodes.is_empty(), "{:#?}", end.end_state());
    sweep(&memory, LIMIT).unwrap();
}

#[test]
fn deletion_survives_a_crash_anywhere_and_leaves_only_templates() {
    let mut memory = settled(applied(1));
    memory.delete(&("Cluster".to_owned(), "demo".to_owned()));
    let end = settled(memory.clone());
    // Nodes go with their cluster: nobody is left to delete them one by one.
    let left: Vec<String> = end.end_state().into_iter().filter(|line| !line.starts_with("Node ")).collect();
    assert_eq!(left, ["StubConfigTemplate join", "StubMachineTemplate small"]);
    let swept = sweep(&memory, LIMIT).unwrap();
    assert!(swept.points > 30, "{}", swept.points);
}

/// A planner that lags behind by one Machine names it again: the API server refuses, and there is no duplicate.
#[test]
fn a_stale_view_collides_instead_of_duplicating() {
    let mut memory = settled(applied(1));
    let stale = memory.clone();
    memory.change("MachineDeployment", "workers", &json!({"spec": {"replicas": 2}}));
    let mut memory = settled(memory);
    assert_eq!(memory.all::<Machine>().len(), 2);
    // The old view, with the new wish.
    let mut stale = stale;
    for name in stale.all::<MachineSet>().keys() {
        stale.change("MachineSet", name, &json!({"spec": {"replicas": 2}}));
    }
    let creates: Vec<Act> = stale
        .plan(&stale.observe())
        .iter()
        .filter(|act| act.id().verb == "create" && act.id().kind == "machine")
        .cloned()
        .collect();
    assert_eq!(creates.len(), 1);
    for act in &creates {
        memory.run(act);
    }
    assert_eq!(memory.all::<Machine>().len(), 2);
}
