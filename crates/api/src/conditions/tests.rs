//! Tests of the whole module as tables: findings and the conditions that are written.

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Condition, jiff::Timestamp};
use serde_json::json;

use super::{
    Actor, Bad, Finding, Good, Polarity, Priority, Reason, Severity, Source, Status, Term, Waiting,
    aggregate, get, is_true, mirror, remove, set, set_severity, summary,
};
use crate::cluster::legacy_condition::LegacyCondition;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn waiting() -> Waiting {
    Waiting::new(Actor::controller("the load balancer controller"), "an address")
}

fn reason(type_: &'static str, name: &'static str, status: Status, who: &'static [Actor]) -> Reason {
    Reason { type_, name, status, who, means: "" }
}

fn remarked(type_: &'static str, name: &'static str, text: impl Into<String>) -> Finding {
    Good::declare(reason(type_, name, Status::True, &[])).remark(text)
}

fn holds(type_: &'static str, name: &'static str) -> Finding {
    remarked(type_, name, "")
}

fn clear(type_: &'static str, name: &'static str) -> Finding {
    Good::declare(reason(type_, name, Status::False, &[])).into()
}

fn bad(type_: &'static str, name: &'static str, status: Status, waiting: &Waiting) -> Finding {
    const WHO: &[Actor] = &[Actor::Hangar];
    Bad::declare(reason(type_, name, status, WHO)).waiting(waiting.clone())
}

fn fails(type_: &'static str, name: &'static str, waiting: &Waiting) -> Finding {
    bad(type_, name, Status::False, waiting)
}

fn unknown(type_: &'static str, name: &'static str, waiting: &Waiting) -> Finding {
    bad(type_, name, Status::Unknown, waiting)
}

fn raised(type_: &'static str, name: &'static str, waiting: &Waiting) -> Finding {
    bad(type_, name, Status::True, waiting)
}

/// A list made through `set`, as everything is.
fn list(findings: Vec<Finding>) -> Vec<Condition> {
    let mut conditions = Vec::new();
    for finding in findings {
        set(&mut conditions, &finding, Some(1), at(0));
    }
    conditions
}

#[test]
fn messages_name_the_actor_and_what_is_waited_for() {
    let table = [
        (Waiting::new(Actor::Hangar, "etcd"), "waiting for etcd (Hangar must act)"),
        (
            Waiting::new(Actor::Cloud, "a server").because("No valid host was found.\n"),
            "No valid host was found; waiting for a server (the cloud must act)",
        ),
        (
            Waiting::new(Actor::ClusterOwner, "a lower version"),
            "waiting for a lower version (the cluster owner must act)",
        ),
        (waiting(), "waiting for an address (the load balancer controller must act)"),
    ];
    for (waiting, expected) in table {
        assert_eq!(fails("Ready", "Waiting", &waiting).message(), expected);
        assert_eq!(unknown("Ready", "Waiting", &waiting).message(), expected);
        assert_eq!(raised("Deleting", "Waiting", &waiting).message(), expected);
    }
}

#[test]
fn transition_time_moves_with_the_status_alone() {
    let mut conditions = Vec::new();
    assert!(set(&mut conditions, &fails("Ready", "A", &waiting()), Some(1), at(10)));
    // Nothing new: nothing changes, so nothing has to be written.
    assert!(!set(&mut conditions, &fails("Ready", "A", &waiting()), Some(1), at(20)));
    // Another reason, message or generation is a change, but no transition.
    assert!(set(&mut conditions, &fails("Ready", "B", &waiting()), Some(1), at(30)));
    assert!(set(&mut conditions, &fails("Ready", "B", &waiting()), Some(2), at(40)));
    assert_eq!(conditions[0].last_transition_time.0, at(10));
    assert_eq!(conditions[0].observed_generation, Some(2));
    assert!(set(&mut conditions, &holds("Ready", "Ready"), Some(2), at(50)));
    assert_eq!(conditions[0].last_transition_time.0, at(50));
    assert!(is_true(&conditions, "Ready"));
    assert!(remove(&mut conditions, "Ready") && !remove(&mut conditions, "Ready"));
    assert!(!is_true(&conditions, "Ready"));
}

#[test]
fn times_are_whole_seconds_as_they_are_read_back() {
    let mut conditions = Vec::new();
    let now: Timestamp = "2026-11-15T07:00:00.987654321Z".parse().unwrap();
    set(&mut conditions, &holds("Ready", "Ready"), None, now);
    let read: Vec<Condition> = serde_json::from_value(serde_json::to_value(&conditions).unwrap()).unwrap();
    assert_eq!(read, conditions);
    assert_eq!(conditions[0].last_transition_time.0, "2026-11-15T07:00:00Z".parse().unwrap());
}

#[test]
fn order_is_the_same_whatever_is_set_first() {
    let types = ["Paused", "EtcdReady", "Ready", "Deleting", "Available", "CertificatesReady"];
    let expected = ["Available", "Ready", "CertificatesReady", "EtcdReady", "Deleting", "Paused"];
    for rotation in 0..types.len() {
        let mut rotated = types;
        rotated.rotate_left(rotation);
        let conditions = list(rotated.map(|type_| holds(type_, "Good")).to_vec());
        assert_eq!(conditions.iter().map(|condition| condition.type_.as_str()).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn messages_are_cut_at_a_character() {
    let mut conditions = Vec::new();
    let long = "ü".repeat(20_000);
    set(&mut conditions, &remarked("Ready", "Ready", long), None, at(0));
    let message = &conditions[0].message;
    assert!(message.len() <= 32_768 && message.ends_with("ü..."), "{}", message.len());
}

#[test]
fn priority_follows_status_and_polarity() {
    let table = [
        (Status::True, Polarity::Positive, Priority::Info, "Ready"),
        (Status::False, Polarity::Positive, Priority::Issue, "NotReady"),
        (Status::Unknown, Polarity::Positive, Priority::Unknown, "ReadyUnknown"),
        (Status::True, Polarity::Negative, Priority::Issue, "Ready"),
        (Status::False, Polarity::Negative, Priority::Info, "NotReady"),
        (Status::Unknown, Polarity::Negative, Priority::Unknown, "ReadyUnknown"),
    ];
    for (status, polarity, priority, reason) in table {
        assert_eq!(Priority::of(status, polarity), priority);
        assert_eq!(priority.status(polarity), status);
        assert_eq!(priority.reason("Ready", polarity), reason);
    }
}

#[test]
fn mirrors_take_over_what_is_reported() {
    let source = list(vec![fails("Ready", "NoNetwork", &waiting())]);
    let missing = || unknown("InfrastructureReady", "NotYetReported", &waiting());
    let mirrored = mirror("InfrastructureReady", source.first(), missing());
    assert_eq!((mirrored.type_(), mirrored.status()), ("InfrastructureReady", Status::False));
    assert_eq!((mirrored.reason(), mirrored.message().as_ref()), ("NoNetwork", source[0].message.as_str()));

    let absent = mirror("InfrastructureReady", None, missing());
    assert_eq!((absent.status(), absent.reason()), (Status::Unknown, "NotYetReported"));
    assert_eq!(absent.message(), "waiting for an address (the load balancer controller must act)");

    // The v1beta1 contract allows a condition without reason and message.
    let bare = get::from_json(&json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}));
    let mirrored = mirror("InfrastructureReady", bare.first(), missing());
    assert_eq!(mirrored.reason(), "InfrastructureReady");
    assert!(mirrored.message().contains("must act"));
}

#[test]
fn summaries_go_by_priority() {
    let parts = [
        Term::positive("EtcdReady"),
        Term::positive("CertificatesReady"),
        Term::negative("Deleting"),
        Term::positive("BackupReady").optional(),
    ];
    let good = || vec![holds("EtcdReady", "Good"), holds("CertificatesReady", "Good")];
    let with = |finding: Finding| good().into_iter().chain([finding]).collect::<Vec<_>>();
    let waits = "waiting for an address (the load balancer controller must act)";
    let table = [
        (good(), "True", "Ready", String::new()),
        (with(clear("Deleting", "NotDeleting")), "True", "Ready", String::new()),
        (with(remarked("EtcdReady", "Good", "3 of 3")), "True", "Ready", "* EtcdReady: 3 of 3".into()),
        (
            vec![],
            "Unknown",
            "ReadyUnknown",
            "* CertificatesReady: not yet reported\n* EtcdReady: not yet reported".into(),
        ),
        (
            with(raised("Deleting", "Deleting", &waiting())),
            "False",
            "NotReady",
            format!("* Deleting: {waits}"),
        ),
        // An issue hides what is unknown and what is informative.
        (
            vec![
                unknown("CertificatesReady", "Unreadable", &waiting()),
                fails("EtcdReady", "NoQuorum", &waiting()),
            ],
            "False",
            "NotReady",
            format!("* EtcdReady: {waits}"),
        ),
        (
            with(unknown("BackupReady", "Unreadable", &waiting())),
            "Unknown",
            "ReadyUnknown",
            format!("* BackupReady: {waits}"),
        ),
    ];
    for (findings, status, reason, message) in table {
        let mut reversed = parts;
        reversed.reverse();
        for parts in [parts, reversed] {
            let made = {
                let conditions = list(findings.clone());
                summary("Ready", &parts, |type_| get(&conditions, type_).cloned())
            };
            assert_eq!(
                (made.status().as_str(), made.reason(), made.message().as_ref()),
                (status, reason, message.as_str())
            );
        }
    }
}

#[test]
fn aggregates_group_by_message_and_count_the_rest() {
    let fails = |detail: &str| list(vec![fails("Ready", "Failed", &waiting().because(detail))]).remove(0);
    let (boots, quota) = (fails("still boots"), fails("quota"));
    let good = list(vec![holds("Ready", "Ready")]).remove(0);
    let source = |name, condition| Source { kind: "Machine", name, condition };
    let mut sources = vec![
        source("e", Some(&boots)),
        source("a", Some(&boots)),
        source("b", Some(&quota)),
        source("d", Some(&boots)),
        source("c", Some(&boots)),
        source("f", Some(&good)),
        source("g", None),
    ];
    let expected = "* Machine a, c, d and 1 more: still boots; waiting for an address (the load balancer controller must act)\n\
                    * Machine b: quota; waiting for an address (the load balancer controller must act)";
    for _ in 0..sources.len() {
        sources.rotate_left(1);
        let made = aggregate("MachinesReady", Polarity::Positive, &sources);
        assert_eq!((made.status(), made.reason()), (Status::False, "NotMachinesReady"));
        assert_eq!(made.message(), expected);
    }
    let unknown =
        aggregate("MachinesReady", Polarity::Positive, &[source("f", Some(&good)), source("g", None)]);
    assert_eq!(
        (unknown.status(), unknown.message().as_ref()),
        (Status::Unknown, "* Machine g: not yet reported")
    );
    let none = aggregate("MachinesReady", Polarity::Positive, &[]);
    assert_eq!((none.status(), none.reason(), none.message().as_ref()), (Status::True, "MachinesReady", ""));
    let idle = aggregate("ScalingUp", Polarity::Negative, &[]);
    assert_eq!((idle.status(), idle.reason()), (Status::False, "NotScalingUp"));
    let different: Vec<_> = (0..5).map(|number| fails(&format!("cause {number}"))).collect();
    let sources: Vec<_> = different.iter().map(|condition| source("x", Some(condition))).collect();
    let many = aggregate("MachinesReady", Polarity::Positive, &sources);
    assert!(many.message().ends_with("* 2 more with other messages"), "{}", many.message());
}

#[test]
fn foreign_conditions_are_read_in_either_shape() {
    let new = json!({"type": "Ready", "status": "True", "reason": "A", "message": "", "observedGeneration": 3,
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let old = json!({"type": "Ready", "status": "False", "severity": "Error",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let read = |status| get::get_from_json(&json!({ "status": status }), "Ready").map(|found| found.status);
    assert_eq!(read(json!({"conditions": [new]})).as_deref(), Some("True"));
    assert_eq!(read(json!({"conditions": [old]})).as_deref(), Some("False"));
    assert_eq!(read(json!({"conditions": [old], "v1beta2": {"conditions": [new]}})).as_deref(), Some("True"));
    assert_eq!(read(json!({"conditions": [old], "v1beta2": {"conditions": []}})).as_deref(), Some("False"));
    for malformed in [json!({}), json!({"conditions": "x"}), json!({"conditions": [{"status": "True"}, 7]})] {
        assert_eq!(read(malformed), None);
    }
    assert_eq!(
        read(json!({"conditions": [{"type": "Ready", "status": "maybe"}]})).as_deref(),
        Some("Unknown")
    );
}

#[test]
fn the_older_shape_has_a_severity_only_when_something_is_bad() {
    let mut conditions: Vec<LegacyCondition> = Vec::new();
    assert!(set_severity(&mut conditions, &fails("Ready", "A", &waiting()), Severity::Warning, at(10)));
    assert!(!set_severity(&mut conditions, &fails("Ready", "A", &waiting()), Severity::Warning, at(20)));
    assert_eq!(conditions[0].severity.as_deref(), Some("Warning"));
    assert_eq!(conditions[0].last_transition_time.0, at(10));
    assert!(set_severity(&mut conditions, &holds("Ready", "Good"), Severity::Error, at(30)));
    let written = serde_json::to_value(&conditions).unwrap();
    assert_eq!(
        written,
        json!([{"type": "Ready", "status": "True", "lastTransitionTime": "1970-01-01T00:00:30Z"}])
    );
    // What ought to be False and is has no place in it.
    let paused = raised("Paused", "Paused", &waiting());
    assert!(set_severity(&mut conditions, &paused, Severity::Info, at(40)) && conditions.len() == 2);
    assert!(set_severity(&mut conditions, &clear("Paused", "NotPaused"), Severity::Info, at(50)));
    assert_eq!(conditions.len(), 1);
}
