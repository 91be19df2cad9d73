//! Traps about going on from one member: never while a majority lives, never without consent, and once.

use super::restore::{ID, annotation, ask, deletes_etcd, message, template};
use super::restore_members::changes;
use super::*;

const TYPE: &str = conditions::etcd_restored::TYPE;
const HEALTH: &str = conditions::etcd_cluster_healthy::TYPE;

/// So many members, of which these have lost their volumes; the others run without a quorum.
fn lost(members: i32, lost: &[i32]) -> Observed {
    let mut observed = all_ready(&json!({"etcd": {"replicas": members}}));
    for ordinal in lost {
        let claim = observed.etcd_claims.iter_mut().find(|found| found.name == claim(*ordinal).name);
        claim.unwrap().uid = format!("another {ordinal}");
    }
    observed.etcd = Read::One(workload("etcd", members, 0, "3.6.16-0"));
    observed
}

fn consent(member: i32) -> Value {
    json!({"member": format!("demo-etcd-{member}"), "replace": "demo/1"})
}

#[test]
fn a_majority_that_is_lost_is_told_with_every_choice() {
    let mut observed = lost(5, &[0, 2, 4]);
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, HEALTH), "False DataLost");
    let told = message(&plan, HEALTH);
    let named = "member: demo-etcd-1 or demo-etcd-3 and replace: demo/1";
    for choice in ["volumes to come back", "spec.etcd.restore with a backup", named, "data-demo-etcd-4"] {
        assert!(told.contains(choice), "{choice}: {told}");
    }
    // Nobody is left, or only somebody whose volume is about to go.
    for claim in observed.etcd_claims.iter_mut() {
        claim.is_deleting = true;
    }
    let told = message(&checked(&observed), HEALTH);
    assert!(told.contains("a restore, or a new cluster") && !told.contains("member:"), "{told}");
}

#[test]
fn nobody_goes_on_alone_without_consent_or_while_a_majority_lives() {
    let mut healthy = all_ready(&json!({"etcd": {"replicas": 3}}));
    let mut one_lost = lost(3, &[1]);
    one_lost.etcd = Read::One(workload("etcd", 3, 2, "3.6.16-0"));
    // The volumes are there, and their pods are not: they may come back.
    let mut away = lost(3, &[]);
    let mut majority = lost(3, &[0, 1]);
    let mut going = lost(3, &[0, 1]);
    going.etcd_claims.iter_mut().find(|found| found.name == claim(2).name).unwrap().is_deleting = true;
    // Its pods say that they are ready: whatever the claims are, somebody is served.
    let mut served = lost(3, &[0, 1]);
    served.etcd = Read::One(workload("etcd", 3, 2, "3.6.16-0"));
    for (what, observed, asked, expected) in [
        ("healthy", &mut healthy, consent(2), "False Unusable"),
        ("one of three", &mut one_lost, consent(2), "False Unusable"),
        ("away", &mut away, consent(2), "False Unusable"),
        ("served", &mut served, consent(2), "False Unusable"),
        ("about to go", &mut going, consent(2), "False Unusable"),
        ("its volume is lost", &mut majority, consent(1), "False Unusable"),
    ] {
        ask(observed, &asked);
        settle(observed);
        let plan = checked(observed);
        assert_eq!(condition_status(&plan, TYPE), expected, "{what}");
        assert!(!deletes_etcd(&plan), "{what}");
        assert_eq!(annotation(observed, names::RESTORE_ANNOTATION), None, "{what}");
        assert_ne!(observed.wanted(), Some(Wanted::Backup), "{what}");
    }
    for wrong in [json!(null), json!("demo"), json!("demo/2"), json!("demo-etcd-2")] {
        ask(&mut majority, &json!({"member": "demo-etcd-2", "replace": wrong}));
        let plan = checked(&majority);
        assert_eq!(condition_status(&plan, TYPE), "False NotConfirmed", "{wrong}");
        assert!(message(&plan, TYPE).contains("replace: demo/1"), "{}", message(&plan, TYPE));
    }
    ask(&mut majority, &json!({"member": "other-etcd-2", "replace": "demo/1"}));
    let told = message(&checked(&majority), TYPE);
    assert!(told.contains("no member other-etcd-2") && told.contains("member: demo-etcd-2"), "{told}");
}

#[test]
fn one_member_goes_on_as_another_cluster_and_the_others_join_it() {
    let mut observed = lost(3, &[0, 1]);
    ask(&mut observed, &consent(2));
    settle(&mut observed);
    let record = annotation(&observed, names::RESTORE_ANNOTATION).unwrap();
    assert_eq!((&record["survivor"], &record["generation"]), (&json!(2), &json!(2)));
    assert!(matches!(&observed.etcd, Read::One(facts) if facts.is_deleting), "its pod makes way");
    (observed.etcd, observed.etcd_pods) = (Read::Absent, Read::Absent);
    let plan = checked(&observed);
    assert_eq!(template(&plan).as_deref(), Some("restore-2-member-2"));
    let spec = &object(&plan, "StatefulSet", "demo-etcd")["spec"];
    assert_eq!((&spec["replicas"], &spec["ordinals"]["start"]), (&json!(1), &json!(2)));
    let pod_spec = &spec["template"]["spec"];
    let first: Vec<_> =
        pod_spec["initContainers"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(first, ["inspect", "etcdutl", "place"]);
    let text = pod_spec.to_string();
    for argument in [
        "--data=/var/lib/etcd/data\"",
        "\"/var/lib/etcd/data/member/snap/db\"",
        "--initial-cluster=demo-etcd-2=https://etcd2-demo.team.svc:2380\"",
        "--skip-hash-check",
        "--bump-revision=1000000000",
        "--to=/var/lib/etcd/data-2\"",
    ] {
        assert!(text.contains(argument), "{argument}: {text}");
    }
    assert!(!text.contains("\"store\""), "no key of a store goes along: {text}");
    // Somebody takes the consent back, or the volume is about to go: the switch does not happen.
    observed.etcd = Read::One(workload("etcd", 1, 1, "restore-2-member-2"));
    observed.etcd_pods = Read::One(PodFacts { is_ready: true, ..pod("demo-etcd-2", "restore-2-member-2") });
    let mut going = observed.clone();
    going.etcd_claims.iter_mut().find(|found| found.name == claim(2).name).unwrap().is_deleting = true;
    settle(&mut going);
    assert_eq!(annotation(&going, names::ETCD_ANNOTATION).unwrap()["generation"], 1);
    assert_eq!(condition_status(&checked(&going), TYPE), "False Unusable");
    settle(&mut observed);
    let record = annotation(&observed, names::ETCD_ANNOTATION).unwrap();
    assert_eq!(record["generation"], 2);
    assert_eq!(record["claims"], json!(["", "", claim(2).uid]), "the others have nothing of it yet");
    // It serves alone, and the first of the others is added.
    observed.etcd = Read::One(workload("etcd", 3, 1, "3.6.16-0"));
    let pods = (0..3).map(|ordinal| PodFacts {
        is_ready: ordinal == 2,
        address: Some("10.0.0.1".parse().unwrap()),
        ..pod(&format!("demo-etcd-{ordinal}"), "3.6.16-0")
    });
    observed.etcd_pods = Read::found(pods);
    listed(&mut observed, 3, 0);
    if let Read::One(list) = &mut observed.etcd_list {
        list.members.retain(|member| member.name == "demo-etcd-2");
        list.told.retain(|name, _| name == "demo-etcd-2");
        let id = list.members[0].id;
        list.told.values_mut().for_each(|state| state.leader = Some(id));
    }
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, TYPE), "True Restored");
    let data = object(&plan, "ConfigMap", "demo-etcd")["data"].clone();
    let file: Value = serde_saphyr::from_str(data["demo-etcd-0.data-2.yaml"].as_str().unwrap()).unwrap();
    let list = "demo-etcd-2=https://etcd2-demo.team.svc:2380";
    assert_eq!(
        file["initial-cluster"], list,
        "who joins has to name those that belong to etcd, and no other"
    );
    assert_eq!(condition_status(&plan, HEALTH), "False ReplacingMember");
    assert_ne!(condition_status(&plan, conditions::available::TYPE), "False NoQuorum", "it is served");
    assert_eq!(changes(&observed), ["add-learner etcd-member demo-etcd-0"]);
    // The same consent is spent, and the field does nothing any more.
    assert_eq!(data_to_replace(&observed.control_plane), Ok(Some("demo/2".to_owned())));
    ask(&mut observed, &json!({"member": "demo-etcd-1", "replace": "demo/1"}));
    assert_eq!(condition_status(&checked(&observed), TYPE), "False NotConfirmed");
    ask(&mut observed, &json!({"backup": ID, "replace": "demo/1"}));
    assert_eq!(condition_status(&checked(&observed), TYPE), "False NotConfirmed");
}

/// Until the switch, everything is as it was.
#[test]
fn a_member_that_was_to_go_on_can_be_left_as_it_was() {
    let mut observed = lost(3, &[0, 1]);
    let record = annotation(&observed, names::ETCD_ANNOTATION);
    ask(&mut observed, &consent(2));
    settle(&mut observed);
    observed.etcd = Read::One(workload("etcd", 1, 0, "restore-2-member-2"));
    observed.etcd_pods = Read::One(pod("demo-etcd-2", "restore-2-member-2"));
    observed.control_plane.spec.settings.etcd.as_mut().unwrap().restore = None;
    settle(&mut observed);
    assert!(matches!(&observed.etcd, Read::One(facts) if facts.is_deleting));
    (observed.etcd, observed.etcd_pods) = (Read::Absent, Read::Absent);
    let plan = checked(&observed);
    assert_eq!((template(&plan), annotation(&observed, names::ETCD_ANNOTATION)), (None, record));
    assert_eq!(condition_status(&plan, HEALTH), "False DataLost");
}
