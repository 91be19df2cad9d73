//! Trees of clusters in situations in which users call `describe`.

use serde_json::{Value, json};

use super::*;

fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": type_, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

fn owned(kind: &str, name: &str, owner: &str, spec: &Value, status: &Value) -> Value {
    json!({
        "kind": kind,
        "metadata": {
            "name": name, "uid": format!("{kind}/{name}"),
            "ownerReferences": [{"uid": owner, "controller": true}],
        },
        "spec": spec, "status": status,
    })
}

fn cluster(conditions: &[Value]) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": "demo", "uid": "Cluster/demo"},
        "spec": {
            "controlPlaneEndpoint": {"host": "100.72.1.1", "port": 6443},
            "controlPlaneRef": {"kind": "HostedControlPlane", "name": "demo"},
            "infrastructureRef": {"kind": "OpenStackCluster", "name": "demo"},
        },
        "status": {"phase": "Provisioned", "conditions": conditions},
    })
}

fn starting() -> Objects {
    let control_plane = owned(
        "HostedControlPlane",
        "demo",
        "Cluster/demo",
        &json!({"version": "v1.34.10", "replicas": 1}),
        &json!({"conditions": [
            condition("Available", "False", "NotAvailable", "* EtcdClusterHealthy: waiting for 1 of 1 members"),
            condition(
                "EtcdClusterHealthy", "False", "NotCreated",
                "waiting for 1 of 1 members (Hangar must act)",
            ),
            condition("CertificatesValid", "True", "Valid", ""),
            condition("Paused", "False", "NotPaused", ""),
        ]}),
    );
    let infrastructure = json!({
        "kind": "OpenStackCluster", "metadata": {"name": "demo"},
        "status": {"ready": true},
    });
    let deployment = owned(
        "MachineDeployment",
        "demo-workers",
        "Cluster/demo",
        &json!({"replicas": 1}),
        &json!({"conditions": [condition("Available", "False", "NotAvailable", "0 of 1")]}),
    );
    let set = owned(
        "MachineSet",
        "demo-workers-abc",
        "MachineDeployment/demo-workers",
        &json!({"replicas": 1}),
        &json!({"readyReplicas": 0}),
    );
    let machine = owned(
        "Machine",
        "demo-workers-abc-1",
        "MachineSet/demo-workers-abc",
        &json!({
            "bootstrap": {"configRef": {"kind": "KubeadmConfig", "name": "demo-workers-abc-1"}},
            "infrastructureRef": {"kind": "OpenStackMachine", "name": "demo-workers-abc-1"},
        }),
        &json!({"phase": "Pending", "conditions": [
            condition("Ready", "False", "NotReady", "* BootstrapConfigReady: not yet"),
        ]}),
    );
    let bootstrap = json!({
        "kind": "KubeadmConfig", "metadata": {"name": "demo-workers-abc-1"},
        "status": {"conditions": [condition(
            "DataSecretAvailable", "False", "NotAvailable",
            "waiting for the control plane (Hangar must act)",
        )]},
    });
    let conditions = [condition("Available", "False", "NotAvailable", "* ControlPlaneAvailable: …")];
    Objects {
        cluster: cluster(&conditions),
        others: vec![machine, set, bootstrap, deployment, infrastructure, control_plane],
    }
}

fn now() -> Timestamp {
    "2026-01-01T00:01:05Z".parse().unwrap()
}

#[test]
fn a_wait_is_told_once_at_the_object_that_has_it() {
    let tree = tree(&starting());
    insta::assert_snapshot!(render(&tree, now()));
    let waits: Vec<_> =
        tree.all_waits().into_iter().map(|(node, wait)| (&*node.kind, &*wait.condition)).collect();
    assert_eq!(
        waits,
        [
            ("HostedControlPlane", "EtcdClusterHealthy"),
            ("KubeadmConfig", "DataSecretAvailable"),
            ("OpenStackMachine", "Exists"),
        ]
    );
    assert_eq!(tree.all_waits()[0].1.who.as_deref(), Some("Hangar"));
    assert!(!tree.is_ready());
}

#[test]
fn a_ready_cluster_waits_for_nothing() {
    let mut objects = starting();
    objects.others.retain(|object| object["kind"] == "OpenStackCluster");
    objects.others.push(owned(
        "HostedControlPlane",
        "demo",
        "Cluster/demo",
        &json!({"replicas": 1}),
        &json!({"version": "v1.34.10", "readyReplicas": 1, "conditions": [
            condition("Available", "True", "Available", ""),
            // No fault: nobody has asked for Nodes yet.
            condition("AddonsReady", "False", "NoNodes", "waiting for Nodes that add-ons can run on"),
        ]}),
    ));
    objects.cluster = cluster(&[condition("Available", "True", "Available", "")]);
    let tree = tree(&objects);
    assert!(tree.is_ready() && tree.all_waits().is_empty());
    insta::assert_snapshot!(render(&tree, now()));
}

#[test]
fn deletion_says_what_it_waits_for() {
    let mut objects = starting();
    objects.cluster = cluster(&[
        condition("Available", "False", "Deleting", ""),
        condition("Deleting", "True", "WaitingForWorkers", "waiting for 1 machine (Hangar must act)"),
    ]);
    objects.cluster["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:30Z");
    objects.others.clear();
    insta::assert_snapshot!(render(&tree(&objects), now()));
}

#[test]
fn ages_are_short() {
    let age =
        |later: i64| render::age(Timestamp::from_second(0).unwrap(), Timestamp::from_second(later).unwrap());
    assert_eq!([age(-5), age(59), age(61), age(3_660), age(90_000)], ["0s", "59s", "1m1s", "1h1m", "1d1h"]);
}

#[test]
fn an_object_that_cannot_be_read_is_not_as_its_summary_says() {
    let mut objects = starting();
    let machine = objects.others.iter_mut().find(|object| object["kind"] == "Machine").unwrap();
    machine["status"]["conditions"] = json!([
        condition("Ready", "True", "Ready", ""),
        condition("Readable", "False", "FieldNotReadable", "spec.minReadySeconds: no number"),
    ]);
    let tree = tree(&objects);
    let waits = tree.all_waits();
    let (node, _) = waits.iter().find(|(_, wait)| wait.condition == "Readable").unwrap();
    assert_eq!(node.verdict, Verdict::Unknown);
}
