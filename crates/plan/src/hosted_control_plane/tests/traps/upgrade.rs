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
    let image = &object(plan, kind, name)["spec"]["template"]["spec"]["containers"][0]["image"];
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
    // How old they are cannot be asked.
    observed.tenant = Read::unknown("connection refused");
    assert!(!kinds(&checked(&observed), "Deployment").contains(&"demo-apiserver".to_owned()));
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

/// Arguments are in a file that is read at the start: with a restart they have an effect.
#[test]
fn other_settings_restart_members_one_by_one_and_a_new_hangar_restarts_nobody() {
    let settings = |etcd: Value| {
        let mut observed = wanting("v1.34.10", "v1.34.10");
        let mut merged = json!({"replicas": 3});
        merged.as_object_mut().unwrap().extend(etcd.as_object().unwrap().clone());
        observed.control_plane.spec.settings.etcd = Some(serde_json::from_value(merged).unwrap());
        let template = &object(&checked(&observed), "StatefulSet", "demo-etcd")["spec"]["template"].clone();
        template["metadata"]["annotations"][names::SETTINGS_ANNOTATION].as_str().unwrap().to_owned()
    };
    let before = settings(json!({}));
    for other in [
        json!({"args": {"snapshot-count": "5000"}}),
        json!({"image": {"repository": "registry.example.org/etcd"}}),
        json!({"resources": {"limits": {"memory": "1Gi"}}}),
    ] {
        assert_ne!(before, settings(other.clone()), "{other}");
    }
    let mut observed = wanting("v1.34.10", "v1.34.10");
    observed.etcd.iter_mut().for_each(|facts| facts.settings = Some("new".to_owned()));
    assert_eq!(evicted(&checked(&observed)), None, "they tell nothing of what they began with");
    observed.etcd_pods.iter_mut().for_each(|pod| pod.settings = Some("old".to_owned()));
    for (number, name) in ["demo-etcd-0", "demo-etcd-2", "demo-etcd-1"].into_iter().enumerate() {
        let plan = checked(&observed);
        assert_eq!(condition_status(&plan, ROLLING), "True RollingOut");
        let words = format!("{number} of 3 have the wanted settings");
        assert!(message(&plan, ROLLING).contains(&words), "{}", message(&plan, ROLLING));
        let step = evicted(&plan).unwrap();
        assert_eq!(flow::Identified::id(&step).name, name, "the leader comes last");
        observed.fold(&step, &Outcome::Done);
        assert_eq!(evicted(&checked(&observed)), None, "one at a time");
        let pod = observed.etcd_pods.iter_mut().find(|pod| pod.name == name).unwrap();
        let settings = Some("new".to_owned());
        let version = pod.version.clone();
        *pod = PodFacts { uid: "new".to_owned(), is_ready: true, settings, version, ..super::pod(name, "") };
    }
    assert_eq!(evicted(&checked(&observed)), None);
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
