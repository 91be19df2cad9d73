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
    assert_eq!(value, r#"{"generation":1,"members":3}"#);
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

#[test]
fn a_vanished_etcd_is_never_a_new_cluster() {
    let mut observed = all_ready(&json!({}));
    observed.etcd = Read::Absent;
    observed.etcd_pods = Read::Absent;
    assert_eq!(member(&checked(&observed), 0)["initial-cluster-state"], "existing");
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
