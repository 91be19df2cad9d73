//! Scenarios of MachineSets.

use hangar_api::cluster::rollout::DeletionOrder;
use hangar_api::cluster::v1beta2::Cluster;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::*;
use crate::checks::{check_conditions, golden};
use crate::flow::{Action, Identified as _, Wake};

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

fn set(more: Value) -> MachineSet {
    let mut object = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet",
        "metadata": {"name": "workers-x", "namespace": "team", "uid": "u-set", "generation": 1,
            "finalizers": ["cluster.x-k8s.io/machineset"],
            "labels": {"cluster.x-k8s.io/cluster-name": "demo", "cluster.x-k8s.io/deployment-name": "workers"},
            "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment",
                "name": "workers", "uid": "u-deployment", "controller": true}]},
        "spec": {
            "clusterName": "demo", "replicas": 2,
            "selector": {"matchLabels": {"machine-template-hash": "x"}},
            "template": {
                "metadata": {"labels": {"machine-template-hash": "x"}, "annotations": {"note": "n"}},
                "spec": {
                    "clusterName": "demo", "version": "v1.34.0",
                    "bootstrap": {"configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfigTemplate", "name": "join"}},
                    "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackMachineTemplate", "name": "small"},
                },
            },
        },
    });
    merge(&mut object, more);
    serde_json::from_value(object).unwrap()
}

fn template(kind: &str) -> Read<Template> {
    Read::One(Template {
        api_version: format!("{kind}.cluster.x-k8s.io/v1"),
        metadata: serde_json::from_value(json!({"name": "small", "uid": format!("u-{kind}"), "ownerReferences": [{
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "demo", "uid": "u-cluster"}]}))
        .unwrap(),
        template: json!({"metadata": {"labels": {"from": "template"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}, "spec": {"of": kind}}),
    })
}

fn observed(set: MachineSet) -> Observed {
    let cluster: Cluster = serde_json::from_value(json!({"apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster", "metadata": {"name": "demo", "uid": "u-cluster"}, "spec": {}}))
    .unwrap();
    Observed {
        served_version: Read::Absent,
        set,
        cluster: Read::One(cluster),
        deployment: None,
        machines: Read::Absent,
        bootstrap_template: Some(template("bootstrap")),
        infrastructure_template: template("infrastructure"),
        clones: BTreeMap::new(),
        refusals: BTreeMap::new(),
        now: now(),
    }
}

fn ids(observed: &Observed) -> Vec<String> {
    let plan = observed.plan();
    check_conditions(plan.status.conditions.as_deref().unwrap_or_default());
    plan.steps.iter().map(|step| step.id().to_string()).collect()
}

/// A Machine of the set, `days` old.
fn machine(name: &str, slot: u32, days: i64, more: Value) -> Machine {
    let created = now() - jiff::SignedDuration::from_hours(24 * days);
    let mut one = desired::machine(&set(json!({})), name, slot);
    one.metadata.uid = Some(format!("u-{name}"));
    one.metadata.creation_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(created));
    let mut object = serde_json::to_value(&one).unwrap();
    let status = json!({"status": {"nodeRef": {"name": name}, "conditions": [
        {"type": "NodeHealthy", "status": "True", "reason": "x", "message": "", "lastTransitionTime": "2027-01-15T08:00:00Z"},
        {"type": "Available", "status": "True", "reason": "x", "message": "", "lastTransitionTime": "2027-01-15T08:00:00Z"},
        {"type": "Ready", "status": "True", "reason": "x", "message": "", "lastTransitionTime": "2027-01-15T08:00:00Z"}]}});
    merge(&mut object, status);
    merge(&mut object, more);
    serde_json::from_value(object).unwrap()
}

/// The object that a step makes, if it makes one of that kind.
fn made<'step>(step: &'step Step, kind: &str) -> Option<&'step DynamicObject> {
    match &step.write().action {
        Action::Create { object, .. } if step.id().kind == kind => Some(object),
        _ => None,
    }
}

#[test]
fn machines_are_made_and_then_what_they_refer_to() {
    let mut seen = observed(set(json!({})));
    let first = seen.plan();
    check_conditions(first.status.conditions.as_deref().unwrap());
    let steps: Vec<&Step> = first.steps.iter().collect();
    let [step] = steps.as_slice() else { panic!("{steps:?}") };
    let machine = serde_json::to_value(made(step, "machine").unwrap()).unwrap();
    let mut machine: Machine = serde_json::from_value(machine).unwrap();
    machine.metadata.uid = Some("u-machine".to_owned());
    seen.clones.insert(
        machine.metadata.name.clone().unwrap(),
        Clones { bootstrap: Some(Read::Absent), infrastructure: Read::Absent },
    );
    let document = serde_saphyr::to_string(&machine).unwrap();
    seen.machines = Read::One(machine);
    assert!(!seen.plan().steps.iter().any(|step| made(step, "clone").is_some()), "its slot is not recorded");
    record(&mut seen);
    let second = seen.plan();
    let clones: Vec<String> = second
        .steps
        .iter()
        .filter_map(|step| made(step, "clone"))
        .map(|object| serde_saphyr::to_string(object).unwrap())
        .collect();
    assert_eq!((clones.len(), second.steps.len()), (2, 3), "and the next Machine");
    let status = golden(&crate::flow::Frontier::<Step>::default(), &first.status, &first.report);
    insta::assert_snapshot!(format!("{status}---\n{document}---\n{}", clones.join("---\n")));
}

/// Runs the step that records slots.
fn record(seen: &mut Observed) {
    let plan = seen.plan();
    let step = plan.steps.iter().find(|step| step.id().verb == "record");
    seen.fold(step.unwrap_or_else(|| panic!("{:?}", plan.steps)), &Outcome::Done);
}

/// Trap: a Machine that replaces the only one of a set would be named like it, and so would its server and its Node, of
/// which something may still be there.
#[test]
fn a_name_never_comes_back_once_something_could_carry_it() {
    let mut seen = observed(set(json!({"spec": {"replicas": 1}})));
    let mut names = Vec::new();
    for round in 0..3 {
        let plan = seen.plan();
        let step = plan.steps.iter().find(|step| made(step, "machine").is_some()).unwrap();
        names.push(made(step, "machine").unwrap().metadata.name.clone().unwrap());
        seen.fold(step, &Outcome::Created(format!("u-{round}")));
        record(&mut seen);
        assert_eq!(seen.plan().steps.iter().filter(|step| made(step, "clone").is_some()).count(), 2);
        seen.machines = Read::Absent;
        seen.clones.clear();
    }
    assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>().len(), 3, "{names:?}");
    let annotations = seen.set.metadata.annotations.as_mut().unwrap();
    annotations.insert(NEXT_SLOT_ANNOTATION.to_owned(), "x".to_owned());
    assert_eq!(ids(&seen), [""; 0], "nobody can tell which names were used");
    let conditions = seen.plan().status.conditions.unwrap();
    let scaling = conditions.iter().find(|one| one.type_ == "ScalingUp").unwrap();
    assert!(scaling.message.contains(NEXT_SLOT_ANNOTATION), "{scaling:?}");
}

/// An object that was there and is gone is not made again; one that cannot be looked at is not either.
#[test]
fn clones_are_made_once() {
    let mut seen = observed(set(json!({"spec": {"replicas": 1}})));
    seen.machines = Read::One(machine(
        "a",
        0,
        1,
        json!({"status": {"initialization":
        {"bootstrapDataSecretCreated": true, "infrastructureProvisioned": true}}}),
    ));
    let clones = |bootstrap, infrastructure| {
        BTreeMap::from([("a".to_owned(), Clones { bootstrap: Some(bootstrap), infrastructure })])
    };
    seen.clones = clones(Read::Absent, Read::Absent);
    assert_eq!(ids(&seen), [""; 0]);
    seen.machines = Read::One(machine("a", 0, 1, json!({})));
    assert_eq!(ids(&seen), ["create clone KubeadmConfig/a", "create clone OpenStackMachine/a"]);
    seen.clones = clones(Read::unknown("watch broken"), Read::One(()));
    assert_eq!(ids(&seen), [""; 0]);
}

type Change = Box<dyn Fn(&mut Observed)>;

#[test]
fn what_keeps_machines_from_being_made_is_named() {
    let table: Vec<(&str, Change)> = vec![
        ("no template", Box::new(|seen| seen.infrastructure_template = Read::Absent)),
        ("template unknown", Box::new(|seen| seen.bootstrap_template = Some(Read::unknown("no CRD")))),
        ("no cluster", Box::new(|seen| seen.cluster = Read::Absent)),
        ("cluster unknown", Box::new(|seen| seen.cluster = Read::unknown("watch broken"))),
        ("machines unknown", Box::new(|seen| seen.machines = Read::unknown("watch broken"))),
        (
            "disabled",
            Box::new(|seen| {
                seen.set = set(
                    json!({"metadata": {"annotations": {"cluster.x-k8s.io/disable-machine-create": "true"}}}),
                );
            }),
        ),
        (
            "not a template",
            Box::new(|seen| {
                seen.set.spec.template.spec.infrastructure_ref.kind = "OpenStackMachine".to_owned();
            }),
        ),
        (
            "naming",
            Box::new(|seen| {
                seen.set = set(json!({"spec": {"machineNaming": {"template": "{{ .random | upper }}"}}}));
            }),
        ),
    ];
    let mut lines = Vec::new();
    for (name, change) in table {
        let mut seen = observed(set(json!({})));
        change(&mut seen);
        assert_eq!(ids(&seen), [""; 0], "{name}");
        let conditions = seen.plan().status.conditions.unwrap();
        let scaling = conditions.iter().find(|one| one.type_ == "ScalingUp").unwrap();
        lines.push(format!("{name}: {}", scaling.message));
    }
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn no_machine_leads_the_control_plane() {
    let mut seen = observed(set(json!({"spec": {"template": {"spec": {"version": "v1.35.8"}}}})));
    let makes = |seen: &Observed| seen.plan().steps.iter().any(|step| made(step, "machine").is_some());
    assert!(makes(&seen), "a control plane that tells nothing holds nobody");
    for served in [Read::One("v1.34.10".to_owned()), Read::unknown("the watch is broken")] {
        seen.served_version = served;
        assert!(!makes(&seen), "{:?}", seen.served_version);
    }
    seen.served_version = Read::One("v1.35.0".to_owned());
    assert!(makes(&seen));
}

#[test]
fn the_order_in_which_machines_go() {
    let all = || {
        vec![
            machine("a-old", 0, 40, json!({})),
            machine("b-young", 1, 1, json!({})),
            machine("c-broken", 2, 3, json!({"status": {"nodeRef": null}})),
            machine(
                "f-waiting",
                5,
                3,
                json!({"status": {"conditions": [{"type": "NodeHealthy", "status": "True",
                "reason": "x", "message": "", "lastTransitionTime": "2027-01-15T08:00:00Z"}]}}),
            ),
            machine(
                "d-marked",
                3,
                3,
                json!({"metadata": {"annotations": {"cluster.x-k8s.io/delete-machine": ""}}}),
            ),
            machine("e-going", 4, 3, json!({"metadata": {"deletionTimestamp": "2027-01-15T08:00:00Z"}})),
        ]
    };
    let order = |order| {
        let all = all();
        let chosen = surplus::choose(all.iter().collect(), 6, order, now());
        chosen.iter().map(|one| one.metadata.name.clone().unwrap()).collect::<Vec<_>>()
    };
    // Waiting: its Node works, and a gate or the time since keeps it from being available.
    let first = ["e-going", "d-marked", "c-broken", "f-waiting"];
    assert_eq!(order(DeletionOrder::Random), [first.as_slice(), &["a-old", "b-young"]].concat());
    assert_eq!(order(DeletionOrder::Oldest), [first.as_slice(), &["a-old", "b-young"]].concat());
    assert_eq!(order(DeletionOrder::Newest), [first.as_slice(), &["b-young", "a-old"]].concat());
}

#[test]
fn machines_that_go_already_count_as_deleted() {
    let mut seen = observed(set(json!({"spec": {"replicas": 1}})));
    let going = json!({"metadata": {"deletionTimestamp": "2027-01-15T08:00:00Z"}});
    seen.machines = Read::found([machine("a", 0, 1, json!({})), machine("b", 1, 1, going)]);
    assert_eq!(ids(&seen), [""; 0]);
    seen.set.spec.replicas = Some(2);
    assert_eq!(ids(&seen), [""; 0], "the replacement comes when the old one is gone");
}

/// Trap: who lowers a timeout to end a drain means the Machines that are being drained.
#[test]
fn machines_that_go_get_the_timeouts_that_the_template_has_now() {
    let limit =
        json!({"spec": {"replicas": 0, "template": {"spec": {"deletion": {"nodeDrainTimeoutSeconds": 7}}}}});
    let mut seen = observed(set(limit.clone()));
    let going = json!({"metadata": {"deletionTimestamp": "2027-01-15T08:00:00Z"},
        "spec": {"deletion": {"nodeDeletionTimeoutSeconds": 3}}});
    seen.machines = Read::One(machine("a", 0, 1, going));
    assert_eq!(ids(&seen), ["release machine a"]);
    let plan = seen.plan();
    let step = plan.steps.iter().next().unwrap();
    seen.fold(step, &Outcome::Done);
    let Read::One(machine) = &seen.machines else { panic!() };
    let deletion = machine.spec.deletion.clone().unwrap();
    assert_eq!(
        (deletion.node_drain_timeout_seconds, deletion.node_deletion_timeout_seconds),
        (Some(7), None)
    );
    assert_eq!(ids(&seen), [""; 0], "folded");
    // A set that goes itself still tells them.
    let Read::One(machine) = &mut seen.machines else { panic!() };
    machine.spec.deletion = None;
    seen.set = set(limit);
    seen.set.metadata.deletion_timestamp = machine.metadata.deletion_timestamp.clone();
    assert_eq!(ids(&seen), ["release machine a"]);
}

#[test]
fn deletion_waits_for_the_machines() {
    let mut seen = observed(set(json!({"metadata": {"deletionTimestamp": "2027-01-15T08:00:00Z"}})));
    seen.machines = Read::One(machine("a", 0, 1, json!({})));
    assert_eq!(ids(&seen), ["delete machine a"]);
    seen.machines = Read::unknown("watch broken");
    assert_eq!(ids(&seen), [""; 0]);
    seen.machines = Read::Absent;
    assert_eq!(ids(&seen), ["remove finalizer machine-set"]);
}

/// It may be paused: nobody can tell.
#[test]
fn nothing_goes_while_the_cluster_cannot_be_read() {
    let machines = || Read::found([machine("a", 0, 1, json!({})), machine("b", 1, 1, json!({}))]);
    let smaller = json!({"spec": {"replicas": 1}});
    for more in [smaller, json!({"metadata": {"deletionTimestamp": "2027-01-15T08:00:00Z"}})] {
        let mut seen = observed(set(more));
        seen.machines = machines();
        assert!(!ids(&seen).is_empty());
        seen.cluster = Read::unknown("watch broken");
        assert_eq!(ids(&seen), [""; 0]);
        assert_ne!(seen.plan().wake, Wake::OnChange);
    }
}

#[test]
fn orphans_are_adopted_and_others_left_alone() {
    let mut seen = observed(set(json!({})));
    let orphan = json!({"metadata": {"ownerReferences": []}});
    let foreign = json!({"metadata": {"ownerReferences": [], "labels": {"machine-template-hash": "y"}}});
    seen.machines = Read::found([machine("a", 0, 1, orphan), machine("b", 1, 1, foreign)]);
    assert_eq!(ids(&seen)[0], "adopt machine a");
    assert!(!ids(&seen).contains(&"adopt machine b".to_owned()));
}

#[test]
fn a_template_change_in_place_keeps_what_a_machine_is() {
    let mut seen = observed(set(json!({"spec": {"replicas": 1}})));
    seen.machines = Read::One(machine("a", 0, 1, json!({})));
    seen.set = set(json!({"spec": {"replicas": 1, "template": {"metadata": {"labels": {"new": "label"}},
        "spec": {"version": "v1.35.0", "minReadySeconds": 9}}}}));
    let kept = &seen.plan().objects[0];
    assert_eq!(kept.spec.version.as_deref(), Some("v1.34.0"));
    assert_eq!(kept.spec.min_ready_seconds, Some(9));
    assert_eq!(kept.metadata.labels.clone().unwrap()["new"], "label");
    assert_eq!(kept.spec.infrastructure_ref.name, "a");
}

#[test]
fn a_template_gets_the_cluster_as_one_more_owner_and_only_once() {
    let mut observed = observed(set(json!({"metadata": {"finalizers": [names::MACHINE_SET_FINALIZER]}})));
    let owned = |plan: &Plan<Step, MachineSetStatus, Machine>| -> Vec<Vec<String>> {
        let claims = plan.steps.iter().filter_map(|step| match &step.write().action {
            Action::Change { fields, .. } if step.id().to_string().starts_with("own template") => {
                let owners = fields["metadata"]["ownerReferences"].as_array().unwrap();
                Some(owners.iter().map(|owner| owner["name"].as_str().unwrap().to_owned()).collect())
            }
            _ => None,
        });
        claims.collect()
    };
    assert!(owned(&observed.plan()).is_empty());
    let Read::One(template) = &mut observed.infrastructure_template else { panic!() };
    let owner = &mut template.metadata.owner_references.as_mut().unwrap()[0];
    (owner.name, owner.uid) = ("other".to_owned(), "u-other".to_owned());
    assert_eq!(owned(&observed.plan()), [["other", "demo"]]);
}
