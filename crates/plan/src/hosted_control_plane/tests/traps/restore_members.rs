//! Traps about restores and changes of etcd's members: never both at once, and nothing of one is left for the other.

use super::restore::{ID, annotation, ask, backup, restoring};
use super::*;

fn want(observed: &mut Observed, members: i32) {
    observed.control_plane.spec.settings.etcd.get_or_insert_default().replicas = Some(members);
}

/// What a plan does with etcd's members: calls of them, deletions of their volumes, records.
pub(super) fn changes(observed: &Observed) -> Vec<String> {
    let is_change = |step: &&Step| {
        let text = flow::Identified::id(*step).to_string();
        matches!(step, Step::Own(OwnStep::Etcd(_)))
            || is(step, "evict", "pod")
            || text.contains("PersistentVolumeClaim")
            || text.contains(names::ETCD_ANNOTATION)
    };
    let plan = checked(observed);
    plan.steps.iter().filter(is_change).map(|step| flow::Identified::id(step).to_string()).collect()
}

/// Members run on what was restored.
fn started(observed: &mut Observed, members: i32) {
    observed.etcd = Read::One(workload("etcd", members, members, "3.6.16-0"));
    observed.etcd_pods =
        Read::found((0..members).map(|ordinal| pod(&format!("demo-etcd-{ordinal}"), "3.6.16-0")));
    for pod in observed.etcd_pods.iter_mut() {
        pod.is_ready = true;
    }
    listed(observed, members, 0);
}

#[test]
fn nobody_joins_or_leaves_while_etcd_is_restored() {
    let mut observed = all_ready(&json!({"etcd": {"replicas": 3}}));
    listed(&mut observed, 3, 0);
    want(&mut observed, 5);
    let grows = changes(&observed);
    assert!(!grows.is_empty(), "it would grow");
    ask(&mut observed, &json!({"backup": ID, "replace": "demo/1"}));
    want(&mut observed, 5);
    observed.restorable = Read::Absent;
    assert_eq!(changes(&observed), grows, "a backup that does not exist keeps nobody from being replaced");
    observed.restorable = Read::unknown("the store does not answer");
    assert_eq!(changes(&observed), [] as [&str; 0], "it may be there, and be decided for");
    observed.restorable = Read::One(backup());
    assert_eq!(
        changes(&observed),
        [] as [&str; 0],
        "the pass that decides for a backup decides for nothing else"
    );
    observed.etcd_list = Read::unknown(NOT_ASKED);
    assert_ne!(observed.wanted(), Some(Wanted::MemberList));
    listed(&mut observed, 3, 0);
    settle(&mut observed);
    assert_eq!(annotation(&observed, names::ETCD_ANNOTATION).unwrap()["generation"], 1);
    (observed.etcd, observed.etcd_pods) = (Read::Absent, Read::Absent);
    restoring(&mut observed, 3, 2);
    // A volume is lost meanwhile, too.
    observed.etcd_claims = Read::found((0..3).map(|ordinal| ClaimFacts {
        uid: if ordinal == 1 { "another".to_owned() } else { claim(ordinal).uid },
        ..claim(ordinal)
    }));
    assert_eq!(changes(&observed), [] as [&str; 0]);
    // It is given up: pods of the restore are still no members.
    let mut given_up = observed.clone();
    ask(&mut given_up, &json!({"backup": ID}));
    assert_eq!(changes(&given_up), [] as [&str; 0]);
    for pod in observed.etcd_pods.iter_mut() {
        pod.is_ready = true;
    }
    for facts in observed.etcd.iter_mut() {
        facts.ready = 3;
    }
    settle(&mut observed);
    let record = annotation(&observed, names::ETCD_ANNOTATION).unwrap();
    assert_eq!((&record["generation"], &record["members"]), (&json!(2), &json!(3)), "as many as before");
    assert_eq!(record["claims"][1], "another", "it has the data of the backup");
    started(&mut observed, 3);
    assert_eq!(changes(&observed), grows, "then it grows");
}

#[test]
fn a_member_that_was_joining_is_none_of_what_is_restored_and_its_volume_goes() {
    let mut observed = all_ready(&json!({"etcd": {"replicas": 3}}));
    let annotations = observed.control_plane.metadata.annotations.as_mut().unwrap();
    let mut record: Value = serde_json::from_str(&annotations[names::ETCD_ANNOTATION]).unwrap();
    record["joining"] = json!({"ordinal": 3, "claim": claim(3).uid});
    record["leaving"] = json!(["gone before"]);
    annotations.insert(names::ETCD_ANNOTATION.to_owned(), record.to_string());
    ask(&mut observed, &json!({"backup": ID, "replace": "demo/1"}));
    observed.restorable = Read::One(backup());
    settle(&mut observed);
    (observed.etcd, observed.etcd_pods) = (Read::Absent, Read::Absent);
    restoring(&mut observed, 3, 3);
    let of_joining = || ClaimFacts { created_at: Some(observed.now), ..claim(3) };
    observed.etcd_claims = Read::found((0..3).map(claim).chain([of_joining()]));
    settle(&mut observed);
    let record = annotation(&observed, names::ETCD_ANNOTATION).unwrap();
    assert_eq!(record["members"], 3);
    assert_eq!(record.get("joining"), None);
    assert_eq!(record["leaving"], json!(["gone before", claim(3).uid]));
    want(&mut observed, 3);
    started(&mut observed, 3);
    settle(&mut observed);
    let record = annotation(&observed, names::ETCD_ANNOTATION).unwrap();
    assert_eq!(record["leaving"], json!([claim(3).uid]), "what is gone is forgotten");
    let of_joining = observed.etcd_claims.iter().find(|found| found.uid == claim(3).uid).unwrap();
    assert!(
        of_joining.is_deleting && observed.etcd_claims.iter().filter(|found| found.is_deleting).count() == 1
    );
}
