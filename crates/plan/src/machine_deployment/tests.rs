//! Rollouts, by example and by property, and the names of sets.

use std::collections::BTreeMap;

use hangar_api::cluster::rollout::DeletionOrder;
use hangar_api::cluster::v1beta2::{Cluster, MachineDeployment};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::checks::{check_conditions, golden};
use crate::flow::{Frontier, Identified};
use crate::machine_set::Traits;

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn limits(desired: i32, max_surge: i32, max_unavailable: i32) -> Limits {
    Limits { desired, max_surge, max_unavailable }
}

fn counts(wanted: i32, existing: i32, available: i32) -> Counts {
    Counts { wanted, existing, available }
}

#[test]
fn limits_are_resolved_as_everywhere() {
    use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
    let share = |text: &str| Some(IntOrString::String(text.to_owned()));
    let number = |number| Some(IntOrString::Int(number));
    let table = [
        (10, None, None, (1, 0)),
        (10, share("25%"), share("25%"), (3, 2)),
        (10, number(0), number(0), (0, 1)),
        (1, share("1%"), share("99%"), (1, 0)),
        (3, number(0), share("10%"), (0, 1)),
        (3, share("nonsense"), None, (1, 0)),
    ];
    for (desired, surge, unavailable, expected) in table {
        let resolved = Limits::new(desired, surge.as_ref(), unavailable.as_ref());
        assert_eq!((resolved.max_surge, resolved.max_unavailable), expected, "{surge:?} {unavailable:?}");
    }
}

#[test]
fn the_largest_numbers_are_numbers_too() {
    use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
    let most = i32::MAX;
    let share = |text: &str| Some(IntOrString::String(text.to_owned()));
    let limits = Limits::new(most, share("9223372036854775807%").as_ref(), share("99%").as_ref());
    assert_eq!((limits.max_surge, limits.desired), (most, most));
    let many = counts(most, most, most);
    let found = intents(&limits, Some(counts(most, 0, 0)), &[many, many, counts(i32::MIN, most, i32::MIN)]);
    assert_eq!(found.current, most);
    assert!(found.others.iter().all(|intent| *intent <= most));
}

#[test]
fn one_pass_of_a_rollout() {
    // Limits, current, others; what is asked of the current one and of the others.
    let table = [
        ("first", limits(3, 1, 0), None, vec![], 3, vec![]),
        ("begin", limits(3, 1, 0), None, vec![counts(3, 3, 3)], 1, vec![3]),
        ("wait for the new one", limits(3, 1, 0), Some(counts(1, 1, 0)), vec![counts(3, 3, 3)], 1, vec![3]),
        ("it is there", limits(3, 1, 0), Some(counts(1, 1, 1)), vec![counts(3, 3, 3)], 1, vec![2]),
        ("the old one still goes", limits(3, 1, 0), Some(counts(1, 1, 1)), vec![counts(2, 3, 2)], 1, vec![2]),
        ("the next", limits(3, 1, 0), Some(counts(1, 1, 1)), vec![counts(2, 2, 2)], 2, vec![2]),
        ("without surge", limits(3, 0, 1), None, vec![counts(3, 3, 3)], 0, vec![2]),
        (
            "broken ones first",
            limits(3, 1, 0),
            Some(counts(0, 0, 0)),
            vec![counts(3, 3, 3), counts(1, 1, 0)],
            0,
            vec![3, 0],
        ),
        ("scaled down meanwhile", limits(1, 1, 0), Some(counts(2, 2, 2)), vec![counts(2, 2, 2)], 1, vec![0]),
        ("scaled up", limits(5, 1, 0), Some(counts(3, 3, 3)), vec![], 5, vec![]),
        ("to nothing", limits(0, 1, 0), Some(counts(3, 3, 3)), vec![counts(1, 1, 1)], 0, vec![0]),
    ];
    for (name, limits, current, others, expected_current, expected_others) in table {
        let found = intents(&limits, current, &others);
        assert_eq!(found, Intents { current: expected_current, others: expected_others }, "{name}");
    }
}

/// A set in the model: what is asked, and its Machines. Which of them go is what the set's controller decides.
#[derive(Clone, Debug)]
struct Model {
    wanted: i32,
    order: DeletionOrder,
    machines: Vec<(Traits, Fate)>,
}

/// What becomes of a Machine that stays.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    /// It is, or comes to be, available.
    Works,
    /// Its Node works, and a gate keeps it from being available for ever.
    Waits,
    Broken,
}

impl Model {
    fn new(order: DeletionOrder, fates: impl IntoIterator<Item = (Fate, u8)>) -> Self {
        let machine = |(fate, days): (Fate, u8)| {
            let age_seconds = f64::from(days) * 86400.0;
            let (is_broken, is_available) = (fate == Fate::Broken, fate == Fate::Works);
            (Traits { is_broken, is_available, age_seconds, ..Traits::default() }, fate)
        };
        let machines: Vec<_> = fates.into_iter().map(machine).collect();
        Self { wanted: i32::try_from(machines.len()).unwrap(), order, machines }
    }

    fn count(&self, claim: impl Fn(&Traits) -> bool) -> i32 {
        i32::try_from(self.machines.iter().filter(|(traits, _)| claim(traits)).count()).unwrap()
    }

    fn total(&self) -> i32 {
        self.count(|_| true)
    }

    fn working(&self) -> i32 {
        self.count(|traits| traits.is_available && !traits.is_going)
    }

    fn counts(&self) -> Counts {
        Counts { wanted: self.wanted, existing: self.total(), available: self.working() }
    }

    /// What the set's controller does: make what is missing, or delete what is too much in its order.
    fn follow(&mut self) {
        for _ in self.total()..self.wanted {
            // Without a Node, as all that are new.
            self.machines.push((Traits { is_broken: true, ..Traits::default() }, Fate::Works));
        }
        let order = self.order;
        self.machines.sort_by(|(left, _), (right, _)| right.priority(order).total_cmp(&left.priority(order)));
        let surplus = usize::try_from(self.total() - self.wanted).unwrap_or_default();
        for (traits, _) in self.machines.iter_mut().take(surplus) {
            traits.is_going = true;
        }
    }

    fn come(&mut self) {
        for (traits, fate) in &mut self.machines {
            if *fate == Fate::Works {
                (traits.is_broken, traits.is_available) = (false, true);
            }
        }
    }

    fn go(&mut self) {
        self.machines.retain(|(traits, _)| !traits.is_going);
    }
}

fn world() -> impl Strategy<Value = (Limits, DeletionOrder, Vec<Model>)> {
    let order =
        prop::sample::select(vec![DeletionOrder::Random, DeletionOrder::Oldest, DeletionOrder::Newest]);
    let fate = prop::sample::select(vec![Fate::Works, Fate::Works, Fate::Waits, Fate::Broken]);
    let set = prop::collection::vec((fate, 0..40u8), 0..6);
    (0..8i32, 0..4i32, 0..4i32, order, prop::collection::vec(set, 0..3)).prop_map(
        |(desired, surge, unavailable, order, sets)| {
            let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
            let models = sets.into_iter().map(|fates| Model::new(order, fates)).collect();
            (limits(desired, surge, unavailable), order, models)
        },
    )
}

proptest! {
    /// Whatever order Machines come and go in, and for whatever reason some are not available: never above the surge,
    /// never below what must be available, and done in the end. Nobody marked one to be deleted: that wish goes first.
    #[test]
    fn a_rollout_keeps_its_limits_and_converges(
        (limits, order, mut others) in world(),
        choices in prop::collection::vec(0..4u8, 0..200),
    ) {
        let mut current = Model::new(order, []);
        let total =
            |current: &Model, others: &[Model]| current.total() + others.iter().map(Model::total).sum::<i32>();
        let working =
            |current: &Model, others: &[Model]| current.working() + others.iter().map(Model::working).sum::<i32>();
        let most = total(&current, &others).max(limits.desired + limits.max_surge);
        // What was below before may stay below until new ones come; it must not fall further.
        let mut least = working(&current, &others).min(limits.min_available());
        let mut choices = choices.into_iter();
        for _ in 0..400 {
            let counts: Vec<Counts> = others.iter().map(Model::counts).collect();
            let found = intents(&limits, Some(current.counts()), &counts);
            current.wanted = found.current;
            for (set, wanted) in others.iter_mut().zip(found.others) {
                prop_assert!(wanted >= 0 && wanted <= set.wanted, "{} of {}", wanted, set.wanted);
                set.wanted = wanted;
            }
            // The world moves a little, in any order, and in the end always.
            let choice = choices.next().unwrap_or(3);
            for set in std::iter::once(&mut current).chain(others.iter_mut()) {
                if choice != 1 {
                    set.follow();
                }
                if choice == 1 || choice == 3 {
                    set.come();
                }
                if choice >= 2 {
                    set.go();
                }
            }
            prop_assert!(total(&current, &others) <= most, "{} Machines", total(&current, &others));
            let now_working = working(&current, &others);
            prop_assert!(now_working >= least, "{now_working} of {least} work: {current:?} {others:?}");
            least = least.max(now_working.min(limits.min_available()));
        }
        prop_assert_eq!(current.working(), limits.desired);
        prop_assert_eq!(total(&current, &others), limits.desired);
    }
}

fn deployment(more: Value) -> MachineDeployment {
    let mut object = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment",
        "metadata": {"name": "workers", "namespace": "team", "uid": "u-deployment", "generation": 3,
            "finalizers": ["cluster.x-k8s.io/machinedeployment"],
            "labels": {"cluster.x-k8s.io/cluster-name": "demo"},
            "annotations": {"people": "say", "kubectl.kubernetes.io/last-applied-configuration": "{}",
                "hangar.cluster.x-k8s.io/conversion-stash": "{}"},
            "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "demo", "uid": "u-cluster"}]},
        "spec": {
            "clusterName": "demo", "replicas": 3,
            "selector": {"matchLabels": {"cluster.x-k8s.io/deployment-name": "workers"}},
            "template": {
                "metadata": {"labels": {"cluster.x-k8s.io/deployment-name": "workers"},
                    "annotations": {"hangar.cluster.x-k8s.io/conversion-stash": "{}", "note": "x"}},
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

fn observed(deployment: MachineDeployment) -> Observed {
    let cluster: Cluster = serde_json::from_value(json!({"apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster", "metadata": {"name": "demo", "uid": "u-cluster"}, "spec": {}}))
    .unwrap();
    Observed {
        served_version: Read::Absent,
        deployment,
        cluster: Read::One(cluster),
        sets: Read::Absent,
        machines: Read::Absent,
        bootstrap_template: Some(Read::One(())),
        infrastructure_template: Read::One(()),
        refusals: BTreeMap::new(),
        now: now(),
    }
}

fn makes_a_set(step: &Step) -> bool {
    matches!(step.write().action, Action::Create { .. }) && step.id().kind == "machine-set"
}

fn created(observed: &Observed) -> MachineSet {
    let plan = observed.plan();
    let found = plan.steps.iter().find(|step| makes_a_set(step));
    let step = found.unwrap_or_else(|| panic!("{:?}", plan.steps));
    let Action::Create { object, .. } = &step.write().action else { panic!("{step:?}") };
    let mut set: MachineSet = serde_json::from_value(serde_json::to_value(object).unwrap()).unwrap();
    set.metadata.uid = Some(format!("u-{}", set.metadata.name.clone().unwrap()));
    set.metadata.creation_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(observed.now));
    set.metadata.annotations.get_or_insert_default().insert(APPLIED_MARK.to_owned(), "x".to_owned());
    set
}

#[test]
fn the_first_set() {
    let seen = observed(deployment(json!({})));
    let plan = seen.plan();
    check_conditions(plan.status.conditions.as_deref().unwrap());
    let set = created(&seen);
    let set = serde_saphyr::to_string(&set).unwrap();
    insta::assert_snapshot!(format!(
        "{}---\n{set}",
        golden(&Frontier::<Step>::default(), &plan.status, &plan.report)
    ));
}

/// Trap: a set and what comes from it carry none of the annotations that describe the deployment itself.
#[test]
fn annotations_about_the_deployment_stay_there() {
    let set = created(&observed(deployment(json!({}))));
    let text = serde_json::to_string(&set).unwrap();
    assert!(!text.contains("conversion-stash") && !text.contains("last-applied"), "{text}");
    assert!(text.contains("people"), "{text}");
}

#[test]
fn the_same_template_keeps_its_set_and_another_rolls() {
    let mut seen = observed(deployment(json!({})));
    let set = created(&seen);
    seen.sets = Read::One(set.clone());
    let has_create = |seen: &Observed| seen.plan().steps.iter().any(makes_a_set);
    assert!(!has_create(&seen));
    // In place: labels, timeouts, gates, taints.
    let in_place = json!({"spec": {"template": {"metadata": {"labels": {"more": "x"}}, "spec": {
        "minReadySeconds": 5, "deletion": {"nodeDrainTimeoutSeconds": 7},
        "taints": [{"key": "a", "effect": "NoSchedule", "propagation": "Always"}]}}}});
    seen.deployment = deployment(in_place);
    assert!(!has_create(&seen));
    let kept = &seen.plan().objects[0];
    assert_eq!(kept.metadata.name, set.metadata.name);
    assert_eq!(kept.spec.selector, set.spec.selector);
    assert_eq!(kept.spec.template.spec.min_ready_seconds, Some(5));
    for changed in [
        json!({"version": "v1.34.1"}),
        json!({"infrastructureRef": {"name": "large"}}),
        json!({"bootstrap": {"configRef": {"name": "other"}}}),
        json!({"failureDomain": "az2"}),
    ] {
        seen.deployment = deployment(json!({"spec": {"template": {"spec": changed}}}));
        assert!(has_create(&seen));
        assert_ne!(created(&seen).metadata.name, set.metadata.name);
        assert_eq!(created(&seen).metadata.annotations.unwrap()[names::REVISION_ANNOTATION], "2");
    }
}

#[test]
fn a_rollout_by_time_begins_when_it_is_due() {
    let mut seen = observed(deployment(json!({})));
    let set = created(&seen);
    seen.sets = Read::One(set.clone());
    let later = now() + jiff::SignedDuration::from_hours(1);
    seen.deployment = deployment(json!({"spec": {"rollout": {"after": later.to_string()}}}));
    let waiting = seen.plan();
    assert!(!waiting.steps.iter().any(makes_a_set));
    assert_eq!(waiting.wake, Wake::At(later));
    seen.now = later;
    let second = created(&seen);
    assert_ne!(second.metadata.name, set.metadata.name);
    seen.sets = Read::found([set, second]);
    assert!(!seen.plan().steps.iter().any(makes_a_set), "once");
}

#[test]
fn a_template_that_comes_back_is_the_latest_revision() {
    let mut seen = observed(deployment(json!({})));
    let first = created(&seen);
    seen.sets = Read::One(first.clone());
    seen.deployment = deployment(json!({"spec": {"template": {"spec": {"version": "v1.34.1"}}}}));
    let second = created(&seen);
    seen.sets = Read::found([first.clone(), second]);
    seen.deployment = deployment(json!({}));
    let plan = seen.plan();
    assert_eq!(plan.objects[0].metadata.name, first.metadata.name);
    assert_eq!(plan.objects[0].metadata.annotations.clone().unwrap()[names::REVISION_ANNOTATION], "3");
    let annotations = json!({"metadata": {"annotations": {names::REVISION_ANNOTATION: "3"}}});
    assert!(plan.steps.iter().any(|step| step.write().action == Action::Itself(annotations.clone())));
}

#[test]
fn nothing_is_decided_without_the_sets_or_while_paused() {
    let mut seen = observed(deployment(json!({})));
    seen.sets = Read::unknown("watch broken");
    assert!(seen.plan().steps.is_empty());
    check_conditions(seen.plan().status.conditions.as_deref().unwrap());
    let seen = observed(deployment(json!({"spec": {"paused": true}})));
    assert!(seen.plan().steps.is_empty());
    let mut seen = observed(deployment(json!({})));
    seen.cluster = Read::Absent;
    assert!(seen.plan().steps.is_empty());
    // It may be paused: nobody can tell, and nothing goes meanwhile.
    let deleting = json!({"metadata": {"deletionTimestamp": "2027-01-15T08:00:00Z"}});
    let mut seen = observed(deployment(deleting));
    assert!(!seen.plan().steps.is_empty());
    seen.cluster = Read::unknown("watch broken");
    assert!(seen.plan().steps.is_empty());
    assert_ne!(seen.plan().wake, Wake::OnChange);
}

fn condition(seen: &Observed, type_: &str) -> String {
    let conditions = seen.plan().status.conditions.unwrap();
    check_conditions(&conditions);
    conditions.into_iter().find(|condition| condition.type_ == type_).unwrap().message
}

/// Who writes a name that is not there yet, or never will be, loses nothing by it.
#[test]
fn no_set_is_made_of_templates_that_do_not_exist() {
    let mut seen = observed(deployment(json!({})));
    let mut set = created(&seen);
    let makes = |seen: &Observed| seen.plan().steps.iter().any(makes_a_set);
    for missing in [Read::Absent, Read::unknown("the CRD is not installed")] {
        seen.infrastructure_template = missing;
        assert!(!makes(&seen), "the first one waits too");
        assert_ne!(seen.plan().wake, Wake::OnChange);
    }
    seen.infrastructure_template = Read::One(());
    seen.bootstrap_template = Some(Read::Absent);
    assert!(!makes(&seen));
    assert_eq!(
        condition(&seen, "ScalingUp"),
        "waiting for KubeadmConfigTemplate join, which spec.template.spec.bootstrap.configRef names, to be created (the cluster owner must act)"
    );
    seen.bootstrap_template = Some(Read::One(()));
    assert!(makes(&seen));

    // The set that works is kept at size, also where it would have had to shrink first.
    set.status = serde_json::from_value(json!({"replicas": 3, "availableReplicas": 3})).unwrap();
    seen.sets = Read::One(set.clone());
    seen.infrastructure_template = Read::Absent;
    assert_eq!(seen.plan().wake, Wake::OnChange, "the template was needed to make the set, which is there");
    let rolling =
        json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}});
    let typo = json!({"spec": {"infrastructureRef": {"name": "smal"}}});
    for replicas in [3, 4] {
        seen.deployment =
            deployment(json!({"spec": {"replicas": replicas, "rollout": rolling, "template": typo}}));
        let plan = seen.plan();
        assert!(!plan.steps.iter().any(makes_a_set));
        let sizes: Vec<_> =
            plan.objects.iter().map(|set| (set.metadata.name.clone(), set.spec.replicas)).collect();
        assert_eq!(sizes, [(set.metadata.name.clone(), Some(replicas))]);
        assert_eq!(plan.objects[0].spec.template.spec.infrastructure_ref.name, "small");
    }
    assert_eq!(
        condition(&seen, "RollingOut"),
        "waiting for OpenStackMachineTemplate smal, which spec.template.spec.infrastructureRef names, to be created (the cluster owner must act)"
    );
    seen.infrastructure_template = Read::unknown("watch broken");
    assert!(seen.plan().objects.is_empty() && !makes(&seen), "nothing is decided");
    seen.infrastructure_template = Read::One(());
    assert!(makes(&seen));
}

/// The old Machines stay until the control plane serves the version.
#[test]
fn no_set_leads_the_control_plane() {
    let with = |version: &str| deployment(json!({"spec": {"template": {"spec": {"version": version}}}}));
    let mut seen = observed(with("v1.34.10"));
    seen.served_version = Read::One("v1.34.10".to_owned());
    let mut set = created(&seen);
    set.status = serde_json::from_value(json!({"replicas": 3})).unwrap();
    seen.sets = Read::One(set);
    seen.deployment = with("v1.35.8");
    let makes = |seen: &Observed| seen.plan().steps.iter().any(makes_a_set);
    assert!(!makes(&seen));
    let words = condition(&seen, "RollingOut");
    assert!(words.contains("it serves v1.34.10") && words.contains("v1.35.8"), "{words}");
    seen.served_version = Read::unknown("the watch is broken");
    assert!(!makes(&seen));
    for served in [Read::One("v1.35.8".to_owned()), Read::One("v1.35.0".to_owned()), Read::Absent] {
        seen.served_version = served;
        assert!(makes(&seen), "{:?}", seen.served_version);
    }
}

/// Trap: the set that was gone back to is older than the one that was left.
#[test]
fn the_latest_set_is_the_one_of_the_highest_revision() {
    let mut seen = observed(deployment(json!({})));
    let mut back = created(&seen);
    seen.sets = Read::One(back.clone());
    seen.deployment = deployment(json!({"spec": {"template": {"spec": {"version": "v1.34.1"}}}}));
    seen.now = now() + jiff::SignedDuration::from_hours(1);
    let left = created(&seen);
    back.metadata.annotations.as_mut().unwrap().insert(names::REVISION_ANNOTATION.to_owned(), "3".to_owned());
    seen.sets = Read::found([back.clone(), left]);
    seen.deployment =
        deployment(json!({"spec": {"template": {"spec": {"infrastructureRef": {"name": "smal"}}}}}));
    seen.infrastructure_template = Read::Absent;
    let (current, _) = split(&seen, &seen.members());
    assert_eq!(current.unwrap().metadata.name, back.metadata.name);
}

/// Trap: a selector that several deployments share takes only what nobody manages.
#[test]
fn a_wide_selector_steals_nothing() {
    let mut seen = observed(deployment(json!({})));
    let mut mine = created(&seen);
    let mut other = mine.clone();
    other.metadata.name = Some("theirs".to_owned());
    other.metadata.owner_references.as_mut().unwrap()[0].uid = "u-other".to_owned();
    mine.metadata.name = Some("orphan".to_owned());
    mine.metadata.owner_references = None;
    seen.sets = Read::found([mine, other]);
    let adopted: Vec<String> = seen
        .plan()
        .steps
        .iter()
        .map(Identified::id)
        .filter(|id| id.verb == "adopt")
        .map(|id| id.name)
        .collect();
    assert_eq!(adopted, ["orphan"]);
}

/// Trap: who lowers a timeout during a rollout means the Machines of the old sets, which are the ones that go.
#[test]
fn what_changes_in_place_reaches_old_sets_and_sets_that_go() {
    let mut seen = observed(deployment(json!({})));
    let mut old = created(&seen);
    let lowered = json!({"version": "v1.34.1", "deletion": {"nodeDrainTimeoutSeconds": 7}});
    seen.deployment = deployment(json!({"spec": {"template": {"spec": lowered}}}));
    seen.sets = Read::One(old.clone());
    let plan = seen.plan();
    let kept = plan.objects.iter().find(|set| set.metadata.name == old.metadata.name).unwrap();
    assert_eq!(kept.spec.template.spec.deletion.as_ref().unwrap().node_drain_timeout_seconds, Some(7));
    assert_eq!(kept.spec.template.spec.version.as_deref(), Some("v1.34.0"), "it makes the same Machines");
    assert_eq!(kept.spec.selector, old.spec.selector);
    assert_eq!(kept.metadata.annotations.as_ref().unwrap()[names::REVISION_ANNOTATION], "1");
    old.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
    old.metadata.finalizers = Some(vec!["cluster.x-k8s.io/machineset".to_owned()]);
    seen.sets = Read::One(old);
    let released =
        |seen: &Observed| seen.plan().steps.iter().find(|step| step.id().verb == "release").cloned();
    let step = released(&seen).unwrap();
    seen.fold(&step, &crate::flow::Outcome::Done);
    assert_eq!(released(&seen), None, "folded");
    // The same while everything goes.
    seen.deployment.metadata.deletion_timestamp =
        seen.sets.iter().next().unwrap().metadata.deletion_timestamp.clone();
    seen.deployment.spec.template.spec.deletion = None;
    assert!(released(&seen).is_some());
}
