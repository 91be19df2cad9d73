//! Traps about etcd's alarms: a full etcd is ready, and refuses writes.

use super::*;

/// All is ready, and each member has an address.
static THREE: std::sync::LazyLock<Observed> = std::sync::LazyLock::new(|| {
    let mut observed = all_ready(&json!({"etcd": {"replicas": 3}}));
    let pod = |ordinal: u8| PodFacts {
        is_ready: true,
        address: Some(IpAddr::from([192, 0, 2, 20 + ordinal])),
        ..pod(&format!("demo-etcd-{ordinal}"), "3.6.16-0")
    };
    observed.etcd_pods = Read::found((0..3).map(pod));
    observed
});

/// What members told, by ordinal.
fn told(members: &[(u8, &[Alarm])]) -> Read<MemberFacts> {
    Read::found(members.iter().map(|(ordinal, alarms)| MemberFacts {
        is_leader: false,
        name: format!("demo-etcd-{ordinal}"),
        alarms: alarms.iter().copied().collect(),
        database: None,
    }))
}

/// The next plan, from what this one said.
fn next(observed: &mut Observed) -> Plan {
    let plan = checked(observed);
    observed.control_plane.status = Some(plan.status.clone());
    plan
}

fn said(plan: &Plan) -> String {
    let told = ["EtcdClusterHealthy", "Available", "Ready"].map(|type_| {
        let found = plan.status.conditions.iter().find(|condition| condition.type_ == type_).unwrap();
        format!("{type_}: {} {} {}\n", found.status, found.reason, found.message).replace(" \n", "\n")
    });
    format!("{}ready: {:?}\n", told.concat(), plan.status.ready)
}

#[test]
fn a_full_etcd_is_said_until_a_member_says_otherwise() {
    use Alarm::{Corrupt, NoSpace};
    let mut observed = THREE.clone();
    let unknown = || Read::unknown("connection refused");
    let golden = [
        ("nobody answered yet", unknown()),
        ("healthy", told(&[(0, &[]), (1, &[]), (2, &[])])),
        ("one of three tells of NOSPACE", told(&[(0, &[]), (1, &[NoSpace]), (2, &[])])),
        ("nobody answers: it stays", unknown()),
        ("all tell of both", told(&[(0, &[NoSpace, Corrupt]), (1, &[NoSpace, Corrupt]), (2, &[NoSpace])])),
        ("one answers, without an alarm", told(&[(2, &[])])),
    ]
    .map(|(case, members)| {
        observed.etcd_members = members;
        format!("{case}\n{}", said(&next(&mut observed)))
    });
    insta::assert_snapshot!(golden.join("\n"));
}

/// With the alarm CORRUPT no member is ready: that is not the news.
#[test]
fn what_follows_from_an_alarm_does_not_hide_it() {
    let mut observed = THREE.clone();
    observed.etcd = Read::One(workload("etcd", 3, 0, "3.6.16-0"));
    observed.api_server = Read::One(workload("api-server", 1, 0, "v1.34.10"));
    observed.etcd_members = told(&[(0, &[Alarm::Corrupt])]);
    let plan = next(&mut observed);
    assert_eq!(condition_status(&plan, "EtcdClusterHealthy"), "False Corrupt");
    assert_eq!(condition_status(&plan, "Available"), "False EtcdAlarm");
    // Members that are gone are worse than an alarm that nobody tells of any more.
    observed.etcd_members = Read::unknown("connection refused");
    let plan = next(&mut observed);
    assert_eq!(condition_status(&plan, "EtcdClusterHealthy"), "False NoQuorum");
    assert_eq!(condition_status(&plan, "Available"), "False NoAPIServer");
}

#[test]
fn members_are_asked_where_they_may_answer_and_nobody_else() {
    let names = |observed: &Observed| members_to_ask(observed).into_keys().collect::<Vec<_>>();
    let mut observed = THREE.clone();
    let addresses: Vec<String> = members_to_ask(&observed).values().map(ToString::to_string).collect();
    assert_eq!(addresses, ["192.0.2.20:2381", "192.0.2.21:2381", "192.0.2.22:2381"]);
    for name in ["demo-etcd-3", "demo-etcd-x"] {
        let one = observed.etcd_pods.iter().next().unwrap().clone();
        observed.etcd_pods.add(PodFacts { name: name.to_owned(), ..one });
    }
    for pod in observed.etcd_pods.iter_mut() {
        match pod.name.as_str() {
            "demo-etcd-0" => pod.is_deleting = true,
            "demo-etcd-1" => pod.address = None,
            _ => pod.is_ready = false,
        }
    }
    assert_eq!(names(&observed), ["demo-etcd-2"], "not ready is no reason, a name like it is none either");
    observed.etcd = Read::One(workload("etcd", 3, 0, "3.6.16-0"));
    assert_eq!(names(&observed), ["demo-etcd-2"], "it had a quorum once");
    observed.control_plane.metadata.annotations.as_mut().unwrap().remove(names::ETCD_ANNOTATION);
    assert_eq!(names(&observed), [] as [&str; 0], "it starts for the first time");
    for gone in [Read::Absent, Read::unknown("not read")] {
        assert_eq!(names(&Observed { etcd: gone, ..THREE.clone() }), [] as [&str; 0]);
    }
}

/// They are asked once a pass, and not for a plan that calls nobody.
#[test]
fn members_are_asked_before_the_plan() {
    let mut observed = THREE.clone();
    assert_eq!(observed.wanted(), None);
    observed.etcd_members = Read::unknown(NOT_ASKED);
    assert_eq!(observed.wanted(), Some(Wanted::Members));
    assert_eq!(observed.assume(Wanted::Members), None);
    assert_eq!(observed.wanted(), None);
}

#[test]
fn the_size_of_the_largest_database_is_said_where_all_members_told() {
    let member = |ordinal: u8, mebibytes: Option<u64>| MemberFacts {
        name: format!("demo-etcd-{ordinal}"),
        database: mebibytes.map(|size| DatabaseSize { allocated: size << 20, in_use: 1, quota: 2 }),
        ..MemberFacts::default()
    };
    let mut observed = THREE.clone();
    let mut said = |sizes: [Option<u64>; 3]| {
        observed.etcd_members =
            Read::found((0..3_u8).zip(sizes).map(|(ordinal, size)| member(ordinal, size)));
        next(&mut observed).status.etcd_volume_usage.map(|usage| usage.0)
    };
    assert_eq!(said([Some(3), Some(2), None]), None, "one did not tell");
    assert_eq!(said([Some(3), Some(2), Some(1)]).as_deref(), Some("3Mi"));
    // A little more is no news, and neither is a member that is silent.
    assert_eq!(said([Some(1000), Some(2), Some(1)]).as_deref(), Some("1024Mi"));
    assert_eq!(said([Some(1010), Some(2), Some(1)]).as_deref(), Some("1024Mi"));
    assert_eq!(said([None, Some(2), Some(1)]).as_deref(), Some("1024Mi"));
    assert_eq!(said([Some(100), Some(2), Some(1)]).as_deref(), Some("104Mi"));
}
