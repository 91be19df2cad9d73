//! Scenarios of Machines: from nothing to a Node, and deletion.

mod deletion;

use std::collections::BTreeMap;

use hangar_api::cluster::v1beta2::{Cluster, Machine};
use hangar_api::contract::Contract;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use super::*;
use crate::checks::{check_conditions, golden};
use crate::flow::Identified as _;

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn merge(target: &mut Value, more: Value) {
    match (target, more) {
        (Value::Object(target), Value::Object(more)) => {
            for (key, value) in more {
                merge(target.entry(key).or_insert(Value::Null), value);
            }
        }
        (target, more) => *target = more,
    }
}

fn machine(more: Value) -> Machine {
    let mut object = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {"name": "a", "namespace": "team", "uid": "u-a", "generation": 1,
            "finalizers": ["machine.cluster.x-k8s.io"],
            "labels": {"cluster.x-k8s.io/cluster-name": "demo", "node-role.kubernetes.io/worker": "",
                "plain": "label"},
            "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet",
                "name": "workers-x", "uid": "u-set", "controller": true}]},
        "spec": {
            "clusterName": "demo", "version": "v1.34.0",
            "bootstrap": {"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": "a"}},
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackMachine", "name": "a"},
        },
    });
    merge(&mut object, more);
    serde_json::from_value(object).unwrap()
}

#[allow(clippy::needless_pass_by_value, reason = "callers write the object in place")]
fn referred(metadata: Value, object: Value, contract: Contract) -> Read<Referred> {
    let mut whole = json!({"uid": "u-object", "name": "a", "namespace": "team",
        "labels": {"cluster.x-k8s.io/cluster-name": "demo"},
        "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": "a",
            "uid": "u-a", "controller": true, "blockOwnerDeletion": true}]});
    merge(&mut whole, metadata);
    Read::One(Referred::new(serde_json::from_value(whole).unwrap(), &object, contract))
}

fn observed(machine: Machine) -> Observed {
    let cluster: Cluster = serde_json::from_value(json!({"apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster", "metadata": {"name": "demo", "uid": "u-cluster"}, "spec": {},
        "status": {"initialization": {"controlPlaneInitialized": true, "infrastructureProvisioned": true}}}))
    .unwrap();
    let plane = json!({"status": {"externalManagedControlPlane": true}});
    Observed {
        machine,
        cluster: Read::One(cluster),
        bootstrap: Some(Read::Absent),
        infrastructure: Read::Absent,
        control_plane: Some(referred(json!({}), plane, Contract::V1Beta2)),
        has_control_plane_machines: false,
        set: None,
        deployment: None,
        node: NodeView::NotLooked,
        pods: Read::unknown("not asked"),
        refusals: BTreeMap::new(),
        now: now(),
    }
}

fn provisioned() -> Read<Referred> {
    let data = json!({"spec": {"providerID": "openstack://RegionOne/u-server"}, "status": {"ready": true,
        "addresses": [{"type": "InternalIP", "address": "10.0.0.4"}]}});
    referred(json!({}), data, Contract::V1Beta1)
}

fn bootstrapped() -> Read<Referred> {
    let data = json!({"status": {"dataSecretName": "a", "initialization": {"dataSecretCreated": true}}});
    referred(json!({}), data, Contract::V1Beta2)
}

fn node(more: Value) -> Node {
    let mut object = json!({
        "metadata": {"name": "node-a", "uid": "u-node", "resourceVersion": "7",
            "labels": {"kubernetes.io/os": "linux"}},
        "spec": {"providerID": "openstack:///u-server", "taints": [
            {"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"},
            {"key": "other", "effect": "NoSchedule"}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "False"}]},
    });
    merge(&mut object, more);
    serde_json::from_value(object).unwrap()
}

fn found(more: Value) -> NodeView {
    NodeView::Found(Box::new(node(more).into()))
}

fn running() -> Value {
    json!({
        "spec": {"providerID": "openstack://RegionOne/u-server", "bootstrap": {"dataSecretName": "a"}},
        "status": {"nodeRef": {"name": "node-a"}, "initialization":
            {"bootstrapDataSecretCreated": true, "infrastructureProvisioned": true}},
    })
}

fn ids(observed: &Observed) -> Vec<String> {
    let plan = observed.plan();
    check_conditions(plan.status.conditions.as_deref().unwrap_or_default());
    plan.steps.iter().map(|step| step.id().to_string()).collect()
}

#[test]
fn taints_that_are_not_all_known_are_not_written() {
    let taints = |count: usize| {
        let others = (1..count).map(|number| json!({"key": format!("t{number}"), "effect": "NoSchedule"}));
        let first = json!({"key": names::UNINITIALIZED_TAINT, "effect": "NoSchedule"});
        let all: Vec<Value> = std::iter::once(first).chain(others).collect();
        let facts = NodeFacts::from(node(json!({"spec": {"taints": all}})));
        node::patch(&facts, &machine(json!({}))).and_then(|patch| patch.taints).map(|kept| kept.len())
    };
    assert_eq!((taints(3), taints(100)), (Some(2), None));
}

/// The Node of a server among all Nodes, as the watch finds it.
fn of_server<const N: usize>(nodes: [Node; N], provider_id: &str) -> NodeView {
    let facts = nodes.into_iter().map(NodeFacts::from);
    node::view(Read::found(facts.filter(|node| node::is_same_server(&node.provider_id, provider_id))))
}

#[test]
fn nothing_is_there_yet() {
    let plan = observed(machine(json!({}))).plan();
    check_conditions(plan.status.conditions.as_deref().unwrap());
    insta::assert_snapshot!(golden(&plan.steps, &plan.status, &plan.report));
}

#[test]
fn the_objects_are_taken_over_from_the_set() {
    let mut seen = observed(machine(json!({})));
    let of_set = json!({"labels": null, "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineSet", "name": "workers-x", "uid": "u-set", "controller": true}]});
    seen.bootstrap = Some(referred(of_set.clone(), json!({}), Contract::V1Beta2));
    seen.infrastructure = referred(of_set, json!({}), Contract::V1Beta1);
    assert_eq!(ids(&seen), ["claim bootstrap ", "claim infrastructure "]);
    let of_other = json!({"ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "name": "b", "uid": "u-b", "controller": true}]});
    seen.infrastructure = referred(of_other, json!({}), Contract::V1Beta1);
    assert_eq!(ids(&seen), ["claim bootstrap "]);
    let conditions = seen.plan().status.conditions.unwrap();
    let infrastructure = conditions.iter().find(|one| one.type_ == "InfrastructureReady").unwrap();
    assert!(infrastructure.message.contains("belongs to Machine b"), "{infrastructure:?}");
}

#[test]
fn facts_are_noted_and_the_node_is_searched() {
    let mut seen = observed(machine(json!({})));
    seen.bootstrap = Some(bootstrapped());
    seen.infrastructure = provisioned();
    assert_eq!(tenant_read(&seen), None);
    let plan = seen.plan();
    insta::assert_snapshot!(golden(&plan.steps, &plan.status, &plan.report));
    let noted = running();
    seen.machine = machine(json!({"spec": noted["spec"]}));
    assert_eq!(
        tenant_read(&seen),
        Some(TenantRead::FindNode {
            provider_id: "openstack://RegionOne/u-server".to_owned(),
            with_pods: false
        })
    );
    seen.node = NodeView::Absent;
    assert_eq!(ids(&seen), [""; 0]);
}

/// Trap: the region is in one and not in the other.
#[test]
fn a_node_is_found_by_its_server() {
    let table = [
        ("openstack:///u-server", "openstack://RegionOne/u-server", true),
        ("openstack:///u-server", "openstack:///u-server", true),
        ("openstack:///u-server", "openstack:///u-other", false),
        ("openstack:///u-server", "aws:///u-server", false),
        ("", "", false),
        ("openstack:///", "openstack:///", true),
        ("openstack:///", "openstack://RegionOne/", false),
        ("gce://project/zone-a/w1", "gce://project/zone-a/w1", true),
        ("gce://project/zone-a/w1", "gce://project/zone-b/w1", false),
        ("azure:///a/virtualMachineScaleSets/one/0", "azure:///a/virtualMachineScaleSets/two/0", false),
    ];
    for (left, right, expected) in table {
        assert_eq!(node::is_same_server(left, right), expected, "{left} {right}");
    }
    let other = node(json!({"metadata": {"name": "node-b"}, "spec": {"providerID": "openstack:///u-b"}}));
    let twin = node(json!({"metadata": {"name": "node-c"}}));
    let id = "openstack://RegionOne/u-server";
    assert!(
        matches!(of_server([other.clone(), node(json!({}))], id), NodeView::Found(one) if one.name == "node-a")
    );
    assert_eq!(of_server([other], id), NodeView::Absent);
    let both = vec!["node-a".to_owned(), "node-c".to_owned()];
    assert_eq!(of_server([node(json!({})), twin], id), NodeView::Several(both));
}

#[test]
fn a_node_of_any_size_becomes_small_facts_and_our_labels_stay() {
    let many = |prefix: &str| -> Value {
        (0..500).map(|number| (format!("{prefix}{number:03}"), json!("v".repeat(60)))).collect()
    };
    let mut labels = many("a.example.com/");
    labels["node.cluster.x-k8s.io/tier"] = json!("slow");
    let long = "ä".repeat(1 << 20);
    let condition = |number: i32| json!({"type": format!("C{number}"), "status": "True", "message": long});
    let taint = |number: i32| json!({"key": format!("t{number}"), "effect": "NoSchedule"});
    let address = json!({"type": "Hostname", "address": long});
    let facts = NodeFacts::from(node(json!({
        "metadata": {"labels": labels, "annotations": many("")},
        "spec": {"taints": (0..999).map(taint).collect::<Vec<_>>()},
        "status": {"conditions": (0..99).map(condition).collect::<Vec<_>>(),
            "addresses": vec![address; 99], "nodeInfo": {"osImage": long}},
    })));
    assert_eq!(facts.labels["node.cluster.x-k8s.io/tier"], "slow");
    assert!(format!("{facts:?}").len() < 100 << 10);
    assert_eq!(
        facts.info.unwrap().os_image,
        format!("{}...", "ä".repeat(126)),
        "cut at a character, with a mark"
    );
    // No API server has these: half an identity would be another's.
    let strange = NodeFacts::from(node(json!({
        "metadata": {"name": long, "uid": long, "resourceVersion": long},
        "spec": {"providerID": long, "taints": [{"key": long, "effect": "NoSchedule"}, taint(1)]},
    })));
    assert!(format!("{strange:?}").len() < 4 << 10);
    assert_eq!((strange.name.as_str(), strange.provider_id.as_str(), strange.taints.len()), ("", "", 1));
    // A Node of usual size is kept as it is.
    let usual = NodeFacts::from(node(json!({"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}})));
    assert_eq!((usual.labels["a"].as_str(), usual.annotations["c"].as_str()), ("b", "d"));
}

#[test]
fn a_running_machine_gives_its_node_labels_and_frees_it() {
    let mut seen = observed(machine(running()));
    seen.bootstrap = Some(bootstrapped());
    seen.infrastructure = provisioned();
    seen.node = found(json!({}));
    let plan = seen.plan();
    check_conditions(plan.status.conditions.as_deref().unwrap());
    insta::assert_snapshot!(golden(&plan.steps, &plan.status, &plan.report));
    let Some(step) = plan.steps.iter().next().cloned() else { panic!("no step") };
    seen.fold(&step, &Outcome::Done);
    assert_eq!(ids(&seen), [""; 0], "folded");
}

#[test]
fn a_label_taken_from_the_machine_is_taken_from_the_node() {
    let mut seen = observed(machine(running()));
    seen.infrastructure = provisioned();
    seen.node = found(json!({"metadata": {
        "labels": {"node.cluster.x-k8s.io/old": "x", "node.cluster.x-k8s.io/theirs": "x"},
        "annotations": {"cluster.x-k8s.io/labels-from-machine": "node.cluster.x-k8s.io/old"}}}));
    let plan = seen.plan();
    let Some(Step::Tenant(NodeStep::Patch { patch, .. })) = plan.steps.iter().next() else {
        panic!("{:?}", plan.steps)
    };
    assert_eq!(patch.labels["node.cluster.x-k8s.io/old"], None);
    assert!(!patch.labels.contains_key("node.cluster.x-k8s.io/theirs"));
    assert_eq!(patch.labels["node-role.kubernetes.io/worker"], Some(String::new()));
}

#[test]
fn labels_for_nodes_by_prefix() {
    for (label, expected) in [
        ("node-role.kubernetes.io/worker", true),
        ("node.cluster.x-k8s.io/x", true),
        ("sub.node.cluster.x-k8s.io/x", true),
        ("node-restriction.kubernetes.io/x", true),
        ("team.node-restriction.kubernetes.io/x", true),
        ("evilnode-restriction.kubernetes.io/x", false),
        ("cluster.x-k8s.io/cluster-name", false),
        ("plain", false),
    ] {
        assert_eq!(node::is_for_nodes(label), expected, "{label}");
    }
}

#[test]
fn available_after_being_ready_for_long_enough() {
    let mut seen = observed(machine(running()));
    seen.machine.spec.min_ready_seconds = Some(30);
    seen.bootstrap = Some(bootstrapped());
    seen.infrastructure = provisioned();
    seen.node = found(json!({}));
    let status = |seen: &Observed| {
        let conditions = seen.plan().status.conditions.unwrap();
        conditions.into_iter().find(|one| one.type_ == "Available").unwrap().status
    };
    assert_eq!(status(&seen), "False");
    assert_eq!(seen.plan().wake.remaining(now()), Some(Duration::from_secs(10)));
    seen.machine.status = Some(seen.plan().status);
    seen.now = now() + jiff::SignedDuration::from_secs(29);
    assert_eq!(status(&seen), "False");
    seen.now = now() + jiff::SignedDuration::from_secs(30);
    assert_eq!(status(&seen), "True");
}

#[test]
fn a_tenant_that_is_away_changes_nothing_that_was_said() {
    let mut seen = observed(machine(running()));
    seen.bootstrap = Some(bootstrapped());
    seen.infrastructure = provisioned();
    seen.node = found(json!({"spec": {"taints": null}}));
    seen.machine.status = Some(seen.plan().status);
    let before = seen.plan().status;
    seen.node = NodeView::Unreachable("timeout".to_owned());
    assert_eq!(seen.plan().status, before);
    assert_eq!(ids(&seen), [""; 0]);
}

/// Trap: what nobody has looked at for minutes is not healthy, and not ready either.
#[test]
fn a_tenant_that_stays_away_makes_what_was_said_unknown() {
    let mut seen = observed(machine(running()));
    seen.bootstrap = Some(bootstrapped());
    seen.infrastructure = provisioned();
    seen.node = found(json!({"spec": {"taints": null}}));
    seen.machine.status = Some(seen.plan().status);
    seen.node = NodeView::Unreachable("timeout".to_owned());
    let Read::One(cluster) = &mut seen.cluster else { panic!() };
    let probe = json!([{"type": "RemoteConnectionProbe", "status": "False", "reason": "ProbeFailed", "message": "",
        "lastTransitionTime": now().to_string()}]);
    cluster.status.as_mut().unwrap().conditions = Some(serde_json::from_value(probe).unwrap());
    let status = |seen: &Observed, type_: &str| {
        let conditions = seen.plan().status.conditions.unwrap();
        conditions.into_iter().find(|one| one.type_ == type_).unwrap().status
    };
    seen.now = now() + jiff::SignedDuration::from_secs(299);
    assert_eq!((status(&seen, "NodeHealthy").as_str(), status(&seen, "Ready").as_str()), ("True", "True"));
    seen.now = now() + jiff::SignedDuration::from_secs(300);
    for type_ in ["NodeHealthy", "NodeReady"] {
        assert_eq!(status(&seen, type_), "Unknown", "{type_}");
    }
    assert_ne!(status(&seen, "Ready"), "True");
    assert_eq!(ids(&seen), [""; 0]);
}

#[test]
fn a_paused_machine_changes_nothing_and_asks_nobody() {
    let mut seen = observed(machine(json!({"metadata": {"finalizers": []}})));
    let Read::One(cluster) = &mut seen.cluster else { panic!() };
    cluster.spec.paused = Some(true);
    assert_eq!((ids(&seen), tenant_read(&seen)), (Vec::<String>::new(), None));
}
