//! Traps about certificates and keys.

use jiff::{SignedDuration, Timestamp};

use super::*;

#[test]
fn default_lifetimes_outlive_a_holiday() {
    let mut observed = created(&json!({}));
    settle(&mut observed);
    let left = |facts: &SecretFacts| {
        super::super::fixture::now().duration_until(facts.not_after.unwrap()).as_hours() / 24
    };
    assert_eq!(left(secret(&mut observed, Material::ClusterAuthority)), 3650);
    assert_eq!(left(secret(&mut observed, Material::ApiServer)), 365);
    // And are given back as written, however long: ten years are no overflow.
    let spec = json!({"certificates": {"rootCaCertificateDuration": "175200h", "leafCertificateDuration": "87600h"}});
    let mut observed = created(&spec);
    settle(&mut observed);
    assert_eq!(left(secret(&mut observed, Material::ClusterAuthority)), 7300);
    assert_eq!(left(secret(&mut observed, Material::Scheduler)), 3650);
}

#[test]
fn a_renewal_restarts_nobody() {
    let mut observed = all_ready(&json!({}));
    let before = checked(&observed).objects;
    for material in Material::ALL.into_iter().filter(|material| material.issuer().is_some()) {
        if material == Material::KonnectivityServer {
            // The one that is read only at the start.
            continue;
        }
        let facts = secret(&mut observed, material);
        facts.fingerprint = format!("renewed {material}");
    }
    let plan = checked(&observed);
    assert_eq!(plan.objects, before);
    // The running pod is told, by an annotation of its own.
    assert_eq!(plan.steps.len(), 1);
    assert!(plan.steps.iter().next().is_some_and(|step| is(step, "refresh", "pod")));
    secret(&mut observed, Material::KonnectivityServer).fingerprint = "renewed".to_owned();
    assert_ne!(checked(&observed).objects, before);
}

#[test]
fn token_and_encryption_keys_are_for_life() {
    let mut observed = all_ready(&json!({}));
    for material in
        [Material::ServiceAccountKeys, Material::EncryptionConfiguration, Material::ClusterAuthority]
    {
        let facts = secret(&mut observed, material);
        facts.intent = Some("of another Hangar".to_owned());
    }
    observed.now = observed.now.checked_add(days(30)).unwrap();
    assert_eq!(mints(&checked(&observed)), [Material::OperatorAccess], "our own access lives for a day");
}

#[test]
fn a_leaf_that_ends_with_its_authority_is_not_renewed_for_ever() {
    let mut observed = all_ready(&json!({}));
    let end = observed.now.checked_add(days(1)).unwrap();
    let start = observed.now.checked_sub(days(300)).unwrap();
    for material in [Material::ClusterAuthority, Material::Scheduler] {
        let facts = secret(&mut observed, material);
        (facts.not_before, facts.not_after) = (Some(start), Some(end));
    }
    let plan = checked(&observed);
    assert_eq!(mints(&plan), []);
    assert!(plan.report.waits.iter().any(|wait| wait.to_string().contains("demo-ca")), "{:?}", plan.report);
    observed.now = end;
    assert_eq!(condition_status(&checked(&observed), conditions::certificates_valid::TYPE), "False Expired");
}

/// Trap: a leader whose clock is years ahead would renew all certificates of all tenants, with a beginning that none of
/// their programs has reached.
#[test]
fn nothing_is_minted_or_renewed_while_the_clocks_disagree() {
    let type_ = conditions::certificates_valid::TYPE;
    let mut observed = all_ready(&json!({}));
    let servers = observed.now;
    let set = |observed: &mut Observed, ours| {
        observed.now = ours;
        observed.clocks = Clocks { ours, servers: Some(servers) };
    };
    let renewal = secret(&mut observed, Material::ApiServer).renew_at().unwrap();
    for ours in [renewal, servers.checked_add(days(20 * 365)).unwrap()] {
        set(&mut observed, ours);
        let plan = checked(&observed);
        assert_eq!(mints(&plan), []);
        assert_eq!(condition_status(&plan, type_), "False ClocksDisagree");
        let message = &plan.status.conditions.iter().find(|one| one.type_ == type_).unwrap().message;
        let minute = |time: Timestamp| time.to_string()[..16].to_owned();
        for part in [&minute(ours), &minute(servers), "operator of the management cluster must act"] {
            assert!(message.contains(part), "{part}: {message}");
        }
        assert!(plan.wake.remaining(ours).is_some_and(|wait| wait <= std::time::Duration::from_mins(5)));
    }
    // Where nothing is due, nothing depends on a clock.
    set(&mut observed, servers.checked_add(SignedDuration::from_hours(1)).unwrap());
    assert_eq!(condition_status(&checked(&observed), type_), "True Valid");
    // A kubeconfig that was deleted is not replaced and so not revoked, which is said.
    observed.secrets.insert(Material::Kubeconfig, Read::Absent);
    assert_eq!(condition_status(&checked(&observed), type_), "False ClocksDisagree");
    let mut observed = created(&json!({}));
    set(&mut observed, servers.checked_sub(days(1)).unwrap());
    settle(&mut observed);
    assert!(observed.secrets.values().all(Read::is_absent));
}

#[test]
fn people_may_bring_their_own_authority() {
    let mut observed = created(&json!({}));
    let certificate = Some("certificate of theirs\n".to_owned());
    let given = SecretFacts { fingerprint: "theirs".to_owned(), certificate, ..SecretFacts::default() };
    observed.secrets.insert(Material::ClusterAuthority, Read::One(given));
    settle(&mut observed);
    assert_eq!(secret(&mut observed, Material::ApiServer).issuer.as_deref(), Some("theirs"));
    let plan = checked(&observed);
    assert_eq!(object(&plan, "ConfigMap", "demo-ca-trust")["data"]["ca.crt"], "certificate of theirs\n");
    // And it stays theirs in the end.
    delete(&mut observed);
    let deletes = checked(&observed).steps.iter().filter(|step| is(step, "delete", "management")).count();
    assert_eq!(deletes, Material::ALL.len() - 2, "all but theirs and the one that is not published yet");
}

/// Trap: a Secret that cannot be used must say so, and must not hold the control plane when it goes.
#[test]
fn an_authority_that_cannot_be_used_is_named_and_stops_no_deletion() {
    let mut observed = created(&json!({}));
    let problem = Some("it has no key \"tls.key\"".to_owned());
    let given = SecretFacts { uid: Some("theirs".to_owned()), problem, ..SecretFacts::default() };
    observed.secrets.insert(Material::ClusterAuthority, Read::One(given));
    settle(&mut observed);
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, conditions::certificates_valid::TYPE), "False Unusable");
    let condition =
        plan.status.conditions.iter().find(|one| one.type_ == conditions::certificates_valid::TYPE);
    let message = &condition.unwrap().message;
    assert!(message.contains("demo-ca: it has no key"), "{message}");
    assert!(message.contains("the cluster owner must act"), "{message}");
    assert!(!matches!(observed.secret(Material::ApiServer), Read::One(_)), "nobody signs");
    assert!(kinds(&plan, "StatefulSet").contains(&"demo-etcd".to_owned()), "etcd has its own authority");
    delete(&mut observed);
    for (material, read) in &mut observed.secrets {
        if *material != Material::ClusterAuthority {
            *read = Read::Absent;
        }
    }
    let plan = checked(&observed);
    let steps: Vec<_> = plan.steps.iter().collect();
    assert!(steps.len() == 1 && is(steps[0], "release", "control-plane"), "{steps:?}");
}

#[test]
fn somebody_elses_secret_is_left_alone() {
    let mut observed = created(&json!({}));
    observed.secrets.insert(Material::Scheduler, Read::One(SecretFacts::default()));
    settle(&mut observed);
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, conditions::certificates_valid::TYPE), "False NameTaken");
    assert!(!mints(&plan).contains(&Material::Scheduler));
}

#[test]
fn another_authority_means_other_leaves() {
    let mut observed = all_ready(&json!({}));
    observed.control_plane.metadata.annotations.as_mut().unwrap().remove(names::KEYS_ANNOTATION);
    secret(&mut observed, Material::EtcdAuthority).fingerprint = "another".to_owned();
    let expected = [
        Material::ApiServerEtcdClient,
        Material::EtcdServer,
        Material::EtcdPeer,
        Material::OperatorEtcdClient,
    ];
    assert_eq!(mints(&checked(&observed)), expected);
}
