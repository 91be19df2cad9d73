//! How a Machine ends: its Node is emptied, and what belongs to it goes in order.

use super::*;

fn pod(name: &str, more: Value) -> PodFacts {
    let mut object = json!({"metadata": {"name": name, "namespace": "apps", "uid": format!("u-{name}")}});
    merge(&mut object, more);
    PodFacts::from(serde_json::from_value::<k8s_openapi::api::core::v1::Pod>(object).unwrap())
}

#[test]
fn a_drain_by_pod() {
    let owned = |kind: &str| {
        json!({"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": kind,
        "name": "x", "uid": "x", "controller": true}]}})
    };
    let label = |value: &str| json!({"metadata": {"labels": {"cluster.x-k8s.io/drain": value}}});
    let pods = [
        pod("daemon", owned("DaemonSet")),
        pod("mirror", json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}})),
        pod("skip", label("skip")),
        pod("job", label("wait-completed")),
        pod(
            "job-done",
            json!({"metadata": {"labels": {"cluster.x-k8s.io/drain": "wait-completed"}}, "status": {"phase": "Succeeded"}}),
        ),
        pod("web", owned("ReplicaSet")),
        pod("held", owned("ReplicaSet")),
        pod("leaving", json!({"metadata": {"deletionTimestamp": "2027-01-15T07:00:00Z"}})),
    ];
    let held = PodKey { namespace: "apps".to_owned(), name: "held".to_owned() };
    let refusals = BTreeMap::from([(drain::step(&held), "the budget needs 1".to_owned())]);
    let names = |keys: Vec<&PodKey>| keys.into_iter().map(|key| key.name.clone()).collect::<Vec<_>>();
    let found = drain::drain(&pods, &refusals, false, now());
    assert_eq!(names(found.evict.iter().map(|(key, _)| key).collect()), ["web"]);
    assert_eq!(names(found.leaving.iter().collect()), ["leaving"]);
    assert_eq!(names(found.awaited.iter().collect()), ["job"]);
    assert_eq!(names(found.blocked.iter().map(|one| &one.pod).collect()), ["held"]);
    // Nobody is left to say that it has ended.
    assert!(drain::drain(&pods, &refusals, true, now()).leaving.is_empty());
    assert!(drain::drain(&pods[..3], &refusals, false, now()).is_done());
}

fn deleting(more: Value) -> Machine {
    let mut object = running();
    merge(&mut object, json!({"metadata": {"deletionTimestamp": "2027-01-15T08:00:00Z"}}));
    merge(&mut object, more);
    machine(object)
}

/// Hooks, drain, server, bootstrap configuration, Node, finalizer; each says what it waits for.
#[test]
fn deletion_goes_in_order_and_says_what_it_waits_for() {
    let hook = |name: &str| json!({"metadata": {"annotations": {format!("{name}.delete.hook.machine.cluster.x-k8s.io/x"): ""}}});
    let mut seen = observed(deleting(hook("pre-drain")));
    seen.bootstrap = Some(bootstrapped());
    seen.infrastructure = provisioned();
    seen.node = found(json!({}));
    seen.pods = Read::One(pod("web", json!({})));
    let mut stages = Vec::new();
    let mut stage = |name: &str, seen: &Observed| {
        let conditions = seen.plan().status.conditions.unwrap();
        let deleting = conditions.into_iter().find(|one| one.type_ == "Deleting").unwrap();
        let steps = ids(seen).join(", ");
        stages.push(format!("{name}: {}\n  {}\n  steps: {steps}", deleting.reason, deleting.message));
    };
    stage("hook", &seen);
    seen.machine = deleting(json!({}));
    assert_eq!(tenant_read(&seen), Some(TenantRead::NodeAndPods { name: "node-a".to_owned() }));
    stage("drain", &seen);
    seen.node = found(json!({"spec": {"unschedulable": true}}));
    let key = PodKey { namespace: "apps".to_owned(), name: "web".to_owned() };
    seen.refusals.insert(drain::step(&key), "the budget needs 1".to_owned());
    stage("blocked", &seen);
    seen.pods = Read::unknown("timeout");
    stage("tenant away", &seen);
    seen.pods = Read::Absent;
    seen.machine = deleting(hook("pre-terminate"));
    stage("second hook", &seen);
    seen.machine = deleting(json!({}));
    stage("server", &seen);
    seen.infrastructure = Read::Absent;
    stage("bootstrap", &seen);
    seen.bootstrap = Some(Read::Absent);
    assert_eq!(tenant_read(&seen), Some(TenantRead::Node { name: "node-a".to_owned() }));
    stage("node", &seen);
    seen.node = NodeView::Absent;
    stage("done", &seen);
    insta::assert_snapshot!(stages.join("\n"));
}

type Change = Box<dyn Fn(&mut Observed)>;

#[test]
fn when_a_node_is_left_alone() {
    let base = || {
        let mut seen = observed(deleting(json!({})));
        seen.infrastructure = provisioned();
        seen.bootstrap = None;
        seen.node = found(json!({}));
        seen.pods = Read::One(pod("web", json!({})));
        seen
    };
    let table: Vec<(&str, Change, bool)> = vec![
        ("nothing special", Box::new(|_| {}), false),
        (
            "no server",
            Box::new(|seen| {
                seen.machine.status.as_mut().unwrap().node_ref = None;
                seen.machine.spec.provider_id = None;
            }),
            true,
        ),
        (
            "no API server that it could register with",
            Box::new(|seen| {
                seen.machine.status.as_mut().unwrap().node_ref = None;
                let Read::One(cluster) = &mut seen.cluster else { panic!() };
                cluster.status = None;
            }),
            true,
        ),
        (
            "the cluster goes",
            Box::new(|seen| {
                let Read::One(cluster) = &mut seen.cluster else { panic!() };
                cluster.metadata.deletion_timestamp = seen.machine.metadata.deletion_timestamp.clone();
            }),
            true,
        ),
        (
            "the control plane goes",
            Box::new(|seen| {
                let going = json!({"deletionTimestamp": "2027-01-15T08:00:00Z"});
                seen.control_plane = Some(referred(going, json!({}), Contract::V1Beta2));
            }),
            true,
        ),
        // Trap: a control plane that does not say that it has no Machines.
        (
            "no control plane",
            Box::new(|seen| seen.control_plane = Some(referred(json!({}), json!({}), Contract::V1Beta2))),
            true,
        ),
        (
            "control plane machines",
            Box::new(|seen| {
                seen.control_plane = Some(referred(json!({}), json!({}), Contract::V1Beta2));
                seen.has_control_plane_machines = true;
            }),
            false,
        ),
        (
            "excluded",
            Box::new(|seen| {
                seen.machine = deleting(
                    json!({"metadata": {"annotations": {"machine.cluster.x-k8s.io/exclude-node-draining": ""}}}),
                );
            }),
            true,
        ),
        (
            "too long",
            Box::new(|seen| {
                seen.machine = deleting(json!({"spec": {"deletion": {"nodeDrainTimeoutSeconds": 60}},
                    "status": {"deletion": {"nodeDrainStartTime": "2027-01-15T07:59:00Z"}}}));
            }),
            true,
        ),
        (
            "the server goes",
            Box::new(|seen| {
                let going = json!({"deletionTimestamp": "2027-01-15T08:00:00Z"});
                seen.infrastructure = referred(going, json!({}), Contract::V1Beta1);
            }),
            true,
        ),
    ];
    for (name, change, is_left_alone) in table {
        let mut seen = base();
        change(&mut seen);
        let drains = ids(&seen).iter().any(|id| id.starts_with("evict"));
        assert_eq!(drains, !is_left_alone, "{name}: {:?}", ids(&seen));
    }
}

/// Trap: a Machine that somebody pointed to the server of another.
#[test]
fn the_server_of_another_machine_stays_when_this_one_goes() {
    let mut seen = observed(deleting(json!({})));
    seen.node = NodeView::Absent;
    let of = |name: &str, uid: &str| {
        let owners = json!({"ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "name": name, "uid": uid, "controller": true}]});
        referred(owners, json!({}), Contract::V1Beta1)
    };
    seen.infrastructure = of("b", "u-b");
    seen.bootstrap = Some(of("b", "u-b"));
    assert_eq!(ids(&seen), ["remove finalizer machine"]);
    seen.infrastructure = of("a", "of an earlier life");
    assert_eq!(ids(&seen), ["delete infrastructure "]);
}

/// A control plane that cannot be read is not one that is missing: the Node would lose its server with all its pods.
#[test]
fn no_server_is_deleted_while_nobody_knows_whether_its_node_must_be_emptied() {
    let mut seen = observed(deleting(json!({})));
    seen.infrastructure = provisioned();
    seen.bootstrap = None;
    seen.control_plane = Some(Read::unknown("watch broken"));
    assert_eq!(ids(&seen), [""; 0]);
    let conditions = seen.plan().status.conditions.unwrap();
    let deleting = conditions.iter().find(|one| one.type_ == "Deleting").unwrap();
    assert!(deleting.message.contains("watch broken"), "{deleting:?}");
    assert_ne!(seen.plan().wake, Wake::OnChange);
    // Where it makes no difference nobody waits for it.
    let Read::One(cluster) = &mut seen.cluster else { panic!() };
    cluster.metadata.deletion_timestamp = seen.machine.metadata.deletion_timestamp.clone();
    assert_eq!(ids(&seen), ["delete infrastructure "]);
}

/// Trap: a budget that holds more pods than one pass asks. Those behind them are asked too, and nobody is asked all the
/// time.
#[test]
fn pods_beyond_one_pass_are_asked_and_none_without_a_pause() {
    use crate::flow::{Ending, Next, ROUNDS, Rounds, Setbacks};
    let held = ROUNDS + 16;
    let pods = || Read::found((0..held).map(|number| pod(&format!("held-{number:03}"), json!({}))));
    let (mut setbacks, mut asked) = (Setbacks::default(), BTreeMap::<String, usize>::new());
    let (mut at, mut passes) = (now(), 0);
    while at < now() + jiff::SignedDuration::from_secs(10) {
        let mut seen = observed(deleting(json!({})));
        seen.infrastructure = provisioned();
        seen.node = found(json!({"spec": {"unschedulable": true}}));
        (seen.pods, seen.now) = (pods(), at);
        let mut rounds = Rounds::default();
        let ending = loop {
            let plan = seen.plan();
            let (step, outcome) = match rounds.next(&plan.steps, &setbacks, at) {
                Next::End(ending) => break ending,
                Next::Recall(step, outcome) => (step, outcome),
                Next::Run(step) => {
                    *asked.entry(step.id().name).or_default() += 1;
                    let outcome = Outcome::refused("the budget needs 1");
                    setbacks.note(&step.id(), &outcome, at, 0.0);
                    rounds.ran(step.id(), outcome.clone());
                    (step, outcome)
                }
            };
            seen.fold(step, &outcome);
        };
        passes += 1;
        if ending != Ending::OutOfRounds {
            at += jiff::SignedDuration::from_secs(1);
        }
        assert!(passes < 50, "it never rests");
    }
    assert_eq!(asked.len(), held);
    assert!(asked.values().all(|times| *times <= 4), "{asked:?}");
}

/// Trap: a Node that registered after the last look is not in the status, and would be left behind.
#[test]
fn a_node_that_was_not_seen_yet_is_searched_before_its_machine_goes() {
    let mut seen = observed(deleting(json!({"status": {"nodeRef": null}})));
    seen.bootstrap = None;
    seen.infrastructure = provisioned();
    let provider_id = "openstack://RegionOne/u-server".to_owned();
    assert_eq!(tenant_read(&seen), Some(TenantRead::FindNode { provider_id, with_pods: true }));
    assert_eq!(ids(&seen), [""; 0]);
    seen.node = found(json!({}));
    seen.pods = Read::One(pod("web", json!({})));
    assert_eq!(ids(&seen), ["cordon node node-a", "evict pod apps/web"]);
    seen.infrastructure = Read::Absent;
    assert_eq!(ids(&seen), ["delete node node-a"]);
    seen.node = NodeView::Absent;
    assert_eq!(ids(&seen), ["remove finalizer machine"]);
    // A tenant that is away holds it for as long as it holds one whose Node cannot be deleted.
    seen.node = NodeView::Unreachable("timeout".to_owned());
    seen.infrastructure = provisioned();
    seen.now = Timestamp::from_second(1_800_000_000).unwrap();
    assert_eq!(ids(&seen), [""; 0]);
    seen.now += jiff::SignedDuration::from_secs(10);
    assert_eq!(ids(&seen), ["delete infrastructure "]);
}

#[test]
fn a_node_that_cannot_be_deleted_holds_its_machine_for_a_while() {
    let mut seen = observed(deleting(json!({})));
    seen.bootstrap = None;
    seen.node = NodeView::Unreachable("timeout".to_owned());
    seen.now = Timestamp::from_second(1_800_000_000).unwrap();
    assert_eq!(ids(&seen), [""; 0]);
    seen.now += jiff::SignedDuration::from_secs(10);
    assert_eq!(ids(&seen), ["remove finalizer machine"]);
    seen.machine = deleting(json!({"spec": {"deletion": {"nodeDeletionTimeoutSeconds": 0}}}));
    assert_eq!(ids(&seen), [""; 0], "without end");
}
