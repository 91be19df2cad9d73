//! Names are identities: they are pinned, they fit, and two clusters never share one.

use hangar_api::conditions::Status;
use serde_json::json;

use super::super::*;
use super::checker::checked;
use super::fixture::{all_ready, created};
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
        tenant_objects(&observed).iter().map(|object| format!("tenant {}", ObjectIdentity::of(object))),
    );
    insta::assert_snapshot!(lines.join("\n"));
}

fn names() -> Names {
    Names::new("demo", "team").unwrap()
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
        let names = Names::new(cluster, "team").unwrap();
        let members = (0..5).map(|ordinal| names.etcd_member_service(ordinal)).collect::<Vec<_>>();
        [members, vec![names.etcd_service(), names.api_server_service()]].concat()
    };
    let neighbours = ["a", "a-0", "0-a", "0", "etcd-a", "api-a", "etcd0-a"];
    let all: Vec<String> = neighbours.iter().flat_map(|cluster| services(cluster)).collect();
    let different: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(different.len(), all.len(), "{all:?}");
}

#[test]
fn a_name_that_is_too_long_is_refused_and_named() {
    let longest = "a".repeat(super::super::names::CLUSTER_NAME_LIMIT);
    let names = Names::new(&longest, "team").unwrap();
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
        plan.status.conditions.iter().find(|one| one.type_ == condition::SPECIFICATION_VALID).unwrap();
    assert_eq!(Status::parse(&condition.status), Status::False);
    assert!(
        condition.message.contains("Cluster.metadata.name") && condition.message.contains("too long by 1")
    );
    for wrong in ["", "Demo", "-a", "a-", "a.b", "a_b"] {
        assert!(Names::new(wrong, "team").is_err(), "{wrong}");
    }
}
