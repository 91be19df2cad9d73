//! Traps about versions: what follows what, what is waited for, and what is never left again.

use super::*;

const ROLLING: &str = conditions::rolling_out::TYPE;
const VALID: &str = conditions::specification_valid::TYPE;

fn version(text: &str) -> KubernetesVersion {
    KubernetesVersion::parse(text).unwrap()
}

fn message(plan: &Plan, type_: &str) -> String {
    let found = plan.status.conditions.iter().find(|condition| condition.type_ == type_);
    found.map(|condition| condition.message.clone()).unwrap_or_default()
}

/// Everything runs with this version, and another one is wanted.
fn wanting(from: &str, to: &str) -> Observed {
    let mut observed = all_ready(&json!({"version": from, "etcd": {"replicas": 3}}));
    let tag = version(from).etcd_tag(Epoch::CURRENT);
    let member = |ordinal: i32| PodFacts { is_ready: true, ..pod(&format!("demo-etcd-{ordinal}"), tag) };
    observed.etcd_pods = Read::found((0..3).map(member));
    let told = |ordinal: i32| MemberFacts {
        name: format!("demo-etcd-{ordinal}"),
        is_leader: ordinal == 1,
        ..MemberFacts::default()
    };
    observed.etcd_members = Read::found((0..3).map(told));
    observed.controller_pods = Read::found(
        ["demo-controller-manager-1", "demo-scheduler-1"]
            .map(|name| PodFacts { is_ready: true, ..pod(name, from) }),
    );
    observed.control_plane.spec.version = to.to_owned();
    observed
}

fn image(plan: &Plan, kind: &str, name: &str) -> String {
    let image = &container(plan, kind, name)["image"];
    image.as_str().unwrap().rsplit(':').next().unwrap().to_owned()
}

fn api_server(plan: &Plan) -> String {
    image(plan, "Deployment", "demo-apiserver")
}

fn evicted(plan: &Plan) -> Option<Step> {
    plan.steps.iter().find(|step| is(step, "evict", "pod")).cloned()
}

#[test]
fn what_served_is_recorded_and_never_left_for_something_older() {
    let observed = wanting("v1.34.10", "v1.34.10");
    let annotations = observed.control_plane.metadata.annotations.as_ref().unwrap();
    assert_eq!(annotations[names::SERVED_VERSION_ANNOTATION], "v1.34.10");
    for (wanted, words) in [
        ("v1.34.9", "cannot be lower than v1.34.10"),
        ("v1.33.12", "cannot be lower than v1.34.10"),
        ("v1.36.0", "upgrade to 1.35 first"),
    ] {
        let plan = checked(&wanting("v1.34.10", wanted));
        assert_eq!(condition_status(&plan, VALID), "False Invalid", "{wanted}");
        assert!(message(&plan, VALID).contains(words), "{}", message(&plan, VALID));
        assert!(plan.objects.is_empty(), "what runs stays as it is");
        assert_eq!(condition_status(&plan, conditions::available::TYPE), "True Available");
    }
    for wanted in ["v1.34.11", "v1.35.8"] {
        assert_eq!(api_server(&checked(&wanting("v1.34.10", wanted))), wanted);
    }
    // What is seen to serve counts before it is recorded, and a record that cannot be read is no absence of one.
    let mut observed = wanting("v1.34.10", "v1.33.0");
    observed.control_plane.metadata.annotations.as_mut().unwrap().remove(names::SERVED_VERSION_ANNOTATION);
    observed.control_plane.status = None;
    assert_eq!(api_server(&checked(&observed)), "v1.34.10");
    settle(&mut observed);
    assert_eq!(condition_status(&checked(&observed), VALID), "False Invalid");
    let mut observed = wanting("v1.34.10", "v1.34.10");
    let record = (names::SERVED_VERSION_ANNOTATION.to_owned(), "latest".to_owned());
    observed.control_plane.metadata.annotations.as_mut().unwrap().extend([record]);
    assert_eq!(condition_status(&checked(&observed), VALID), "False Invalid");
}

#[test]
fn before_anything_served_every_version_can_be_chosen() {
    let mut observed = etcd_started(&json!({"version": "v1.33.0"}));
    observed.api_server = Read::One(workload("api-server", 1, 0, "v1.33.0"));
    observed.api_server_pods = Read::One(pod("demo-apiserver-1", "v1.33.0"));
    for wanted in ["v1.32.0", "v1.36.4"] {
        observed.control_plane.spec.version = wanted.to_owned();
        assert_eq!(api_server(&checked(&observed)), wanted);
    }
}

/// The new pod was never ready: the way back is open. Once one was, it is closed.
#[test]
fn an_upgrade_that_does_not_become_ready_stops_says_why_and_can_be_taken_back() {
    let mut observed = wanting("v1.34.10", "v1.35.8");
    observed.control_plane.spec.replicas = 3;
    observed.api_server = Read::One(WorkloadFacts {
        existing: 4,
        updated: 1,
        ready: 3,
        ..workload("api-server", 3, 3, "v1.35.8")
    });
    let old = (1..=3).map(|n| PodFacts { is_ready: true, ..pod(&format!("demo-apiserver-{n}"), "v1.34.10") });
    let trouble = Some("kube-apiserver: ImagePullBackOff: no such tag".to_owned());
    let new = PodFacts { trouble, ..pod("demo-apiserver-4", "v1.35.8") };
    observed.api_server_pods = Read::found(old.clone().chain([new.clone()]));
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, ROLLING), "True Stopped");
    let words = message(&plan, ROLLING);
    for part in [
        "demo-apiserver-4: kube-apiserver: ImagePullBackOff",
        "0 of 3 are on v1.35.8",
        "spec.version can be set back",
    ] {
        assert!(words.contains(part), "{words}");
    }
    assert_eq!(condition_status(&plan, conditions::available::TYPE), "True Available");
    assert_eq!(plan.status.version.as_deref(), Some("v1.34.10"));
    observed.control_plane.spec.version = "v1.34.10".to_owned();
    let back = checked(&observed);
    assert_eq!((api_server(&back), condition_status(&back, VALID)), ("v1.34.10".into(), "True Valid".into()));
    // Whether it served cannot be seen: nothing is changed.
    let mut unseen = observed.clone();
    unseen.api_server_pods = Read::unknown("the watch is broken");
    assert!(!kinds(&checked(&unseen), "Deployment").contains(&"demo-apiserver".to_owned()));
    let served = PodFacts { is_ready: true, trouble: None, ..new };
    observed.api_server_pods = Read::found(old.chain([served]));
    assert_eq!(api_server(&checked(&observed)), "v1.35.8", "it serves, which is about to be recorded");
    settle(&mut observed);
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, VALID), "False Invalid");
    assert!(plan.objects.is_empty());
}

#[test]
fn a_rollout_says_how_far_it_is() {
    let mut observed = wanting("v1.34.10", "v1.35.8");
    observed.control_plane.spec.replicas = 3;
    observed.api_server = Read::One(WorkloadFacts {
        existing: 4,
        updated: 2,
        ready: 3,
        ..workload("api-server", 3, 3, "v1.35.8")
    });
    let pods = [("a", "v1.34.10"), ("b", "v1.34.10"), ("c", "v1.35.8")];
    observed.api_server_pods =
        Read::found(pods.map(|(name, version)| PodFacts { is_ready: true, ..pod(name, version) }));
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, ROLLING), "True RollingOut");
    assert!(message(&plan, ROLLING).contains("1 of 3 are on v1.35.8"), "{}", message(&plan, ROLLING));
    assert_eq!(plan.status.version.as_deref(), Some("v1.34.10"), "the lowest that serves");
    // Another template of the same version, which nobody has counted yet.
    let mut observed = wanting("v1.34.10", "v1.34.10");
    observed.api_server.iter_mut().for_each(|facts| facts.is_observed = false);
    let words = message(&checked(&observed), ROLLING);
    assert!(words.contains("API servers to be replaced") && !words.contains("1 of 1"), "{words}");
}

/// Between the last API server and the first change of what follows, and while one of two has followed.
#[test]
fn a_rollout_is_not_over_before_the_controllers_follow() {
    let mut observed = wanting("v1.34.10", "v1.35.8");
    observed.api_server = Read::One(workload("api-server", 1, 1, "v1.35.8"));
    observed.api_server_pods =
        Read::found([PodFacts { is_ready: true, ..pod("demo-apiserver-2", "v1.35.8") }]);
    for (controller_manager, count) in [("v1.34.10", "0 of 2"), ("v1.35.8", "1 of 2")] {
        observed.controller_manager = Read::One(workload("controller-manager", 1, 1, controller_manager));
        let plan = checked(&observed);
        assert_eq!(condition_status(&plan, ROLLING), "True RollingOut");
        let words = format!("controller managers and schedulers to be replaced, {count} are on v1.35.8");
        assert!(message(&plan, ROLLING).contains(&words), "{}", message(&plan, ROLLING));
    }
    observed.scheduler = Read::One(workload("scheduler", 1, 1, "v1.35.8"));
    assert_eq!(condition_status(&checked(&observed), ROLLING), "False NotRollingOut");
}

#[test]
fn kubelets_that_are_too_old_hold_an_upgrade() {
    let mut observed = wanting("v1.34.10", "v1.35.8");
    let tenant = observed.tenant.iter_mut().next().unwrap();
    tenant.oldest_kubelet = Some(version("v1.31.2"));
    let plan = checked(&observed);
    assert_eq!(api_server(&plan), "v1.34.10");
    assert_eq!(condition_status(&plan, ROLLING), "True Held");
    let words = message(&plan, ROLLING);
    assert!(words.contains("kubelet v1.31.2") && words.contains("1.32 or newer"), "{words}");
    assert_eq!(plan.status.oldest_kubelet_version.as_deref(), Some("v1.31.2"));
    // A patch of the same minor does not wait for anybody.
    observed.control_plane.spec.version = "v1.34.11".to_owned();
    assert_eq!(api_server(&checked(&observed)), "v1.34.11");
    observed.control_plane.spec.version = "v1.35.8".to_owned();
    observed.tenant.iter_mut().next().unwrap().oldest_kubelet = Some(version("v1.32.0"));
    assert_eq!(api_server(&checked(&observed)), "v1.35.8");
    // How old they are cannot be asked: the version waits, and nothing else does.
    observed.tenant = Read::unknown("connection refused");
    observed.control_plane.spec.replicas = 2;
    let plan = checked(&observed);
    assert_eq!(api_server(&plan), "v1.34.10");
    assert_eq!(object(&plan, "Deployment", "demo-apiserver")["spec"]["replicas"], 2);
    assert_eq!(condition_status(&plan, ROLLING), "True Held");
    assert!(message(&plan, ROLLING).contains("connection refused"), "{}", message(&plan, ROLLING));
}

/// A tag of the image is a version like any other.
#[test]
fn a_given_tag_waits_as_a_version_does() {
    let tagged = |tag: &str| {
        let mut observed = wanting("v1.34.10", "v1.34.10");
        let image = json!({"apiServer": {"image": {"tag": tag}}});
        observed.control_plane.spec.settings.deployment = serde_json::from_value(image).unwrap();
        observed
    };
    let mut observed = tagged("v1.35.8");
    assert_eq!(api_server(&checked(&observed)), "v1.35.8");
    observed.tenant.iter_mut().next().unwrap().oldest_kubelet = Some(version("v1.31.2"));
    let plan = checked(&observed);
    assert_eq!(api_server(&plan), "v1.34.10");
    let labels = &object(&plan, "Deployment", "demo-apiserver")["spec"]["template"]["metadata"]["labels"];
    assert_eq!(labels["app.kubernetes.io/version"], "v1.34.10");
    assert_eq!(condition_status(&plan, ROLLING), "True Held");
    assert_eq!(condition_status(&checked(&tagged("v1.99.0")), VALID), "False Invalid");
    assert_eq!(api_server(&checked(&tagged("1.34.10"))), "1.34.10", "as it was written");
    assert_eq!(api_server(&checked(&tagged("patched"))), "patched", "it is no version");
    // etcd follows what API servers will be.
    let mut observed = wanting("v1.36.4", "v1.36.4");
    let next = json!({"apiServer": {"image": {"tag": "v1.37.1"}}});
    observed.control_plane.spec.settings.deployment = serde_json::from_value(next).unwrap();
    settle(&mut observed);
    let plan = checked(&observed);
    assert_eq!(image(&plan, "StatefulSet", "demo-etcd"), "3.7.3-0");
    assert_eq!(api_server(&plan), "v1.36.4");
}

/// There would be no way back from it.
#[test]
fn a_series_of_etcd_that_does_not_exist_is_refused() {
    for (tag, is_refused) in [("3.16.6-0", true), ("3.5.9-0", true), ("3.6.17-0", false), ("patched", false)]
    {
        let mut observed = wanting("v1.34.10", "v1.34.10");
        let etcd = observed.control_plane.spec.settings.etcd.get_or_insert_default();
        etcd.container.image = serde_json::from_value(json!({"tag": tag})).unwrap();
        let plan = checked(&observed);
        assert_eq!(condition_status(&plan, VALID) == "False Invalid", is_refused, "{tag}");
        assert!(!is_refused || message(&plan, VALID).contains("spec.etcd.image.tag"), "{tag}");
    }
    for record in ["9.9.0", "latest"] {
        let mut observed = wanting("v1.34.10", "v1.34.10");
        let record = (names::ETCD_VERSION_ANNOTATION.to_owned(), record.to_owned());
        observed.control_plane.metadata.annotations.as_mut().unwrap().extend([record]);
        assert_eq!(condition_status(&checked(&observed), VALID), "False Invalid");
    }
}

/// Labels are anybody's who may create a pod, and what is recorded has no way back.
#[test]
fn a_version_that_hangar_could_not_have_started_is_not_believed() {
    for strange in ["v1.99.0", "v1.36.4", "v1.4294967295.0"] {
        let mut observed = wanting("v1.34.10", "v1.34.10");
        let pods = observed.api_server_pods.iter().cloned();
        let stranger = PodFacts { is_ready: true, ..pod("stranger", strange) };
        observed.api_server_pods = Read::found(pods.chain([stranger]).collect::<Vec<_>>());
        let plan = checked(&observed);
        assert!(!plan.steps.iter().any(|step| is(step, "record", "control-plane")), "{strange}");
        assert_eq!(condition_status(&plan, VALID), "True Valid", "{strange}");
    }
}

/// An earlier Hangar kept no record, and none of its API servers is ready now.
#[test]
fn what_the_status_says_of_an_earlier_hangar_counts_as_served() {
    let mut observed = wanting("v1.34.10", "v1.36.4");
    observed.control_plane.metadata.annotations.as_mut().unwrap().remove(names::SERVED_VERSION_ANNOTATION);
    observed.api_server_pods.iter_mut().for_each(|pod| pod.is_ready = false);
    let status = json!({"initialized": true, "version": "v1.34.10"});
    observed.control_plane.status = serde_json::from_value(status).unwrap();
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, VALID), "False Invalid");
    assert!(message(&plan, VALID).contains("upgrade to 1.35 first"), "{}", message(&plan, VALID));
}

/// What an upgrade waits for is not passed by.
#[test]
fn a_deployment_that_is_deleted_comes_back_with_what_served() {
    let mut observed = wanting("v1.34.10", "v1.35.8");
    observed.tenant.iter_mut().next().unwrap().oldest_kubelet = Some(version("v1.31.2"));
    observed.api_server = Read::Absent;
    observed.api_server_pods = Read::Absent;
    assert_eq!(api_server(&checked(&observed)), "v1.34.10");
}

/// Machines follow the status, and their kubelets talk to all API servers.
#[test]
fn the_status_has_the_lowest_version_of_all_that_stay() {
    let mut observed = wanting("v1.34.10", "v1.35.8");
    observed.api_server = Read::One(workload("api-server", 1, 1, "v1.35.8"));
    let pods = [("a", "v1.34.10", false), ("b", "v1.35.8", true)];
    let pods = pods.map(|(name, version, is_ready)| PodFacts { is_ready, ..pod(name, version) });
    observed.api_server_pods = Read::found(pods);
    assert_eq!(checked(&observed).status.version.as_deref(), Some("v1.34.10"));
}

/// Two minors apart, a controller manager does not understand its API servers.
#[test]
fn the_next_minor_waits_for_the_controllers_of_the_last() {
    let mut observed = wanting("v1.34.10", "v1.35.8");
    observed.controller_pods = Read::One(PodFacts { is_ready: true, ..pod("demo-scheduler-1", "v1.33.0") });
    let plan = checked(&observed);
    assert_eq!(api_server(&plan), "v1.34.10");
    assert_eq!(condition_status(&plan, ROLLING), "True Held");
    assert!(message(&plan, ROLLING).contains("one is of v1.33.0"), "{}", message(&plan, ROLLING));
}

#[test]
fn add_ons_follow_the_controllers() {
    let mut observed = wanting("v1.34.10", "v1.35.8");
    observed.api_server = Read::One(workload("api-server", 1, 1, "v1.35.8"));
    observed.api_server_pods = Read::One(PodFacts { is_ready: true, ..pod("demo-apiserver-2", "v1.35.8") });
    let proxy = |observed: &Observed| {
        let proxy = tenant_object(observed, "DaemonSet", "kube-proxy").unwrap();
        proxy["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap().to_owned()
    };
    assert!(proxy(&observed).ends_with(":v1.34.10"), "{}", proxy(&observed));
    assert_eq!(image(&checked(&observed), "Deployment", "demo-scheduler"), "v1.35.8");
    for pod in observed.controller_pods.iter_mut() {
        pod.version = Some("v1.35.8".to_owned());
    }
    assert!(proxy(&observed).ends_with(":v1.35.8"), "{}", proxy(&observed));
}

/// etcd's members one by one, all healthy, the leader last; then API servers.
#[test]
fn etcd_comes_first_and_its_leader_last() {
    let mut observed = wanting("v1.36.4", "v1.37.1");
    let plan = checked(&observed);
    assert_eq!(
        (image(&plan, "StatefulSet", "demo-etcd").as_str(), api_server(&plan).as_str()),
        ("3.6.16-0", "v1.36.4")
    );
    let record = plan.steps.iter().find(|step| is(step, "record", "control-plane")).unwrap().clone();
    observed.fold(&record, &Outcome::Lost);
    assert_eq!(
        image(&checked(&observed), "StatefulSet", "demo-etcd"),
        "3.6.16-0",
        "not before it is recorded"
    );
    observed.fold(&record, &Outcome::Done);
    let plan = checked(&observed);
    assert_eq!(
        (image(&plan, "StatefulSet", "demo-etcd").as_str(), api_server(&plan).as_str()),
        ("3.7.3-0", "v1.36.4")
    );
    assert_eq!(evicted(&plan), None, "the StatefulSet has not got it yet");
    observed.etcd = Read::One(workload("etcd", 3, 3, "3.7.3-0"));
    for (number, name) in ["demo-etcd-0", "demo-etcd-2", "demo-etcd-1"].into_iter().enumerate() {
        let plan = checked(&observed);
        assert_eq!(condition_status(&plan, ROLLING), "True RollingOut");
        assert!(
            message(&plan, ROLLING).contains(&format!("{number} of 3 are on 3.7.3-0")),
            "{}",
            message(&plan, ROLLING)
        );
        assert_eq!(api_server(&plan), "v1.36.4");
        let step = evicted(&plan).unwrap();
        assert_eq!(flow::Identified::id(&step).name, name);
        observed.fold(&step, &Outcome::Done);
        assert_eq!(evicted(&checked(&observed)), None, "one at a time");
        let pod = observed.etcd_pods.iter_mut().find(|pod| pod.name == name).unwrap();
        *pod = PodFacts { uid: "new".to_owned(), ..super::pod(name, "3.7.3-0") };
        assert_eq!(evicted(&checked(&observed)), None, "it is not ready yet");
        observed.etcd_pods.iter_mut().find(|pod| pod.name == name).unwrap().is_ready = true;
    }
    let plan = checked(&observed);
    assert_eq!((evicted(&plan), api_server(&plan).as_str()), (None, "v1.37.1"));
    // It is taken back, and even the StatefulSet is gone: etcd stays.
    observed.control_plane.spec.version = "v1.36.4".to_owned();
    observed.etcd = Read::Absent;
    let plan = checked(&observed);
    assert_eq!(
        (image(&plan, "StatefulSet", "demo-etcd").as_str(), api_server(&plan).as_str()),
        ("3.7.3-0", "v1.36.4")
    );
}

#[test]
fn no_member_is_restarted_unless_all_are_healthy() {
    let mut ready = wanting("v1.36.4", "v1.37.1");
    settle(&mut ready);
    ready.etcd = Read::One(workload("etcd", 3, 3, "3.7.3-0"));
    assert!(evicted(&checked(&ready)).is_some());
    let faults: [fn(&mut Observed); 7] = [
        |observed| observed.etcd_pods.iter_mut().next().unwrap().is_ready = false,
        |observed| observed.etcd_pods.iter_mut().next().unwrap().is_deleting = true,
        |observed| observed.etcd_pods.retain(|pod| pod.name != "demo-etcd-2"),
        |observed| observed.etcd_members.retain(|member| member.name != "demo-etcd-2"),
        |observed| {
            observed.etcd_members.iter_mut().for_each(|member| member.alarms = [Alarm::NoSpace].into());
        },
        |observed| observed.etcd_members = Read::unknown("connection refused"),
        |observed| observed.etcd_claims.iter_mut().next().unwrap().is_deleting = true,
    ];
    for (number, fault) in faults.into_iter().enumerate() {
        let mut observed = ready.clone();
        fault(&mut observed);
        let plan = checked(&observed);
        assert_eq!(evicted(&plan), None, "{number}");
        assert_eq!(condition_status(&plan, ROLLING), "True RollingOut", "{number}");
    }
}

/// There is no way back for etcd: it does not begin what API servers cannot follow.
#[test]
fn etcd_does_not_begin_while_kubelets_hold_the_upgrade() {
    let mut observed = wanting("v1.36.4", "v1.37.1");
    observed.tenant.iter_mut().next().unwrap().oldest_kubelet = Some(version("v1.33.0"));
    settle(&mut observed);
    let plan = checked(&observed);
    assert_eq!((image(&plan, "StatefulSet", "demo-etcd").as_str(), evicted(&plan)), ("3.6.16-0", None));
    assert_eq!(condition_status(&plan, ROLLING), "True Held");
}

/// All pods read the same files: those that are replaced last must understand them.
#[test]
fn files_are_for_the_oldest_api_server() {
    let mut observed = wanting("v1.33.0", "v1.34.10");
    observed.control_plane.spec.settings.oidc_providers =
        serde_json::from_value(super::files::issuers()).unwrap();
    let api = |plan: &Plan| object(plan, "ConfigMap", "demo-authentication")["data"].to_string();
    assert!(api(&checked(&observed)).contains("apiserver.config.k8s.io/v1beta1"));
    observed.api_server_pods = Read::One(PodFacts { is_ready: true, ..pod("demo-apiserver-2", "v1.34.10") });
    observed.api_server = Read::One(workload("api-server", 1, 1, "v1.34.10"));
    assert!(!api(&checked(&observed)).contains("apiserver.config.k8s.io/v1beta1"));
}

/// API servers make a certificate for themselves that nobody renews.
#[test]
fn api_servers_are_replaced_before_their_own_certificate_ends() {
    let renewed = |plan: &Plan| {
        let annotations =
            &object(plan, "Deployment", "demo-apiserver")["spec"]["template"]["metadata"]["annotations"];
        annotations.get(names::RENEWED_ANNOTATION).cloned()
    };
    let aged = |version: &str, age: i64| {
        let mut observed = wanting(version, version);
        let started = observed.now.checked_sub(days(age)).unwrap();
        observed.api_server_pods.iter_mut().for_each(|pod| pod.started_at = Some(started));
        observed
    };
    for (version, young, old) in [("v1.32.0", 255, 292), ("v1.34.10", 297, 340)] {
        let plan = checked(&aged(version, young));
        assert_eq!(renewed(&plan), None, "{version}");
        assert!(matches!(plan.wake, Wake::At(_)), "it comes back when it is due");
        let mut observed = aged(version, old);
        let value = renewed(&checked(&observed)).unwrap();
        // The template has it now, and pods that have it not yet cause nothing more, however old they are.
        observed.api_server.iter_mut().for_each(|facts| facts.renewed = value.as_str().map(str::to_owned));
        let later = PodFacts { is_ready: true, ..pod("demo-apiserver-9", version) };
        let started_at = observed.now.checked_sub(days(old - 1)).ok();
        observed.api_server_pods = Read::One(PodFacts { started_at, ..later.clone() });
        assert_eq!(renewed(&checked(&observed)), Some(value.clone()));
        let started_at = Some(observed.now);
        observed.api_server_pods =
            Read::One(PodFacts { started_at, renewed: value.as_str().map(str::to_owned), ..later });
        assert_eq!(renewed(&checked(&observed)), Some(value));
    }
    let due = |uid: &str| {
        let mut observed = aged("v1.34.10", 340);
        observed.control_plane.metadata.uid = Some(uid.to_owned());
        renewed(&observed.plan())
    };
    assert_ne!(due("a"), due("b"), "not all control planes at once");
}

/// Another Hangar has another image, and may begin new control planes with another epoch.
#[test]
fn a_newer_manager_replaces_nobody() {
    for spec in [json!({}), super::files::audited()] {
        let mut observed = all_ready(&spec);
        let before = checked(&observed);
        let pod = &object(&before, "Deployment", "demo-apiserver")["spec"]["template"]["spec"];
        let mut containers = pod["containers"].as_array().unwrap().iter();
        let image = containers.find(|container| container["name"] == names::AUDIT_PROXY);
        let image = image.map(|container| container["image"].as_str().unwrap().to_owned());
        observed.api_server.iter_mut().for_each(|facts| facts.audit_proxy.clone_from(&image));
        observed.manager_image = Some("registry.example.org/hangar:v2".to_owned());
        let after = checked(&observed);
        assert_eq!(after.objects, before.objects);
        assert!(after.steps.is_empty(), "{:?}", after.steps);
        let recorded =
            &observed.control_plane.metadata.annotations.as_ref().unwrap()[names::EPOCH_ANNOTATION];
        assert_eq!(recorded, "1", "the recorded one is rendered, whatever new control planes begin with");
    }
}
