//! Traps about keys that cannot be replaced, and about control planes that must not go.

use super::*;
use hangar_api::names::ALLOW_DELETION_ANNOTATION;

const VALID: &str = conditions::certificates_valid::TYPE;

fn message(plan: &Plan, type_: &str) -> String {
    let found = plan.status.conditions.iter().find(|condition| condition.type_ == type_);
    found.map(|condition| condition.message.clone()).unwrap_or_default()
}

/// Trap: a key that is gone looks like one that was never made.
#[test]
fn a_key_that_is_gone_is_not_made_anew_once_there_is_data() {
    for material in Material::IRREPLACEABLE {
        let mut observed = all_ready(&json!({}));
        observed.secrets.insert(material, Read::Absent);
        let before = checked(&all_ready(&json!({})));
        let plan = checked(&observed);
        assert_eq!(mints(&plan), [], "{material}");
        assert_eq!(condition_status(&plan, VALID), "False KeyLost", "{material}");
        let name = observed.names().unwrap().secret(material);
        assert!(message(&plan, VALID).contains(&name), "{}", message(&plan, VALID));
        let stays = |plan: &Plan| {
            let is_written = kinds(plan, "Deployment").contains(&"demo-apiserver".to_owned());
            let deployment = |plan: &Plan| object(plan, "Deployment", "demo-apiserver").clone();
            !is_written || deployment(plan) == deployment(&before)
        };
        assert!(stays(&plan), "{material}: what runs stays as it is");
        // Another one in its place is none.
        let stranger = SecretFacts {
            fingerprint: "another".to_owned(),
            ..secret(&mut all_ready(&json!({})), material).clone()
        };
        observed.secrets.insert(material, Read::One(stranger));
        let plan = checked(&observed);
        assert_eq!((mints(&plan).len(), condition_status(&plan, VALID)), (0, "False KeyLost".to_owned()));
        assert!(stays(&plan), "{material}: nobody is made to start with it");
        if material.is_authority() {
            let bundle = format!("demo-{material}-trust");
            assert!(!kinds(&plan, "ConfigMap").contains(&bundle), "nobody is told to trust it");
        }
    }
    let mut observed = etcd_started(&json!({}));
    observed.secrets.insert(Material::EncryptionConfiguration, Read::Absent);
    assert_eq!(mints(&checked(&observed)), [Material::EncryptionConfiguration], "nothing was encrypted yet");
}

#[test]
fn a_key_that_was_deleted_is_copied_let_go_and_made_again() {
    for material in Material::IRREPLACEABLE {
        let mut observed = all_ready(&json!({}));
        let before = secret(&mut observed, material).clone();
        assert!(before.is_held());
        secret(&mut observed, material).is_deleting = true;
        let plan = checked(&observed);
        assert_eq!(condition_status(&plan, VALID), "False Restoring");
        let verbs = |plan: &Plan| {
            plan.steps.iter().map(flow::Identified::id).map(|id| (id.verb, id.name)).collect::<Vec<_>>()
        };
        let name = observed.names().unwrap().secret(material);
        assert_eq!(verbs(&plan), [("mint", format!("{name}-copy"))], "nothing else needs it now");
        // A lost answer lets nothing go.
        observed.fold(plan.steps.iter().next().unwrap(), &Outcome::Lost);
        assert_eq!(verbs(&checked(&observed)), [("mint", format!("{name}-copy"))]);
        settle(&mut observed);
        let after = secret(&mut observed, material).clone();
        assert_eq!((after.fingerprint.clone(), after.is_deleting), (before.fingerprint.clone(), false));
        assert!(after.is_held());
        assert!(matches!(observed.copies[&material], Read::Absent), "{:?}", observed.copies[&material]);
        assert_eq!(condition_status(&checked(&observed), VALID), "True Valid");
    }
}

/// Nothing is let go while nobody knows whether its copy is there.
#[test]
fn a_copy_that_cannot_be_read_stops_everything_about_its_key() {
    let mut observed = all_ready(&json!({}));
    secret(&mut observed, Material::ClusterAuthority).is_deleting = true;
    observed.copies.insert(Material::ClusterAuthority, Read::unknown("the watch is broken"));
    let plan = checked(&observed);
    assert!(plan.steps.is_empty(), "{:?}", plan.steps);
    assert_eq!(condition_status(&plan, VALID), "Unknown NotReadable");
}

#[test]
fn a_finalizer_that_was_removed_comes_back_and_goes_with_the_control_plane() {
    let mut observed = all_ready(&json!({}));
    secret(&mut observed, Material::ServiceAccountKeys).finalizers.clear();
    let plan = checked(&observed);
    assert!(plan.steps.iter().all(|step| is(step, "hold", "secret")), "{:?}", plan.steps);
    settle(&mut observed);
    assert!(secret(&mut observed, Material::ServiceAccountKeys).is_held());
    // What users brought carries nothing of ours.
    let given = SecretFacts {
        uid: Some("theirs".to_owned()),
        is_ours: false,
        finalizers: Vec::new(),
        ..secret(&mut observed, Material::ClusterAuthority).clone()
    };
    observed.secrets.insert(Material::ClusterAuthority, Read::One(given));
    assert!(checked(&observed).steps.is_empty());
    delete(&mut observed);
    for read in [
        &mut observed.api_server,
        &mut observed.controller_manager,
        &mut observed.scheduler,
        &mut observed.etcd,
    ] {
        *read = Read::Absent;
    }
    (observed.service, observed.tunnel, observed.etcd_claims) = (Read::Absent, Read::Absent, Read::Absent);
    let plan = checked(&observed);
    assert_eq!(plan.steps.iter().filter(|step| is(step, "let-go", "secret")).count(), 4);
}

#[test]
fn an_authority_warns_when_half_of_its_life_is_over() {
    let lasting = conditions::authorities_lasting::TYPE;
    let mut observed = all_ready(&json!({}));
    assert_eq!(condition_status(&checked(&observed), lasting), "");
    let facts = secret(&mut observed, Material::EtcdAuthority);
    facts.not_before = Some("2026-01-01T00:00:00Z".parse().unwrap());
    facts.not_after = Some("2026-01-04T00:00:00Z".parse().unwrap());
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, lasting), "");
    assert_eq!(plan.wake, Wake::At("2026-01-02T12:00:00Z".parse().unwrap()));
    secret(&mut observed, Material::EtcdAuthority).not_after = Some("2026-01-03T00:00:00Z".parse().unwrap());
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, lasting), "False Ending");
    assert!(message(&plan, lasting).contains("demo-etcd ends at 2026-01-03"), "{}", message(&plan, lasting));
    assert_eq!(condition_status(&plan, VALID), "True Valid", "it still works");
}

/// Trap: admission was off, and a deletion cannot be taken back.
#[test]
fn the_control_plane_of_a_living_cluster_is_held() {
    let alive = all_ready(&json!({}));
    let mut observed = alive.clone();
    delete(&mut observed);
    let revive = |observed: &mut Observed| {
        observed.cluster.iter_mut().for_each(|cluster| cluster.is_deleting = false);
    };
    revive(&mut observed);
    let plan = checked(&observed);
    assert!(plan.steps.is_empty(), "{:?}", plan.steps);
    assert_eq!(plan.objects, checked(&alive).objects, "it is kept as it is");
    assert_eq!(condition_status(&plan, conditions::deleting::TYPE), "True Held");
    assert_eq!(condition_status(&plan, conditions::available::TYPE), "True Available");
    assert!(message(&plan, conditions::deleting::TYPE).contains(ALLOW_DELETION_ANNOTATION));
    let annotations = observed.control_plane.metadata.annotations.as_mut().unwrap();
    annotations.insert(ALLOW_DELETION_ANNOTATION.to_owned(), String::new());
    assert_eq!(condition_status(&checked(&observed), conditions::deleting::TYPE), "True Deleting");
}

#[test]
fn what_another_provider_made_is_left_alone() {
    let mut observed = all_ready(&json!({}));
    observed.control_plane.metadata.annotations = None;
    observed.control_plane.metadata.generation = Some(9);
    for deleted in [false, true] {
        if deleted {
            delete(&mut observed);
        }
        for read in [&mut observed.api_server, &mut observed.etcd] {
            *read = Read::Absent;
        }
        let plan = checked(&observed);
        assert!(plan.objects.is_empty() && plan.steps.is_empty(), "{:?}", plan.steps);
        assert_eq!(condition_status(&plan, conditions::ready::TYPE), "False MadeByAnother");
        assert_eq!(
            condition_status(&plan, conditions::available::TYPE),
            "True Available",
            "its provider says that"
        );
        assert_eq!((plan.status.ready_replicas, plan.status.observed_generation), (Some(1), Some(3)));
    }
}

#[test]
fn a_generation_counts_as_observed_only_when_something_is_done_for_it() {
    let mut observed = all_ready(&json!({}));
    observed.control_plane.metadata.generation = Some(9);
    assert_eq!(checked(&observed).status.observed_generation, Some(9));
    observed.cluster.iter_mut().for_each(|cluster| cluster.is_paused = true);
    assert_eq!(checked(&observed).status.observed_generation, Some(3));
    let mut observed = all_ready(&json!({}));
    observed.control_plane.metadata.generation = Some(9);
    observed.cluster.iter_mut().for_each(|cluster| cluster.control_plane = Some("other".to_owned()));
    assert_eq!(checked(&observed).status.observed_generation, Some(3));
}

/// Claims outlive a control plane that was removed by force.
#[test]
fn the_first_start_takes_no_volumes_of_others() {
    let mut observed = created(&json!({}));
    settle(&mut observed);
    assert_eq!(kinds(&checked(&observed), "StatefulSet"), ["demo-etcd"]);
    observed.etcd_claims = Read::One(claim(0));
    let plan = checked(&observed);
    assert_eq!(kinds(&plan, "StatefulSet"), [] as [&str; 0]);
    let healthy = conditions::etcd_cluster_healthy::TYPE;
    assert_eq!(condition_status(&plan, healthy), "False VolumesFound");
    assert!(message(&plan, healthy).contains("data-demo-etcd-0"), "{}", message(&plan, healthy));
}
