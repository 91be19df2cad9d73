//! Scenarios of Clusters: the steps that are planned, and the conditions.

use std::collections::BTreeMap;

use hangar_api::cluster::v1beta2::Cluster;
use hangar_api::contract::Contract;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::checks::{check_conditions, golden};
use crate::flow::{Action, Identified as _, Wake};
use crate::referred::Referred;

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn cluster(more: Value) -> Cluster {
    let mut object = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "demo", "namespace": "team", "uid": "u-cluster", "generation": 2,
            "finalizers": ["cluster.cluster.x-k8s.io"]},
        "spec": {
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackCluster", "name": "demo"},
            "controlPlaneRef": {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "HostedControlPlane", "name": "plane"},
        },
    });
    merge(&mut object, more);
    serde_json::from_value(object).unwrap()
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

#[allow(clippy::needless_pass_by_value, reason = "callers write the object in place")]
fn referred(metadata: Value, object: Value, contract: Contract) -> Read<Referred> {
    let mut whole = json!({"uid": "u-object", "name": "object", "namespace": "team"});
    merge(&mut whole, metadata);
    Read::One(Referred::new(serde_json::from_value(whole).unwrap(), &object, contract))
}

fn claimed() -> Value {
    json!({
        "labels": {"cluster.x-k8s.io/cluster-name": "demo"},
        "ownerReferences": [{"apiVersion": CORE, "kind": "Cluster", "name": "demo", "uid": "u-cluster"}],
    })
}

const CORE: &str = "cluster.x-k8s.io/v1beta2";

fn observed(cluster: Cluster) -> Observed {
    Observed {
        cluster,
        infrastructure: Some(Read::Absent),
        control_plane: Some(Read::Absent),
        deployments: Read::Absent,
        sets: Read::Absent,
        machines: Read::Absent,
        connection: Connection::NotTried,
        refusals: BTreeMap::new(),
        now: now(),
    }
}

fn infrastructure(endpoint: Option<&str>, is_ready: bool) -> Read<Referred> {
    let endpoint = endpoint.map(|host| json!({"host": host, "port": 6443}));
    let data = json!({"spec": {"controlPlaneEndpoint": endpoint}, "status": {"ready": is_ready,
        "failureDomains": {"az1": {"controlPlane": true}}}});
    referred(claimed(), data, Contract::V1Beta1)
}

fn control_plane(endpoint: Option<&str>, is_initialized: bool) -> Read<Referred> {
    let endpoint = endpoint.map(|host| json!({"host": host, "port": 6443}));
    let status = if is_initialized { "True" } else { "False" };
    let message = if is_initialized { "" } else { "waiting for etcd (Hangar must act)" };
    let data = json!({
        "spec": {"controlPlaneEndpoint": endpoint, "replicas": 2, "version": "v1.34.0"},
        "status": {
            "initialization": {"controlPlaneInitialized": is_initialized},
            "externalManagedControlPlane": true, "version": "v1.34.0",
            "replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "upToDateReplicas": 2,
            "conditions": [{"type": "Available", "status": status, "reason": "Serving", "message": message,
                "lastTransitionTime": "2027-01-15T08:00:00Z"}],
        },
    });
    referred(claimed(), data, Contract::V1Beta2)
}

fn ids(observed: &Observed) -> Vec<String> {
    let plan = observed.plan();
    check_conditions(plan.status.conditions.as_deref().unwrap_or_default());
    plan.steps.iter().map(|step| step.id().to_string()).collect()
}

#[test]
fn nothing_is_there_yet() {
    let plan = observed(cluster(json!({}))).plan();
    check_conditions(plan.status.conditions.as_deref().unwrap());
    insta::assert_snapshot!(golden(&plan.steps, &plan.status, &plan.report));
}

#[test]
fn the_objects_are_there_and_are_claimed() {
    let mut seen = observed(cluster(json!({})));
    seen.infrastructure = Some(referred(json!({}), json!({}), Contract::V1Beta1));
    seen.control_plane = Some(referred(json!({}), json!({}), Contract::V1Beta2));
    let plan = seen.plan();
    insta::assert_snapshot!(golden(&plan.steps, &plan.status, &plan.report));
}

/// Trap: a second Cluster from a copied manifest that still refers to the objects of the first.
#[test]
fn what_belongs_to_another_cluster_is_neither_claimed_nor_used_nor_deleted() {
    let theirs = json!({"metadata": {"name": "copy", "uid": "u-copy"}});
    let mut seen = observed(cluster(theirs.clone()));
    seen.infrastructure = Some(infrastructure(Some("api"), true));
    seen.control_plane = Some(control_plane(Some("api"), true));
    assert_eq!(ids(&seen), [""; 0]);
    let status = seen.plan().status;
    assert_eq!(status.initialization, None);
    let conditions = status.conditions.unwrap();
    for type_ in ["InfrastructureReady", "ControlPlaneAvailable"] {
        let found = conditions.iter().find(|one| one.type_ == type_).unwrap();
        assert!(found.message.contains("belongs to Cluster demo"), "{found:?}");
    }
    seen.cluster = cluster(theirs);
    seen.cluster.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
    assert_eq!(ids(&seen), ["remove finalizer cluster"]);
    // One that was restored has another uid, and is still the same.
    let mut seen = observed(cluster(json!({"metadata": {"uid": "u-restored"}})));
    seen.control_plane = Some(control_plane(Some("api"), true));
    assert!(ids(&seen).contains(&"claim control-plane ".to_owned()));
}

#[test]
fn a_running_cluster() {
    let endpoint = json!({"spec": {"controlPlaneEndpoint": {"host": "api", "port": 6443}}});
    let mut seen = observed(cluster(endpoint));
    seen.infrastructure = Some(infrastructure(Some("api"), true));
    seen.control_plane = Some(control_plane(Some("api"), true));
    seen.connection = Connection::Answering;
    seen.deployments = Read::One(
        serde_json::from_value(json!({
            "apiVersion": CORE, "kind": "MachineDeployment", "metadata": {"name": "workers"},
            "spec": {"clusterName": "demo", "replicas": 3, "selector": {}, "template": {"spec": {
                "clusterName": "demo", "bootstrap": {}, "infrastructureRef": {"apiGroup": "a", "kind": "b", "name": "c"}}}},
            "status": {"replicas": 3, "readyReplicas": 2, "availableReplicas": 2, "upToDateReplicas": 3,
                "conditions": [{"type": "Available", "status": "False", "reason": "NotAvailable",
                    "message": "2 of 3; waiting for Machines (Hangar must act)", "lastTransitionTime": "2027-01-15T08:00:00Z"}]},
        }))
        .unwrap(),
    );
    let plan = seen.plan();
    check_conditions(plan.status.conditions.as_deref().unwrap());
    insta::assert_snapshot!(golden(&plan.steps, &plan.status, &plan.report));
    assert_eq!(plan.wake, Wake::after(now(), PROBE_INTERVAL));
}

#[test]
fn a_status_that_was_written_is_not_written_again() {
    let mut seen = observed(cluster(json!({})));
    seen.infrastructure = Some(infrastructure(Some("api"), true));
    seen.control_plane = Some(control_plane(Some("api"), true));
    seen.connection = Connection::Answering;
    let first = seen.plan().status;
    seen.cluster.status = Some(first.clone());
    seen.now = now() + jiff::SignedDuration::from_hours(1);
    assert_eq!(seen.plan().status, first);
}

#[test]
fn a_cluster_from_a_topology_says_that_it_is_not_built() {
    let mut seen = observed(cluster(json!({"spec": {"infrastructureRef": null, "controlPlaneRef": null,
        "topology": {"classRef": {"name": "class"}, "version": "v1.34.0"}}})));
    (seen.infrastructure, seen.control_plane) = (None, None);
    let plan = seen.plan();
    check_conditions(plan.status.conditions.as_deref().unwrap());
    insta::assert_snapshot!(golden(&plan.steps, &plan.status, &plan.report));
}

#[test]
fn a_paused_cluster_says_so_and_changes_nothing() {
    for more in [
        json!({"spec": {"paused": true}, "metadata": {"finalizers": []}}),
        json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}, "finalizers": []}}),
        json!({"spec": {"paused": true}, "metadata": {"deletionTimestamp": "2027-01-15T08:00:00Z"}}),
    ] {
        let plan = observed(cluster(more)).plan();
        assert!(plan.steps.is_empty());
        let conditions = plan.status.conditions.unwrap();
        assert_eq!(conditions.len(), 1, "{conditions:?}");
        assert_eq!((conditions[0].type_.as_str(), conditions[0].status.as_str()), ("Paused", "True"));
    }
}

/// Trap: the infrastructure must not win a race against a control plane that serves elsewhere.
#[test]
fn whose_endpoint_counts() {
    let none: Option<&str> = None;
    // Cluster's, infrastructure's (provisioned), control plane's; what is set, whether it is a conflict.
    let table = [
        (none, none, none, None, false),
        (none, None, Some("plane"), Some("plane"), false),
        (none, Some("infra"), Some("plane"), Some("plane"), false),
        (none, Some("infra"), None, None, false),
        (Some("given"), Some("infra"), Some("plane"), None, true),
        (Some("infra"), Some("infra"), Some("plane"), Some("plane"), true),
        (Some("plane"), Some("infra"), Some("plane"), None, true),
        (Some("plane"), Some("plane"), Some("plane"), None, false),
    ];
    for (own, published, declared, expected, is_conflict) in table {
        let own = own.map(|host| json!({"host": host, "port": 6443}));
        let mut seen = observed(cluster(json!({"spec": {"controlPlaneEndpoint": own}})));
        seen.infrastructure = Some(infrastructure(published, true));
        seen.control_plane = Some(control_plane(declared, false));
        let plan = seen.plan();
        let set = plan.steps.iter().find_map(|step| match step {
            Step::Write(Write { id, action: Action::Itself(fields) }) if id.kind == "endpoint" => {
                fields["spec"]["controlPlaneEndpoint"]["host"].as_str()
            }
            _ => None,
        });
        assert_eq!(set, expected, "{own:?} {published:?} {declared:?}");
        let raised = plan.status.conditions.unwrap().iter().any(|one| one.type_ == "EndpointConflict");
        assert_eq!(raised, is_conflict, "{own:?} {published:?} {declared:?}");
    }
}

#[test]
fn infrastructure_gives_the_endpoint_where_machines_are_the_control_plane() {
    let mut seen = observed(cluster(json!({})));
    seen.infrastructure = Some(infrastructure(Some("infra"), true));
    let with_machines = json!({"status": {"initialization": {}}});
    seen.control_plane = Some(referred(claimed(), with_machines, Contract::V1Beta2));
    assert_eq!(ids(&seen), ["set endpoint cluster"]);
    seen.control_plane = Some(Read::Absent);
    assert_eq!(ids(&seen), [""; 0], "nobody knows the control plane yet");
    seen.infrastructure = Some(infrastructure(Some("infra"), false));
    seen.control_plane = None;
    assert_eq!(ids(&seen), [""; 0], "not provisioned");
}

#[test]
fn one_failed_probe_is_no_outage() {
    let mut seen = observed(cluster(json!({})));
    seen.infrastructure = Some(infrastructure(Some("api"), true));
    seen.control_plane = Some(control_plane(Some("api"), true));
    seen.connection = Connection::Answering;
    seen.cluster.status = Some(seen.plan().status);
    let status = |seen: &Observed| {
        let conditions = seen.plan().status.conditions.unwrap();
        conditions.into_iter().find(|one| one.type_ == "RemoteConnectionProbe").unwrap().status
    };
    seen.connection = Connection::Failing { why: "timeout".to_owned(), is_lasting: false };
    assert_eq!(status(&seen), "True");
    seen.connection = Connection::Failing { why: "timeout".to_owned(), is_lasting: true };
    assert_eq!(status(&seen), "False");
}

fn worker<K: serde::de::DeserializeOwned>(kind: &str, name: &str, owner: Option<&str>) -> K {
    let owners = owner
        .map(|kind| json!([{"apiVersion": CORE, "kind": kind, "name": "x", "uid": "x", "controller": true}]));
    let machine = json!({"clusterName": "demo", "bootstrap": {},
        "infrastructureRef": {"apiGroup": "a", "kind": "b", "name": "c"}});
    let spec = if kind == "Machine" {
        machine
    } else {
        json!({"clusterName": "demo", "selector": {}, "template": {"spec": machine}})
    };
    serde_json::from_value(json!({"apiVersion": CORE, "kind": kind, "spec": spec, "metadata":
        {"name": name, "namespace": "team", "uid": format!("u-{name}"), "ownerReferences": owners}}))
    .unwrap()
}

/// Workers, then the control plane, then the infrastructure, then the finalizer.
#[test]
fn deletion_goes_in_order_and_says_what_it_waits_for() {
    let mut seen = observed(cluster(json!({"metadata": {"deletionTimestamp": "2027-01-15T08:00:00Z"}})));
    seen.infrastructure = Some(infrastructure(Some("api"), true));
    seen.control_plane = Some(control_plane(Some("api"), true));
    seen.deployments = Read::One(worker("MachineDeployment", "workers", None));
    seen.sets = Read::found([
        worker("MachineSet", "owned", Some("MachineDeployment")),
        worker("MachineSet", "alone", None),
    ]);
    seen.machines =
        Read::found([worker("Machine", "owned", Some("MachineSet")), worker("Machine", "single", None)]);
    let mut stages = Vec::new();
    let mut stage = |seen: &Observed| {
        let conditions = seen.plan().status.conditions.unwrap();
        let deleting = conditions.into_iter().find(|one| one.type_ == "Deleting").unwrap();
        stages.push(format!("{}: {}\n  {}", deleting.reason, deleting.message, ids(seen).join("\n  ")));
    };
    stage(&seen);
    seen.machines = Read::unknown("watch broken");
    stage(&seen);
    seen.machines = Read::Absent;
    (seen.deployments, seen.sets) = (Read::Absent, Read::Absent);
    stage(&seen);
    let going = json!({"deletionTimestamp": "2027-01-15T08:00:00Z", "finalizers": ["somebody"]});
    seen.control_plane = Some(referred(going, json!({}), Contract::V1Beta2));
    stage(&seen);
    seen.control_plane = Some(Read::Absent);
    stage(&seen);
    seen.infrastructure = Some(Read::unknown("the CRD is not installed"));
    stage(&seen);
    seen.infrastructure = Some(Read::Absent);
    stage(&seen);
    insta::assert_snapshot!(stages.join("\n"));
}
