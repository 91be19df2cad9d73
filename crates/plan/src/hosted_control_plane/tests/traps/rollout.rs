//! Traps about members of etcd that are restarted: whose turn it is, what is waited for, and that it is named.

use super::upgrade::{ROLLING, evicted, message, wanting};
use super::*;
use crate::flow::{Identified as _, Planner as _};

type Fault = fn(&mut Observed);

const OLD: &str = "demo-etcd-1111";
const NEW: &str = "demo-etcd-2222";

/// Three members that are well, of a template that is not the latest. The second one leads.
fn outdated() -> Observed {
    let mut observed = wanting("v1.34.10", "v1.34.10");
    observed.etcd.iter_mut().for_each(|facts| facts.revision = Some(NEW.to_owned()));
    for (number, pod) in (1..).zip(observed.etcd_pods.iter_mut()) {
        pod.revision = Some(OLD.to_owned());
        pod.address = Some(IpAddr::from([10, 0, 1, number]));
    }
    observed
}

fn turn(observed: &Observed) -> Option<String> {
    evicted(&checked(observed)).map(|step| step.id().name)
}

fn member<'observed>(observed: &'observed mut Observed, name: &str) -> &'observed mut PodFacts {
    observed.etcd_pods.iter_mut().find(|pod| pod.name == name).unwrap()
}

/// It cannot be pulled.
fn stuck(observed: &mut Observed, name: &str) {
    observed.etcd.iter_mut().for_each(|facts| facts.ready -= 1);
    let pod = member(observed, name);
    (pod.is_ready, pod.trouble) = (false, Some("etcd: ImagePullBackOff".to_owned()));
    observed.etcd_list.iter_mut().for_each(|list| drop(list.told.remove(name)));
}

/// Arguments are in a file that is read at the start: without another template they would have no effect.
#[test]
fn other_settings_are_another_template() {
    let template = |etcd: Value| {
        let mut merged = json!({"replicas": 3});
        merged.as_object_mut().unwrap().extend(etcd.as_object().unwrap().clone());
        let observed = all_ready(&json!({"etcd": merged}));
        object(&checked(&observed), "StatefulSet", "demo-etcd")["spec"]["template"].clone()
    };
    let before = template(json!({}));
    assert_eq!(before["metadata"]["annotations"], Value::Null);
    for other in [
        json!({"args": {"snapshot-count": "5000"}}),
        json!({"image": {"repository": "registry.example.org/etcd"}}),
        json!({"resources": {"limits": {"memory": "1Gi"}}}),
        json!({"placement": {"tolerations": [{"key": "tenants", "operator": "Exists"}]}}),
    ] {
        assert_ne!(before, template(other.clone()), "{other}");
    }
    assert_ne!(
        template(json!({"args": {"snapshot-count": "5000"}})),
        template(json!({"args": {"snapshot-count": "6000"}}))
    );
}

#[test]
fn members_of_an_older_template_are_restarted_one_by_one_and_the_leader_last() {
    let mut observed = outdated();
    for (number, name) in ["demo-etcd-0", "demo-etcd-2", "demo-etcd-1"].into_iter().enumerate() {
        let plan = checked(&observed);
        assert_eq!(condition_status(&plan, ROLLING), "True RollingOut");
        let words = format!("{number} of 3 have the latest settings");
        assert!(message(&plan, ROLLING).contains(&words), "{}", message(&plan, ROLLING));
        let step = evicted(&plan).unwrap();
        assert_eq!(step.id().name, name);
        observed.fold(&step, &Outcome::Done);
        assert_eq!(turn(&observed), None, "one at a time");
        let pod = member(&mut observed, name);
        *pod = PodFacts { uid: "new".to_owned(), revision: Some(NEW.to_owned()), ..pod.clone() };
        (pod.is_ready, pod.is_deleting) = (false, false);
        assert_eq!(turn(&observed), None, "it is not ready yet");
        let message = message(&checked(&observed), ROLLING);
        assert!(number == 2 || message.contains(&format!("{name} to be ready")), "{message}");
        member(&mut observed, name).is_ready = true;
    }
    let plan = checked(&observed);
    assert_eq!((evicted(&plan), condition_status(&plan, ROLLING).as_str()), (None, "False NotRollingOut"));
}

#[test]
fn what_the_controller_has_not_seen_yet_makes_nobody_outdated() {
    let mut observed = outdated();
    observed.etcd.iter_mut().for_each(|facts| facts.is_observed = false);
    assert_eq!(condition_status(&checked(&observed), ROLLING), "False NotRollingOut");
    let mut observed = outdated();
    observed.etcd.iter_mut().for_each(|facts| facts.revision = None);
    assert_eq!(condition_status(&checked(&observed), ROLLING), "False NotRollingOut");
}

/// An image that cannot be pulled stays one until the pod is another: nobody has to delete it by hand.
#[test]
fn the_one_that_cannot_start_comes_first_while_the_others_are_a_healthy_quorum() {
    for name in ["demo-etcd-1", "demo-etcd-2"] {
        let mut observed = outdated();
        stuck(&mut observed, name);
        assert_eq!(turn(&observed).as_deref(), Some(name));
        // It has the latest template: nothing else is to be tried.
        let mut latest = observed.clone();
        member(&mut latest, name).revision = Some(NEW.to_owned());
        assert_eq!(turn(&latest), None);
        assert_eq!(condition_status(&checked(&latest), ROLLING), "True Stopped");
        let mut ill = observed.clone();
        ill.etcd_list.iter_mut().for_each(|list| drop(list.told.remove("demo-etcd-0")));
        assert_eq!(turn(&ill), None, "another one does not answer");
        member(&mut observed, "demo-etcd-0").is_ready = false;
        assert_eq!(turn(&observed), None, "another one is not ready");
    }
}

/// Members that wait for a majority are not ready either, and are left alone.
#[test]
fn without_a_quorum_only_what_does_not_run_is_replaced() {
    let mut observed = outdated();
    stuck(&mut observed, "demo-etcd-1");
    stuck(&mut observed, "demo-etcd-2");
    member(&mut observed, "demo-etcd-0").is_ready = false;
    assert_eq!(turn(&observed).as_deref(), Some("demo-etcd-1"));
    observed.etcd_list = Read::unknown("etcdserver: no leader");
    assert_eq!(turn(&observed).as_deref(), Some("demo-etcd-1"), "nobody could say more");
    observed.etcd_pods.iter_mut().for_each(|pod| pod.trouble = None);
    assert_eq!(turn(&observed), None);
    // Neither was there a quorum ever.
    let mut first = etcd_started(&json!({"etcd": {"replicas": 1}}));
    first.etcd.iter_mut().for_each(|facts| facts.revision = Some(NEW.to_owned()));
    let pod = first.etcd_pods.iter_mut().next().unwrap();
    (pod.revision, pod.trouble) = (Some(OLD.to_owned()), Some("etcd: ErrImagePull".to_owned()));
    assert_eq!(turn(&first).as_deref(), Some("demo-etcd-0"));
}

/// A budget that keeps one healthy pod of one would keep a broken one for ever.
#[test]
fn a_member_that_is_alone_and_broken_may_be_evicted() {
    for (members, policy) in [(1, json!("AlwaysAllow")), (3, Value::Null)] {
        let plan = checked(&all_ready(&json!({"etcd": {"replicas": members}})));
        let spec = &object(&plan, "PodDisruptionBudget", "demo-etcd")["spec"];
        assert_eq!(spec["unhealthyPodEvictionPolicy"], policy);
    }
}

/// Whoever reads the condition knows where to look.
#[test]
fn the_member_that_is_waited_for_is_named_with_the_reason() {
    let faults: [(Fault, &str); 6] = [
        (
            |observed| observed.etcd_list.iter_mut().for_each(|list| drop(list.told.remove("demo-etcd-2"))),
            "demo-etcd-2: it does not answer; waiting for demo-etcd-2 to be well, then for etcd's members",
        ),
        (
            |observed| observed.etcd_list.iter_mut().for_each(|list| drop(list.members.remove(0))),
            "demo-etcd-0: it is not in etcd's list of members",
        ),
        (
            |observed| {
                let list = observed.etcd_list.iter_mut().next().unwrap();
                list.told.get_mut("demo-etcd-2").unwrap().leader = None;
            },
            "demo-etcd-2: it knows of no leader",
        ),
        (
            |observed| {
                let list = observed.etcd_list.iter_mut().next().unwrap();
                list.told.get_mut("demo-etcd-0").unwrap().errors = vec!["alarm:CORRUPT".to_owned()];
            },
            "demo-etcd-0: alarm:CORRUPT",
        ),
        (
            |observed| {
                let list = observed.etcd_list.iter_mut().next().unwrap();
                list.members[2].peer_urls = vec!["https://elsewhere:2380".to_owned()];
            },
            "members that are not Hangar's to be removed from etcd: 3",
        ),
        (|observed| observed.etcd_list = Read::unknown("connection refused"), "connection refused"),
    ];
    for (fault, words) in faults {
        let mut observed = outdated();
        fault(&mut observed);
        assert_eq!(turn(&observed), None, "{words}");
        let message = message(&checked(&observed), ROLLING);
        assert!(message.contains(words), "{message}");
    }
    let mut observed = outdated();
    let step = evicted(&checked(&observed)).unwrap();
    observed
        .fold(&step, &Outcome::refused("Cannot evict pod as it would violate the pod's disruption budget."));
    let message = message(&checked(&observed), ROLLING);
    assert!(message.starts_with("Cannot evict pod"), "{message}");
}

/// Members are called only while their answers decide something.
#[test]
fn members_are_called_for_a_rollout_only_when_one_could_be_restarted() {
    let is_called = |observed: &Observed| {
        let mut observed = observed.clone();
        observed.etcd_list = Read::unknown(NOT_ASKED);
        observed.wanted() == Some(Wanted::MemberList)
    };
    let observed = outdated();
    assert!(is_called(&observed));
    let mut stopped = observed.clone();
    stuck(&mut stopped, "demo-etcd-0");
    assert!(is_called(&stopped));
    member(&mut stopped, "demo-etcd-0").revision = Some(NEW.to_owned());
    assert!(!is_called(&stopped), "somebody else has to act first");
    let mut rested = observed;
    rested.etcd_pods.iter_mut().for_each(|pod| pod.revision = Some(NEW.to_owned()));
    assert!(!is_called(&rested));
}
