//! Traps about etcd's space: volumes, quota, databases.

use super::*;
use crate::hosted_control_plane::backup::Work;
use crate::hosted_control_plane::conditions::etcd_volumes_sized;
use crate::hosted_control_plane::etcd_calls::{
    ListedMember, MemberChange, MemberId, MemberList, MemberState,
};

type Fault = fn(&mut Observed);

const SIZED: &str = etcd_volumes_sized::TYPE;
const GIB: u64 = 1 << 30;
const TAG: &str = "3.6.16-0";

/// Three members that are well; the last one leads.
fn three(spec: &Value) -> Observed {
    let mut wanted = json!({"etcd": {"replicas": 3}});
    wanted["etcd"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let mut observed = all_ready(&json!({"etcd": {"replicas": 3}}));
    observed.control_plane.spec.settings.etcd = serde_json::from_value(wanted["etcd"].clone()).unwrap();
    let pod = |ordinal: u8| PodFacts {
        is_ready: true,
        address: Some(IpAddr::from([192, 0, 2, 20 + ordinal])),
        revision: Some("first".to_owned()),
        ..pod(&format!("demo-etcd-{ordinal}"), TAG)
    };
    observed.etcd_pods = Read::found((0..3).map(pod));
    tell(&mut observed, &[(1, 1); 3], &[]);
    observed
}

/// Members tell how large their databases are, in GiB allocated and in use, and of alarms.
fn tell(observed: &mut Observed, sizes: &[(u64, u64)], alarms: &[Alarm]) {
    let quota = 6 * GIB;
    let size = |(allocated, in_use): &(u64, u64)| DatabaseSize {
        allocated: allocated * GIB,
        in_use: in_use * GIB,
        quota,
    };
    let last = sizes.len() - 1;
    observed.etcd_members = Read::found(sizes.iter().enumerate().map(|(ordinal, sizes)| MemberFacts {
        name: format!("demo-etcd-{ordinal}"),
        alarms: alarms.iter().copied().collect(),
        is_leader: ordinal == last,
        database: Some(size(sizes)),
    }));
    let id = |ordinal: usize| MemberId(u64::try_from(ordinal).unwrap() + 1);
    let members = (0..sizes.len()).map(|ordinal| ListedMember {
        id: id(ordinal),
        name: format!("demo-etcd-{ordinal}"),
        peer_urls: vec![format!("https://etcd{ordinal}-demo.team.svc:2380")],
        is_learner: false,
    });
    let state = |(ordinal, sizes): (usize, &(u64, u64))| MemberState {
        id: id(ordinal),
        leader: Some(id(last)),
        is_learner: false,
        revision: 7,
        errors: alarms.iter().map(|alarm| format!("memberID:1 alarm:{} ", alarm.as_str())).collect(),
        unapplied: 0,
        database: size(sizes),
    };
    let told = sizes.iter().enumerate().map(|one| (format!("demo-etcd-{}", one.0), state(one)));
    observed.etcd_list = Read::One(MemberList { members: members.collect(), told: told.collect() });
}

/// The template has a quota, and so it is another one.
fn template_has(observed: &mut Observed, quota: &str) {
    for facts in observed.etcd.iter_mut() {
        facts.quota = Some(quota.to_owned());
        facts.revision = Some(quota.to_owned());
    }
}

fn begins_with(pod: &mut PodFacts, quota: &str) {
    pod.quota = Some(quota.to_owned());
    pod.revision = Some(quota.to_owned());
}

fn claim_of(observed: &mut Observed, ordinal: i32) -> &mut ClaimFacts {
    let name = claim(ordinal).name;
    observed.etcd_claims.iter_mut().find(|claim| claim.name == name).unwrap()
}

fn steps(plan: &Plan) -> Vec<String> {
    plan.steps.iter().map(|step| flow::Identified::id(step).to_string()).collect()
}

fn message(plan: &Plan, type_: &str) -> String {
    let found = plan.status.conditions.iter().find(|condition| condition.type_ == type_);
    found.map(|condition| condition.message.clone()).unwrap_or_default()
}

/// What a plan says of space.
fn told(plan: &Plan) -> String {
    let file = object(plan, "ConfigMap", "demo-etcd")["data"]["demo-etcd-0.yaml"].as_str().unwrap();
    let quota = file.lines().find(|line| line.starts_with("quota-backend-bytes")).unwrap();
    let set = &object(plan, "StatefulSet", "demo-etcd")["spec"];
    let first = &set["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"];
    let annotation = &set["template"]["metadata"]["annotations"][names::QUOTA_ANNOTATION];
    format!(
        "steps: {:?}\n{quota}\ntemplate: {first}, {annotation}\n{}\n{}\n{}\n",
        steps(plan),
        condition_status(plan, SIZED),
        message(plan, SIZED),
        message(plan, "RollingOut"),
    )
}

#[test]
fn claims_grow_one_by_one_then_the_quota_then_members_are_restarted() {
    let mut observed = three(&json!({"volumeSize": "10Gi"}));
    let mut golden = Vec::new();
    let mut show = |case: &str, observed: &mut Observed| {
        let plan = checked(observed);
        observed.control_plane.status = Some(plan.status.clone());
        golden.push(format!("{case}\n{}", told(&plan)));
    };
    show("more is wanted", &mut observed);
    for ordinal in 0..3 {
        claim_of(&mut observed, ordinal).requested = Some("10Gi".to_owned());
        show(&format!("claim {ordinal} asks for more"), &mut observed);
        claim_of(&mut observed, ordinal).size = Some("10Gi".to_owned());
    }
    show("all volumes are larger, the template is not applied yet", &mut observed);
    let quota = (10 * GIB / 4 * 3).to_string();
    template_has(&mut observed, &quota);
    show("it is applied", &mut observed);
    for pod in observed.etcd_pods.iter_mut().take(2) {
        begins_with(pod, &quota);
    }
    show("followers have started again", &mut observed);
    observed.etcd_pods.iter_mut().for_each(|pod| begins_with(pod, &quota));
    show("all have", &mut observed);
    insta::assert_snapshot!(golden.join("\n"));
}

/// A refusal is the API server's own word about the storage class.
#[test]
fn a_class_that_cannot_expand_is_said_and_nothing_else_waits() {
    let mut observed = three(&json!({"volumeSize": "10Gi"}));
    let ready = condition_status(&checked(&observed), "Ready");
    let plan = checked(&observed);
    let step = plan.steps.iter().find(|step| is(step, "grow", "claim")).unwrap().clone();
    let why = "only dynamically provisioned pvc can be resized";
    observed.fold(&step, &Outcome::refused(why));
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, SIZED), "False NotExpandable");
    assert!(message(&plan, SIZED).contains(why), "{}", message(&plan, SIZED));
    assert_eq!(condition_status(&plan, "Ready"), ready);
    assert_eq!(condition_status(&plan, "RollingOut"), "False NotRollingOut");
    // The same of a driver.
    claim_of(&mut observed, 0).requested = Some("10Gi".to_owned());
    claim_of(&mut observed, 0).trouble = Some("out of room in the pool".to_owned());
    assert_eq!(condition_status(&checked(&observed), SIZED), "False Failing");
}

/// Trap: drivers round sizes up, and somebody may have given larger volumes. Neither is a growth that Hangar began, so a
/// new Hangar restarts nobody; and nothing shrinks.
#[test]
fn volumes_that_are_larger_than_asked_for_restart_nobody_and_do_not_shrink() {
    let mut observed = three(&json!({}));
    for ordinal in 0..3 {
        claim_of(&mut observed, ordinal).size = Some("100Gi".to_owned());
    }
    let plan = checked(&observed);
    assert_eq!((steps(&plan), condition_status(&plan, SIZED)), (Vec::new(), String::new()));
    assert!(told(&plan).contains("template: \"8Gi\", null"), "{}", told(&plan));
    for ordinal in 0..3 {
        claim_of(&mut observed, ordinal).requested = Some("100Gi".to_owned());
    }
    assert!(!steps(&checked(&observed)).iter().any(|step| step.starts_with("grow")));
    // Who does not tell what it asks for asks for what it has.
    claim_of(&mut observed, 0).requested = None;
    assert!(!steps(&checked(&observed)).iter().any(|step| step.starts_with("grow")));
    // A claim without a volume cannot grow.
    let mut observed = three(&json!({"volumeSize": "10Gi"}));
    claim_of(&mut observed, 0).size = None;
    assert_eq!(steps(&checked(&observed)), ["grow claim data-demo-etcd-1"]);
}

/// Trap: the claim template has the first size for ever, so a new member's volume begins with it; the quota of all would
/// follow it down.
#[test]
fn a_new_member_waits_for_a_volume_as_large_as_the_others() {
    let mut observed = three(&json!({"replicas": 5, "volumeSize": "10Gi"}));
    for ordinal in 0..3 {
        let claim = claim_of(&mut observed, ordinal);
        (claim.requested, claim.size) = (Some("10Gi".to_owned()), Some("10Gi".to_owned()));
    }
    let quota = (10 * GIB / 4 * 3).to_string();
    template_has(&mut observed, &quota);
    observed.etcd_pods.iter_mut().for_each(|pod| begins_with(pod, &quota));
    let plan = checked(&observed);
    let record = plan.steps.iter().find(|step| is(step, "record", "control-plane")).unwrap().clone();
    observed.fold(&record, &Outcome::Done);
    let created_at = observed.control_plane.metadata.creation_timestamp.as_ref().map(|time| time.0);
    observed.etcd_claims.add(ClaimFacts { created_at, ..claim(3) });
    let plan = checked(&observed);
    assert_eq!(steps(&plan), ["grow claim data-demo-etcd-3"]);
    assert!(told(&plan).contains(&quota), "its volume is not that of a member yet");
    claim_of(&mut observed, 3).requested = Some("10Gi".to_owned());
    assert_eq!(steps(&checked(&observed)), [] as [&str; 0], "its file system is not larger yet");
    claim_of(&mut observed, 3).size = Some("10Gi".to_owned());
    assert_eq!(steps(&checked(&observed)), ["add-learner etcd-member demo-etcd-3"]);
}

#[test]
fn a_file_system_that_grows_only_when_mounted_gets_a_restart() {
    let mut observed = three(&json!({"volumeSize": "10Gi"}));
    let now = observed.now;
    let claim = claim_of(&mut observed, 0);
    (claim.requested, claim.unmounted_since) = (Some("10Gi".to_owned()), Some(now));
    let plan = checked(&observed);
    assert_eq!(steps(&plan), [] as [&str; 0], "kubelet may do it online");
    let due = now.checked_add(jiff::SignedDuration::from_mins(5)).unwrap();
    assert_eq!(plan.wake, Wake::At(due));
    observed.now = due;
    assert_eq!(steps(&checked(&observed)), ["evict pod demo-etcd-0"]);
    observed.etcd_pods.iter_mut().for_each(|pod| pod.is_ready = pod.name != "demo-etcd-1");
    assert_eq!(steps(&checked(&observed)), [] as [&str; 0], "another member is away");
}

#[test]
fn volumes_grow_by_themselves_once_when_they_fill_up() {
    let grows = |sizes: &[(u64, u64)], alarms: &[Alarm], auto: bool| {
        let mut observed = three(&json!({"autoGrow": auto}));
        tell(&mut observed, sizes, alarms);
        steps(&checked(&observed)).iter().any(|step| step.starts_with("grow"))
    };
    assert!(grows(&[(5, 5), (1, 1), (1, 1)], &[], true));
    assert!(grows(&[(1, 1); 3], &[Alarm::NoSpace], true));
    assert!(!grows(&[(4, 4); 3], &[], true) && !grows(&[(5, 5); 3], &[], false));
    assert!(!grows(&[(5, 2); 3], &[], true), "most of it is free");
    let mut observed = three(&json!({"autoGrow": true}));
    claim_of(&mut observed, 1).requested = Some("11Gi".to_owned());
    assert_eq!(steps(&checked(&observed)), ["grow claim data-demo-etcd-0"], "what was begun is finished");
    for ordinal in 0..3 {
        let claim = claim_of(&mut observed, ordinal);
        (claim.requested, claim.size) = (Some("11Gi".to_owned()), Some("11Gi".to_owned()));
    }
    let quota = (8 * GIB).to_string();
    template_has(&mut observed, &quota);
    observed.etcd_pods.iter_mut().for_each(|pod| begins_with(pod, &quota));
    assert_eq!(condition_status(&checked(&observed), SIZED), "");
    tell(&mut observed, &[(5, 5); 3], &[]);
    let plan = checked(&observed);
    assert_eq!((steps(&plan).len(), condition_status(&plan, SIZED).as_str()), (0, "False AtLimit"));
}

/// The database of the leader is done as that of a follower.
#[test]
fn databases_are_defragmented_one_by_one_and_the_leader_last() {
    let mut observed = three(&json!({}));
    tell(&mut observed, &[(4, 1); 3], &[]);
    let mut done = Vec::new();
    for _ in 0..5 {
        let plan = checked(&observed);
        assert!(plan.steps.iter().count() < 2, "{:?}", steps(&plan));
        observed.control_plane.status = Some(plan.status.clone());
        let Some(step) = plan.steps.iter().next() else { break };
        if let Step::Own(OwnStep::Etcd(step)) = step
            && step.change == MemberChange::Defragment
        {
            assert_eq!(step.through.member, step.member, "each is asked itself");
        }
        done.extend(steps(&plan));
        observed.fold(step, &Outcome::Done);
    }
    let expected = [
        "defragment etcd-member demo-etcd-0",
        "defragment etcd-member demo-etcd-1",
        "move-leader-to etcd-member demo-etcd-0",
        "defragment etcd-member demo-etcd-2",
    ];
    assert_eq!(done, expected);
    let status = observed.control_plane.status.clone().unwrap();
    assert!(status.etcd_last_attempted_defrag_time.is_some());
    // What they told a while ago is no reason to begin again, and the next round is an hour away.
    let plan = checked(&observed);
    observed.control_plane.status = Some(plan.status.clone());
    tell(&mut observed, &[(4, 1); 3], &[]);
    observed.now = observed.now.checked_add(jiff::SignedDuration::from_mins(50)).unwrap();
    assert_eq!(steps(&checked(&observed)), [] as [&str; 0]);
    observed.now = observed.now.checked_add(jiff::SignedDuration::from_mins(11)).unwrap();
    assert_eq!(steps(&checked(&observed)), expected[..1]);
}

#[test]
fn nothing_is_defragmented_beside_anything_else_or_for_little() {
    let fragmented = || {
        let mut observed = three(&json!({}));
        tell(&mut observed, &[(4, 1); 3], &[]);
        observed
    };
    let begins = |change: fn(&mut Observed)| {
        let mut observed = fragmented();
        change(&mut observed);
        steps(&checked(&observed))
            .iter()
            .any(|step| step.starts_with("defragment") || step.starts_with("move"))
    };
    assert!(begins(|_| {}));
    let held: [(&str, Fault); 11] = [
        ("a backup", |observed| observed.backup = Work::Running),
        ("a member that is away", |observed| {
            observed.etcd_pods.iter_mut().take(1).for_each(|pod| pod.is_ready = false);
        }),
        ("a member that does not answer", |observed| {
            observed.etcd_list.iter_mut().for_each(|list| drop(list.told.remove("demo-etcd-2")));
        }),
        ("a member without a leader", |observed| {
            let told = observed.etcd_list.iter_mut().flat_map(|list| list.told.values_mut());
            told.take(1).for_each(|state| state.leader = None);
        }),
        ("load", |observed| {
            let told = observed.etcd_list.iter_mut().flat_map(|list| list.told.values_mut());
            told.take(1).for_each(|state| state.unapplied = 101);
        }),
        ("a change of members", |observed| {
            observed.control_plane.spec.settings.etcd.as_mut().unwrap().replicas = Some(5);
        }),
        ("a lost member", |observed| "another".clone_into(&mut claim_of(observed, 1).uid)),
        ("an upgrade of etcd", |observed| {
            observed.etcd_pods.iter_mut().take(1).for_each(|pod| pod.version = Some("3.6.15-0".to_owned()));
        }),
        ("a rollout of API servers", |observed| {
            observed.api_server =
                Read::One(WorkloadFacts { updated: 0, ..workload("api-server", 1, 1, "v1.34.10") });
        }),
        ("different data", |observed| tell(observed, &[(4, 1); 3], &[Alarm::Corrupt])),
        ("no list", |observed| observed.etcd_list = Read::unknown("connection refused")),
    ];
    for (what, change) in held {
        assert!(!begins(change), "{what}");
    }
    assert!(!begins(|observed| tell(observed, &[(2, 1); 3], &[])), "a small file");
    assert!(!begins(|observed| tell(observed, &[(4, 3); 3], &[])), "little to give back");
}

#[test]
fn members_are_called_for_their_space_only_where_something_may_follow() {
    let mut observed = three(&json!({}));
    observed.etcd_list = Read::unknown(NOT_ASKED);
    assert_eq!(observed.wanted(), None);
    tell(&mut observed, &[(4, 1); 3], &[]);
    observed.etcd_list = Read::unknown(NOT_ASKED);
    assert_eq!(observed.wanted(), Some(Wanted::MemberList));
    observed.backup = Work::Running;
    assert_eq!(observed.wanted(), None);
}

#[test]
fn a_full_etcd_is_defragmented_and_its_alarm_ends_only_with_room() {
    let health = |observed: &Observed| {
        let plan = checked(observed);
        assert_eq!(condition_status(&plan, "EtcdClusterHealthy"), "False NoSpace");
        format!("{:?}: {}", steps(&plan), message(&plan, "EtcdClusterHealthy"))
    };
    let full = &[Alarm::NoSpace];
    let mut observed = three(&json!({}));
    let mut golden = Vec::new();
    let cases: [(&str, &[(u64, u64)]); 4] = [
        ("all of it is in use", &[(6, 6); 3]),
        ("half of it is free", &[(6, 3); 3]),
        ("one is still large", &[(3, 3), (3, 3), (6, 3)]),
        ("all have room", &[(3, 3); 3]),
    ];
    for (case, sizes) in cases {
        tell(&mut observed, sizes, full);
        golden.push(format!("{case}\n{}", health(&observed)));
    }
    // An API server that does not become ready without writes keeps nobody from ending the alarm.
    observed.api_server = Read::One(WorkloadFacts { updated: 0, ..workload("api-server", 1, 0, "v1.34.10") });
    assert_eq!(steps(&checked(&observed)), ["end-alarm-through etcd-member demo-etcd-2"]);
    // Volumes that grow come first.
    let mut growing = three(&json!({"volumeSize": "10Gi"}));
    tell(&mut growing, &[(6, 3); 3], full);
    golden.push(format!("more was asked for\n{}", health(&growing)));
    insta::assert_snapshot!(golden.join("\n"));
}
