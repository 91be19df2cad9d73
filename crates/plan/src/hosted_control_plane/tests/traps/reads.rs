//! Traps about reads that failed.

use super::*;

#[test]
fn nothing_follows_from_a_failed_read() {
    let unknown = || "the watch is not synced";
    let mut observed = all_ready(&json!({}));
    observed.cluster = Read::unknown(unknown());
    let plan = checked(&observed);
    assert!(plan.objects.is_empty() && plan.steps.is_empty());

    let mut observed = all_ready(&json!({}));
    for read in observed.secrets.values_mut() {
        *read = Read::unknown(unknown());
    }
    let plan = checked(&observed);
    assert_eq!(mints(&plan), []);
    // Its template names what was not read: left as it is, it rolls nobody.
    assert_eq!(kinds(&plan, "Deployment"), ["demo-controller-manager", "demo-scheduler"]);

    // A certificate does not lose its names because the Service could not be read.
    let mut observed = all_ready(&json!({}));
    observed.service = Read::unknown(unknown());
    assert_eq!(mints(&checked(&observed)), []);

    let mut observed = all_ready(&json!({}));
    observed.etcd = Read::unknown(unknown());
    observed.api_server = Read::unknown(unknown());
    let plan = checked(&observed);
    assert_eq!(kinds(&plan, "StatefulSet"), Vec::<String>::new());
    assert_eq!(condition_status(&plan, conditions::available::TYPE), "Unknown NotReadable");
    assert_eq!(plan.status.ready_replicas, Some(1), "what was not read stays");

    let mut observed = all_ready(&json!({}));
    delete(&mut observed);
    for read in [&mut observed.api_server, &mut observed.controller_manager, &mut observed.scheduler] {
        *read = Read::unknown(unknown());
    }
    assert!(checked(&observed).steps.is_empty(), "etcd must not go before API servers are seen to be gone");
}

/// What comes back without a change wakes nobody.
#[test]
fn what_could_not_be_read_is_looked_at_again() {
    let mut observed = all_ready(&json!({}));
    let soon = Wake::after(observed.now, std::time::Duration::from_secs(30));
    assert_ne!(checked(&observed).wake, soon);
    observed.api_server_pods = Read::unknown("the watch is broken");
    assert_eq!(checked(&observed).wake, soon);
    let mut observed = all_ready(&json!({}));
    observed.secrets.insert(Material::ClusterAuthority, Read::unknown("a timeout"));
    let plan = checked(&observed);
    assert_eq!(plan.wake, soon);
    let valid =
        plan.status.conditions.iter().find(|one| one.type_ == conditions::certificates_valid::TYPE).unwrap();
    assert!(valid.message.contains("a timeout"), "{valid:?}");
    observed.cluster = Read::unknown("the watch is broken");
    assert_eq!(checked(&observed).wake, soon);
}

/// Who waits for a step that does not work is told why it does not.
#[test]
fn conditions_repeat_what_went_wrong() {
    let message = |observed: &Observed, type_: &str| {
        let conditions = checked(observed).status.conditions;
        conditions.into_iter().find(|one| one.type_ == type_).unwrap().message
    };
    let fail = |observed: &mut Observed, is_it: fn(&Step) -> bool, outcome: &Outcome| {
        let plan = checked(observed);
        let step = plan.steps.iter().find(|step| is_it(step)).unwrap_or_else(|| panic!("{:?}", plan.steps));
        observed.fold(step, outcome);
    };
    let mut observed = created(&json!({"certSANs": ["ä"]}));
    settle(&mut observed);
    observed.secrets.insert(Material::ApiServer, Read::Absent);
    let failed = Outcome::failed("MintingFailed", "\"ä\" is not a DNS name");
    fail(&mut observed, |step| matches!(step, Step::Own(OwnStep::Mint(_))), &failed);
    let words = message(&observed, conditions::certificates_valid::TYPE);
    assert!(words.contains("is not a DNS name"), "{words}");

    let mut observed = all_ready(&json!({}));
    if let Read::One(infrastructure) = &mut observed.infrastructure {
        infrastructure.endpoint = Endpoint::default();
    }
    let is_it = |step: &Step| is(step, "publish-endpoint", "infrastructure");
    fail(&mut observed, is_it, &Outcome::refused("admission webhook denied it"));
    let words = message(&observed, conditions::endpoint_ready::TYPE);
    assert!(words.contains("OpenStackCluster demo") && words.contains("denied it"), "{words}");

    let mut observed = all_ready(&json!({}));
    observed.tenant = Read::unknown("first look");
    reach_tenant(&mut observed);
    let is_it = |step: &Step| is(step, "apply", "tenant");
    fail(&mut observed, is_it, &Outcome::refused("quota"));
    let words = message(&observed, conditions::workload_ready::TYPE);
    assert!(words.contains("quota"), "{words}");

    let mut observed = all_ready(&json!({}));
    let deployment =
        checked(&observed).objects.iter().map(ObjectIdentity::of).find(|one| one.kind == "Deployment");
    observed.troubles.insert(deployment.unwrap().applying(), "a policy forbids it".to_owned());
    assert_eq!(condition_status(&checked(&observed), conditions::ready::TYPE), "False ObjectRefused");
    let words = message(&observed, conditions::ready::TYPE);
    assert!(words.contains("Deployment team/demo-apiserver") && words.contains("a policy"), "{words}");
}

#[test]
fn a_strange_epoch_is_not_rendered() {
    let mut observed = all_ready(&json!({}));
    let annotations = observed.control_plane.metadata.annotations.as_mut().unwrap();
    annotations.insert(names::EPOCH_ANNOTATION.to_owned(), "2".to_owned());
    let plan = checked(&observed);
    assert!(plan.objects.is_empty() && plan.steps.is_empty());
    assert_eq!(condition_status(&plan, conditions::specification_valid::TYPE), "False NewerEpoch");
    assert_eq!(condition_status(&plan, conditions::available::TYPE), "True Available");
}

/// Trap: during an upgrade no pods in a list that failed look as if all of them were new.
#[test]
fn an_upgrade_waits_while_api_servers_cannot_be_listed() {
    let mut observed = all_ready(&json!({}));
    observed.control_plane.spec.version = "v1.35.2".to_owned();
    observed.api_server_pods = Read::unknown("the watch is broken");
    let plan = checked(&observed);
    assert!(kinds(&plan, "Deployment").is_empty(), "all stay as they are");
    assert!(plan.steps.is_empty(), "{:?}", plan.steps);
    assert_eq!(observed.wanted(), None);
    // One that is not there yet is not made with a version that nobody knows to be right.
    observed.scheduler = Read::Absent;
    assert!(kinds(&checked(&observed), "Deployment").is_empty());
}

#[test]
fn readiness_does_not_flip_because_something_could_not_be_read() {
    let reads: [fn(&mut Observed); 3] = [
        |observed| observed.etcd = Read::unknown("the watch is broken"),
        |observed| observed.api_server = Read::unknown("the watch is broken"),
        |observed| observed.service = Read::unknown("the watch is broken"),
    ];
    for read in reads {
        let mut observed = all_ready(&json!({}));
        read(&mut observed);
        let plan = checked(&observed);
        assert_eq!(condition_status(&plan, conditions::available::TYPE), "Unknown NotReadable");
        assert_eq!((plan.status.ready, plan.status.initialized), (Some(true), Some(true)));
    }
}

/// An endpoint that was given leads nowhere while nothing makes a way to it.
#[test]
fn a_way_in_that_does_not_exist_is_not_available() {
    let gateway = json!({
        "gateway": {"name": "shared", "namespace": "gateways"}, "exposure": {"type": "Gateway"},
        "controlPlaneEndpoint": {"host": "api.example.org", "port": 443},
    });
    let mut observed = api_server_ready(&gateway);
    settle(&mut observed);
    assert_eq!(condition_status(&checked(&observed), conditions::available::TYPE), "False NoEndpoint");
}

#[test]
fn pods_carry_the_version_of_the_image_that_was_given() {
    let label = |tag: &str| {
        let plan = checked(&all_ready(&json!({"deployment": {"apiServer": {"image": {"tag": tag}}}})));
        object(&plan, "Deployment", "demo-apiserver")["spec"]["template"]["metadata"]["labels"]
            [names::VERSION_LABEL]
            .clone()
    };
    assert_eq!(label("v1.34.12"), "v1.34.12");
    assert_eq!(label("patched"), "v1.34.10", "not a version");
}
