//! Traps about etcd: it is bootstrapped once, and what it was bootstrapped with is recorded.

use super::*;

fn member(plan: &Plan, ordinal: i32) -> Value {
    let data = &object(plan, "ConfigMap", "demo-etcd")["data"];
    serde_saphyr::from_str(data[format!("demo-etcd-{ordinal}.yaml")].as_str().unwrap()).unwrap()
}

fn record(plan: &Plan) -> Option<(Step, String)> {
    plan.steps.iter().find_map(|step| match step {
        Step::Write(crate::flow::Write { id, action: crate::flow::Action::Itself(fields) }) => {
            let value = fields["metadata"]["annotations"][names::ETCD_ANNOTATION].as_str()?;
            (id.verb == "record").then(|| (step.clone(), value.to_owned()))
        }
        _ => None,
    })
}

#[test]
fn a_cluster_is_new_until_its_first_quorum_and_exists_from_then_on() {
    let mut observed = etcd_started(&json!({"etcd": {"replicas": 3}}));
    observed.etcd = Read::One(workload("etcd", 3, 1, "3.6.16-0"));
    let before = checked(&observed);
    assert_eq!(record(&before), None, "one of three is no quorum");
    assert_eq!(member(&before, 2)["initial-cluster-state"], "new");
    observed.etcd = Read::One(workload("etcd", 3, 2, "3.6.16-0"));
    let seen = checked(&observed);
    let (step, value) = record(&seen).unwrap();
    let claims = ["uid of data-demo-etcd-0", "uid of data-demo-etcd-1", "uid of data-demo-etcd-2"];
    assert_eq!(
        serde_json::from_str::<Value>(&value).unwrap(),
        json!({"generation": 1, "members": 3, "identity": "demo", "claims": claims})
    );
    assert_eq!(member(&seen, 2)["initial-cluster-state"], "new", "not before it is recorded");
    observed.fold(&step, &Outcome::Lost);
    assert!(record(&checked(&observed)).is_some(), "an answer that was lost records nothing");
    observed.fold(&step, &Outcome::Done);
    let after = checked(&observed);
    assert_eq!(record(&after), None);
    assert_eq!(member(&after, 2)["initial-cluster-state"], "existing");
    assert_eq!(member(&after, 2)["initial-cluster-token"], member(&before, 2)["initial-cluster-token"]);
    // A key of a ConfigMap is read at the next start: nothing is replaced for it.
    assert_eq!(object(&after, "StatefulSet", "demo-etcd"), object(&before, "StatefulSet", "demo-etcd"));
}

/// Neither who scales the StatefulSet nor who edits the specification takes members away.
#[test]
fn the_number_of_members_is_the_recorded_one() {
    let mut observed = all_ready(&json!({"etcd": {"replicas": 3}}));
    observed.etcd = Read::One(workload("etcd", 1, 1, "3.6.16-0"));
    observed.control_plane.spec.settings.etcd.as_mut().unwrap().replicas = Some(5);
    let plan = checked(&observed);
    assert_eq!(object(&plan, "StatefulSet", "demo-etcd")["spec"]["replicas"], 3);
    assert_eq!(object(&plan, "ConfigMap", "demo-etcd")["data"].as_object().unwrap().len(), 3);
    let servers = arguments(&plan, "demo-apiserver");
    let servers = servers.iter().find(|flag| flag.starts_with("--etcd-servers=")).unwrap();
    assert_eq!(servers.matches("https://").count(), 3);
    assert_eq!(condition_status(&plan, conditions::etcd_cluster_healthy::TYPE), "False NoQuorum");
}

const HEALTH: &str = conditions::etcd_cluster_healthy::TYPE;

fn message(plan: &Plan, type_: &str) -> String {
    let found = plan.status.conditions.iter().find(|condition| condition.type_ == type_);
    found.map(|condition| condition.message.clone()).unwrap_or_default()
}

/// Its StatefulSet and pods are gone.
fn vanished(members: i32) -> Observed {
    let mut observed = all_ready(&json!({"etcd": {"replicas": members}}));
    observed.etcd = Read::Absent;
    observed.etcd_pods = Read::Absent;
    observed
}

fn without(observed: &mut Observed, ordinals: &[i32]) {
    let names: Vec<String> = ordinals.iter().map(|ordinal| claim(*ordinal).name).collect();
    observed.etcd_claims.retain(|claim| !names.contains(&claim.name));
}

#[test]
fn a_vanished_stateful_set_comes_back_over_the_same_volumes() {
    let observed = vanished(3);
    let plan = checked(&observed);
    assert!(kinds(&plan, "StatefulSet").contains(&"demo-etcd".to_owned()));
    assert_eq!(member(&plan, 0)["initial-cluster-state"], "existing");
    assert_eq!(condition_status(&plan, HEALTH), "False NotCreated");
    assert!(
        message(&plan, HEALTH).contains("was deleted; its volumes are there"),
        "{}",
        message(&plan, HEALTH)
    );
}

/// Trap: with its volumes gone as well, a StatefulSet is an empty cluster.
#[test]
fn a_vanished_etcd_without_the_volumes_of_a_quorum_is_not_made_again() {
    for (members, lost) in [(1, &[0][..]), (3, &[0, 2]), (3, &[0, 1, 2]), (5, &[1, 2, 3])] {
        let mut observed = vanished(members);
        without(&mut observed, lost);
        let plan = checked(&observed);
        assert_eq!(kinds(&plan, "StatefulSet"), [] as [&str; 0], "{members} {lost:?}");
        assert_eq!(condition_status(&plan, HEALTH), "False DataLost");
        assert_eq!(condition_status(&plan, conditions::available::TYPE), "False NoQuorum");
        let message = message(&plan, HEALTH);
        for ordinal in lost {
            assert!(message.contains(&claim(*ordinal).name), "{message}");
        }
        assert!(mints(&plan).is_empty(), "and no key is made for it");
    }
    // The volumes of a quorum are a cluster.
    let mut observed = vanished(3);
    without(&mut observed, &[1]);
    let plan = checked(&observed);
    assert_eq!(kinds(&plan, "StatefulSet"), ["demo-etcd"]);
    assert_eq!(condition_status(&plan, HEALTH), "False MemberLost");
}

#[test]
fn a_vanished_etcd_is_left_alone_while_its_claims_cannot_be_read() {
    let mut observed = vanished(3);
    observed.etcd_claims = Read::unknown("the watch is broken");
    let plan = checked(&observed);
    assert_eq!(kinds(&plan, "StatefulSet"), [] as [&str; 0]);
    assert_eq!(condition_status(&plan, HEALTH), "Unknown NotReadable");
}

/// A StatefulSet's controller makes claims of the same names again, with empty volumes.
#[test]
fn a_claim_that_was_made_again_is_a_lost_member() {
    let mut observed = all_ready(&json!({"etcd": {"replicas": 3}}));
    observed.etcd_claims.iter_mut().find(|found| found.name.ends_with("-1")).unwrap().uid = "new".to_owned();
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, HEALTH), "False ReplacingMember");
    assert!(message(&plan, HEALTH).contains("data-demo-etcd-1 was deleted"), "{}", message(&plan, HEALTH));
    assert_eq!(record(&plan), None, "it is not the recorded one");
    for claim in observed.etcd_claims.iter_mut() {
        claim.uid = "new".to_owned();
    }
    assert_eq!(condition_status(&checked(&observed), HEALTH), "False DataLost");
    // A volume can be gone under a claim, and a claim about to be.
    let mut observed = all_ready(&json!({}));
    observed.etcd_claims.iter_mut().next().unwrap().is_deleting = true;
    assert_eq!(condition_status(&checked(&observed), HEALTH), "False MemberLost");
    observed.etcd_claims.iter_mut().next().unwrap().is_lost = true;
    assert_eq!(condition_status(&checked(&observed), HEALTH), "False DataLost");
}

/// Trap: with `existing` a member that lost its data joins under its old name, and votes again on what it forgot.
#[test]
fn a_member_without_data_finds_itself_in_the_list_only_when_it_was_replaced() {
    let names = |plan: &Plan, ordinal| {
        let list = member(plan, ordinal)["initial-cluster"].as_str().unwrap_or_default().to_owned();
        list.split(',').filter(|text| !text.is_empty()).map(|text| text[..11].to_owned()).collect::<Vec<_>>()
    };
    let before = etcd_started(&json!({"etcd": {"replicas": 3}}));
    assert_eq!(names(&checked(&before), 1), ["demo-etcd-0", "demo-etcd-1", "demo-etcd-2"]);
    let mut observed = all_ready(&json!({"etcd": {"replicas": 3}}));
    assert_eq!(names(&checked(&observed), 1), ["demo-etcd-0", "demo-etcd-2"]);
    assert_eq!(names(&checked(&all_ready(&json!({}))), 0), [] as [&str; 0]);
    let annotations = observed.control_plane.metadata.annotations.as_mut().unwrap();
    annotations.insert(names::REPLACED_MEMBER_ANNOTATION.to_owned(), "new".to_owned());
    assert_eq!(names(&checked(&observed), 1), ["demo-etcd-0", "demo-etcd-2"], "it has its data");
    let lose = |observed: &mut Observed, uid: &str| {
        let mut claims = observed.etcd_claims.iter_mut();
        claims.find(|found| found.name.ends_with("-1")).unwrap().uid = uid.to_owned();
    };
    lose(&mut observed, "new");
    let plan = checked(&observed);
    assert_eq!(names(&plan, 1).len(), 3);
    assert_eq!((names(&plan, 0).len(), names(&plan, 2).len()), (2, 2));
    assert_eq!(record(&plan), None, "not before it is ready");
    let ready = PodFacts { is_ready: true, ..pod("demo-etcd-1", "3.6.16-0") };
    observed.etcd_pods = Read::One(ready);
    let (step, value) = record(&checked(&observed)).unwrap();
    assert!(value.contains(r#"["uid of data-demo-etcd-0","new","uid of data-demo-etcd-2"]"#), "{value}");
    observed.fold(&step, &Outcome::Done);
    let plan = checked(&observed);
    assert_eq!((names(&plan, 1).len(), record(&plan)), (2, None));
    assert_eq!(condition_status(&plan, HEALTH), "True AllReady");
    // The annotation stayed, and the same member is lost once more: nobody has removed it from etcd this time.
    lose(&mut observed, "newer");
    let plan = checked(&observed);
    assert_eq!((names(&plan, 1).len(), record(&plan)), (2, None));
    assert_eq!(condition_status(&plan, HEALTH), "False ReplacingMember");
}

#[test]
fn volumes_are_kept_until_the_control_plane_is_deleted() {
    let mut observed = all_ready(&json!({"etcd": {"replicas": 3}}));
    let policy = &object(&checked(&observed), "StatefulSet", "demo-etcd")["spec"]["persistentVolumeClaimRetentionPolicy"].clone();
    assert_eq!(*policy, json!({"whenDeleted": "Retain", "whenScaled": "Retain"}));
    let claims = |observed: &Observed| {
        let plan = checked(observed);
        let id = |step: &Step| flow::Identified::id(step);
        let deleted = plan
            .steps
            .iter()
            .filter(|step| id(step).verb == "delete" && id(step).name.contains("PersistentVolumeClaim"));
        deleted.count()
    };
    assert_eq!(claims(&observed), 0);
    delete(&mut observed);
    for read in [&mut observed.api_server, &mut observed.controller_manager, &mut observed.scheduler] {
        *read = Read::Absent;
    }
    (observed.service, observed.tunnel) = (Read::Absent, Read::Absent);
    assert_eq!(claims(&observed), 0, "etcd is still there");
    observed.etcd = Read::Absent;
    assert_eq!(claims(&observed), 3);
    // Older ones are only deleted if they are on record: others hold the data of a control plane of the same name.
    let time = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(observed.now);
    observed.control_plane.metadata.creation_timestamp = Some(time);
    for (age, claim) in (0..).zip(observed.etcd_claims.iter_mut()) {
        claim.created_at = Some(observed.now - days(age));
    }
    assert_eq!(claims(&observed), 3);
    observed.control_plane.metadata.annotations.as_mut().unwrap().remove(names::ETCD_ANNOTATION);
    assert_eq!(claims(&observed), 1);
}

/// The quota follows the volume that there is.
#[test]
fn sizes_are_those_of_the_volumes() {
    let mut observed = all_ready(&json!({"etcd": {"replicas": 3, "volumeSize": "20Gi"}}));
    for claim in observed.etcd_claims.iter_mut() {
        claim.size = Some("8Gi".to_owned());
    }
    let plan = checked(&observed);
    assert_eq!(plan.status.etcd_volume_size.as_ref().unwrap().0, "8Gi");
    assert_eq!(member(&plan, 0)["quota-backend-bytes"], 6_u64 << 30);
    for claim in observed.etcd_claims.iter_mut() {
        claim.size = None;
    }
    observed.control_plane.status = Some(plan.status);
    let plan = checked(&observed);
    assert_eq!(plan.status.etcd_volume_size.as_ref().unwrap().0, "8Gi", "what is not known stays");
}

#[test]
fn a_member_that_does_not_start_is_named() {
    let mut observed = all_ready(&json!({"etcd": {"replicas": 3}}));
    observed.etcd = Read::One(workload("etcd", 3, 2, "3.6.16-0"));
    assert_eq!(condition_status(&checked(&observed), HEALTH), "True Quorum", "it may only be starting");
    let trouble = Some("etcd: CrashLoopBackOff: back-off 5m0s".to_owned());
    observed.etcd_pods = Read::One(PodFacts { trouble, ..pod("demo-etcd-2", "3.6.16-0") });
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, HEALTH), "False MemberFailing");
    assert!(
        message(&plan, HEALTH).contains("demo-etcd-2: etcd: CrashLoopBackOff"),
        "{}",
        message(&plan, HEALTH)
    );
}

/// Annotations can be edited; the record says what it stands beside.
#[test]
fn records_that_contradict_each_other_render_nothing() {
    let edits: [fn(&mut std::collections::BTreeMap<String, String>); 3] = [
        |annotations| {
            annotations.remove(names::ETCD_ANNOTATION);
        },
        |annotations| {
            annotations.insert(names::IDENTITY_ANNOTATION.to_owned(), "other".to_owned());
        },
        |annotations| {
            let record = annotations.get_mut(names::ETCD_ANNOTATION).unwrap();
            *record = record.replace("\"members\":3", "\"members\":1");
        },
    ];
    for edit in edits {
        let mut observed = all_ready(&json!({"etcd": {"replicas": 3}}));
        edit(observed.control_plane.metadata.annotations.as_mut().unwrap());
        let plan = checked(&observed);
        assert!(plan.objects.is_empty() && plan.steps.is_empty(), "{:?}", plan.steps);
        assert_eq!(condition_status(&plan, conditions::specification_valid::TYPE), "False Invalid");
        let message = message(&plan, conditions::specification_valid::TYPE);
        assert!(message.contains("hangar.cluster.x-k8s.io/etcd"), "{message}");
    }
}

#[test]
fn a_record_that_cannot_be_read_renders_nothing() {
    for wrong in
        ["", "{}", "3", r#"{"generation":1,"members":0}"#, r#"{"generation":1,"members":3,"more":1}"#]
    {
        let mut observed = all_ready(&json!({}));
        let annotations = observed.control_plane.metadata.annotations.as_mut().unwrap();
        annotations.insert(names::ETCD_ANNOTATION.to_owned(), wrong.to_owned());
        let plan = checked(&observed);
        assert!(plan.objects.is_empty() && plan.steps.is_empty(), "{wrong}");
        assert_eq!(
            condition_status(&plan, conditions::specification_valid::TYPE),
            "False Invalid",
            "{wrong}"
        );
    }
}
