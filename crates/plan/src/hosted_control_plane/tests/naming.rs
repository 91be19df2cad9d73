//! Names are pinned, fit their limits, and are never shared by two clusters.

use hangar_api::conditions::Status;
use serde_json::json;

use super::super::*;
use super::checker::checked;
use super::fixture::{all_ready, control_plane, created, settle};
use crate::flow::Read;

#[test]
fn every_name_is_pinned() {
    let observed = all_ready(&json!({"etcd": {"replicas": 1}}));
    let mut lines: Vec<String> =
        checked(&observed).objects.iter().map(|object| ObjectIdentity::of(object).to_string()).collect();
    lines.extend(Material::ALL.map(|material| format!("Secret team/{}", names().secret(material))));
    lines.push(format!("etcd member host {}", names().etcd_member_host(0)));
    lines.push(format!("tunnel host {}", names().konnectivity_host()));
    let annotations = [
        super::super::names::EPOCH_ANNOTATION,
        super::super::names::IDENTITY_ANNOTATION,
        super::super::names::ETCD_ANNOTATION,
        super::super::names::RESTORE_ANNOTATION,
        super::super::names::RESTORED_ANNOTATION,
        super::super::names::INTENT_ANNOTATION,
        super::super::names::FINGERPRINT_ANNOTATION,
        super::super::names::ISSUER_ANNOTATION,
        super::super::names::NOT_BEFORE_ANNOTATION,
        super::super::names::NOT_AFTER_ANNOTATION,
        super::super::names::CERTIFICATE_ANNOTATION,
        super::super::names::SERVED_ANNOTATION,
        super::super::names::SETTINGS_ANNOTATION,
        super::super::names::DESIRED_ANNOTATION,
    ];
    lines.extend(annotations.map(|name| format!("annotation {name}")));
    lines.extend(
        tenant_rights(&observed)
            .iter()
            .chain(&tenant_objects(&observed))
            .map(|object| format!("tenant {}", ObjectIdentity::of(object))),
    );
    insta::assert_snapshot!(lines.join("\n"));
}

fn names() -> Names {
    names_of("demo")
}

fn names_of(cluster: &str) -> Names {
    Names::of(&control_plane(&json!({})), cluster).unwrap()
}

/// Objects go by what was recorded; only what others look for goes by the Cluster.
#[test]
fn everything_is_named_after_the_recorded_identity() {
    let mut observed = created(&json!({}));
    let annotations = observed.control_plane.metadata.annotations.get_or_insert_default();
    annotations.insert(super::super::names::IDENTITY_ANNOTATION.to_owned(), "pool-7".to_owned());
    settle(&mut observed);
    let annotations = observed.control_plane.metadata.annotations.clone().unwrap();
    assert_eq!(annotations[super::super::names::IDENTITY_ANNOTATION], "pool-7", "a claim leaves it");
    for object in &checked(&observed).objects {
        let name = object.metadata.name.clone().unwrap();
        assert!(name.contains("pool-7") && !name.contains("demo"), "{name}");
        assert_eq!(object.metadata.labels.as_ref().unwrap()["cluster.x-k8s.io/cluster-name"], "demo");
        let selector = object.data["spec"]["selector"].to_string();
        assert!(!selector.contains("demo"), "{name} selects by {selector}");
    }
    let names = Names::of(&observed.control_plane, "demo").unwrap();
    let by_cluster: Vec<String> = Material::ALL
        .map(|material| names.secret(material))
        .into_iter()
        .filter(|name| name.starts_with("demo-"))
        .collect();
    assert_eq!(by_cluster, ["demo-ca", "demo-etcd", "demo-proxy", "demo-sa", "demo-kubeconfig"]);
    let fresh = created(&json!({}));
    let Some(Step::Write(claim)) = checked(&fresh).steps.iter().next().cloned() else { panic!("no claim") };
    let crate::flow::Action::Itself(fields) = claim.action else { panic!("no claim") };
    let annotations = &fields["metadata"]["annotations"];
    assert_eq!(annotations[super::super::names::IDENTITY_ANNOTATION], "demo");
}

/// `a` and `a-etcd` may be neighbours.
#[test]
fn no_two_clusters_meet_in_a_name() {
    let suffixes: Vec<String> =
        Material::ALL.iter().map(|material| format!("-{}", material.suffix())).collect();
    for longer in &suffixes {
        for shorter in suffixes.iter().filter(|shorter| *shorter != longer) {
            assert!(!longer.ends_with(shorter), "{longer} ends in {shorter}");
        }
    }
    let services = |cluster: &str| {
        let names = names_of(cluster);
        let members = (0..5).map(|ordinal| names.etcd_member_service(ordinal)).collect::<Vec<_>>();
        [members, vec![names.etcd_service(), names.api_server_service(), names.konnectivity_service()]]
            .concat()
    };
    let neighbours = ["a", "a-0", "0-a", "0", "etcd-a", "api-a", "etcd0-a"];
    let all: Vec<String> = neighbours.iter().flat_map(|cluster| services(cluster)).collect();
    let different: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(different.len(), all.len(), "{all:?}");
}

#[test]
fn a_name_that_is_too_long_is_refused_and_named() {
    let longest = "a".repeat(super::super::names::CLUSTER_NAME_LIMIT);
    let names = names_of(&longest);
    assert!(names.konnectivity_service().len() <= 63);
    // The StatefulSet's name and a revision of up to eleven characters are a label value.
    assert_eq!(names.etcd().len() + 11, 63);
    for suffix in Material::ALL {
        assert!(names.secret(suffix).len() <= 253);
    }
    let mut observed = created(&json!({}));
    if let Read::One(cluster) = &mut observed.cluster {
        cluster.name = format!("{longest}a");
    }
    let plan = checked(&observed);
    assert!(plan.objects.is_empty() && plan.steps.is_empty());
    let condition =
        plan.status.conditions.iter().find(|one| one.type_ == conditions::specification_valid::TYPE).unwrap();
    assert_eq!(Status::parse(&condition.status), Status::False);
    assert!(
        condition.message.contains("Cluster.metadata.name") && condition.message.contains("too long by 1")
    );
    for wrong in ["", "Demo", "-a", "a-", "a.b", "a_b"] {
        let mut control_plane = control_plane(&json!({}));
        assert!(Names::of(&control_plane, wrong).is_err(), "{wrong}");
        let identity = [(super::super::names::IDENTITY_ANNOTATION.to_owned(), wrong.to_owned())];
        control_plane.metadata.annotations = Some(identity.into());
        assert!(Names::of(&control_plane, "demo").is_err(), "{wrong}");
    }
}
