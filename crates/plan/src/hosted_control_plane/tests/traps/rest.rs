//! Traps about control planes at rest and in deletion, and about any failed read or step.

use super::*;

#[test]
fn at_rest_nothing_is_done_until_the_first_renewal() {
    let mut observed = all_ready(&json!({}));
    let plan = checked(&observed);
    assert!(plan.steps.is_empty());
    let renewal = secret(&mut observed, Material::OperatorAccess).renew_at().unwrap();
    assert_eq!(plan.wake, Wake::At(renewal));
    observed.control_plane.status = Some(plan.status.clone());
    observed.now = observed.now.checked_add(days(1) / 2).unwrap();
    assert_eq!(checked(&observed).status, plan.status, "time alone writes nothing");
    observed.now = renewal;
    assert!(!checked(&observed).steps.is_empty());
}

/// Trap: everything is named after the Cluster, so a copy of a control plane would find the original's keys and workloads
/// under its own names, and take them along when it is deleted.
#[test]
fn a_copy_that_the_cluster_does_not_mean_does_nothing() {
    let mut observed = all_ready(&json!({}));
    observed.control_plane.metadata.name = Some("copy".to_owned());
    observed.control_plane.metadata.finalizers = None;
    observed.control_plane.metadata.annotations = None;
    observed.control_plane.status = None;
    let plan = checked(&observed);
    assert!(plan.objects.is_empty() && plan.steps.is_empty());
    assert_eq!(condition_status(&plan, conditions::available::TYPE), "False NotReferenced");
    let message =
        &plan.status.conditions.iter().find(|one| one.type_ == conditions::ready::TYPE).unwrap().message;
    assert!(message.contains("HostedControlPlane demo-plane"), "{message}");
    assert!(tenant_objects(&observed).is_empty());
    // One that was meant before still serves, and says that nobody looks after it.
    let mut observed = all_ready(&json!({}));
    let Read::One(cluster) = &mut observed.cluster else { panic!() };
    cluster.control_plane = None;
    let plan = checked(&observed);
    assert!(plan.objects.is_empty() && plan.steps.is_empty());
    assert_eq!(condition_status(&plan, conditions::available::TYPE), "True Available");
    assert_eq!(condition_status(&plan, conditions::ready::TYPE), "False NotReferenced");
}

#[test]
fn a_deleted_control_plane_that_nobody_owned_is_let_go() {
    let mut observed = created(&json!({}));
    observed.cluster = Read::Absent;
    observed.control_plane.metadata.owner_references = None;
    observed.control_plane.metadata.finalizers =
        Some(vec![hangar_api::names::HOSTED_CONTROL_PLANE_FINALIZER.to_owned()]);
    let epoch = [(names::EPOCH_ANNOTATION.to_owned(), Epoch::CURRENT.as_str().to_owned())];
    observed.control_plane.metadata.annotations = Some(epoch.into());
    assert_eq!(condition_status(&checked(&observed), conditions::available::TYPE), "False NoOwner");
    delete(&mut observed);
    let plan = checked(&observed);
    assert!(plan.steps.iter().next().is_some_and(|step| is(step, "release", "control-plane")));
}

/// A write for each of the twenty objects that go would wake everybody who watches control planes, each time.
#[test]
fn the_condition_of_a_deletion_changes_by_phase_and_not_by_object() {
    let mut observed = all_ready(&json!({}));
    delete(&mut observed);
    let message = |observed: &Observed| {
        let conditions = checked(observed).status.conditions;
        conditions.into_iter().find(|one| one.type_ == conditions::deleting::TYPE).unwrap().message
    };
    settle(&mut observed);
    assert!(message(&observed).contains("demo-apiserver"), "{}", message(&observed));
    observed.scheduler = Read::Absent;
    observed.controller_manager = Read::Absent;
    assert!(message(&observed).contains("demo-apiserver"), "{}", message(&observed));
    observed.api_server = Read::Absent;
    settle(&mut observed);
    let etcd = message(&observed);
    observed.service = Read::Absent;
    observed.tunnel = Read::Absent;
    assert_eq!(message(&observed), etcd);
    observed.etcd = Read::Absent;
    settle(&mut observed);
    assert!(message(&observed).contains("data-demo-etcd-0"), "{}", message(&observed));
    observed.etcd_claims = Read::Absent;
    settle(&mut observed);
    let keys = message(&observed);
    // They go in the order in which they were asked.
    for material in Material::ALL.into_iter().skip(1).rev() {
        observed.secrets.insert(material, Read::Absent);
        assert_eq!(message(&observed), keys, "{material}");
    }
    // One that stays is named.
    observed.secrets.insert(Material::ClusterAuthority, Read::Absent);
    let stays =
        SecretFacts { uid: Some("u".to_owned()), is_ours: true, is_deleting: true, ..SecretFacts::default() };
    observed.secrets.insert(Material::Scheduler, Read::One(stays));
    assert!(message(&observed).contains("demo-scheduler"), "{}", message(&observed));
    assert_eq!(condition_status(&checked(&observed), conditions::available::TYPE), "False Deleting");
}

#[test]
fn what_is_named_after_a_cluster_goes_in_order_when_only_its_label_is_left() {
    let mut observed = all_ready(&json!({}));
    observed.cluster = Read::Absent;
    let metadata = &mut observed.control_plane.metadata;
    metadata.owner_references = None;
    metadata.labels = Some([(hangar_api::names::CLUSTER_NAME_LABEL.to_owned(), "demo".to_owned())].into());
    metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(observed.now));
    let plan = checked(&observed);
    assert!(plan.steps.iter().all(|step| is(step, "delete", "management")) && plan.steps.len() == 3);
}

#[test]
fn facts_of_a_secret_survive_its_annotations() {
    let mut observed = all_ready(&json!({}));
    let facts = secret(&mut observed, Material::ClusterAuthority).clone();
    let metadata = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
        uid: facts.uid.clone(),
        annotations: Some(facts.annotations()),
        finalizers: Some(facts.finalizers.clone()),
        ..Default::default()
    };
    assert_eq!(SecretFacts::of(&metadata), Some(facts));
    assert_eq!(SecretFacts::of(&k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta::default()), None);
}

/// Everything ready, by API servers and members.
static READY: std::sync::LazyLock<Vec<Observed>> = std::sync::LazyLock::new(|| {
    let sizes = [(1, 1), (2, 3), (3, 5)];
    sizes
        .map(|(replicas, members)| all_ready(&json!({"replicas": replicas, "etcd": {"replicas": members}})))
        .into()
});

fn change<T>(read: &mut Read<T>, state: u8) {
    match state {
        0 => *read = Read::Absent,
        1 => *read = Read::unknown("not read"),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Whatever is absent, unknown or there: plans are made, and pass every check.
    #[test]
    fn every_observation_has_a_plan(
        states in proptest::collection::vec(0_u8..3, 30),
        size in 0_usize..3,
        is_deleting: bool,
    ) {
        let mut observed = READY[size].clone();
        let mut states = states.into_iter();
        let mut next = || states.next().unwrap_or_default();
        for read in observed.secrets.values_mut() {
            change(read, next());
        }
        for read in [&mut observed.etcd, &mut observed.api_server, &mut observed.controller_manager, &mut observed.scheduler] {
            let state = next();
            // A workload that exists mounts Secrets that may be gone: that is no plan's fault.
            change(read, state.min(1));
        }
        change(&mut observed.etcd_pods, next());
        change(&mut observed.etcd_members, next());
        change(&mut observed.api_server_pods, next());
        change(&mut observed.service, next());
        change(&mut observed.infrastructure, next());
        if next() == 0 {
            observed.tenant = Read::unknown("not reached");
        }
        if is_deleting {
            delete(&mut observed);
        }
        checked(&observed);
    }
}

#[test]
fn a_lost_answer_changes_nothing_that_is_known() {
    let mut observed = created(&json!({}));
    let plan = checked(&observed);
    let step = plan.steps.iter().next().unwrap();
    let before = format!("{observed:?}");
    observed.fold(step, &Outcome::Lost);
    assert_eq!(format!("{observed:?}"), before);
    observed.fold(step, &Outcome::refused("no"));
    observed.troubles.clear();
    assert_eq!(format!("{observed:?}"), before, "a refusal leaves its words and nothing else");
    assert!(is(step, "claim", "control-plane"));
    assert!(Content::ServiceAccountKeys.is_irreplaceable());
}

/// Trap: a tenant chooses much of what its API server counts by, and it ends in the operator's Prometheus.
#[test]
fn no_program_of_a_tenant_fills_the_operator_s_prometheus() {
    let mut observed = all_ready(&json!({"monitoring": {"podMonitors": {}}}));
    observed.pod_monitors = Read::One(std::collections::BTreeMap::new());
    let plan = checked(&observed);
    let limits: Vec<Value> = kinds(&plan, "PodMonitor")
        .iter()
        .map(|name| object(&plan, "PodMonitor", name)["spec"]["sampleLimit"].clone())
        .collect();
    assert_eq!(limits, [50_000, 400_000, 50_000, 50_000]);
}
