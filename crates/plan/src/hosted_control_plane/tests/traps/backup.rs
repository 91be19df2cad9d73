//! Backups: when they are ordered, what is told, and what never waits for them.

use hangar_api::names::{BACKUP_REQUESTED_ANNOTATION, DELETE_FOR_MOVE_ANNOTATION};
use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::flow::Identified as _;
use crate::hosted_control_plane::backup::{BackupStep, Failure, Made, Order, Origin, Work};
use crate::hosted_control_plane::conditions::{deleting, etcd_backed_up, etcd_backup_complete};

/// A control plane that runs, with three members the first of which leads, and backups at three.
fn running(more: &Value) -> Observed {
    let mut backup = json!({"schedule": "0 3 * * *", "secret": {"name": "bucket"}});
    backup.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut observed = all_ready(&json!({"etcd": {"replicas": 3, "backup": backup}}));
    let member = |ordinal: u8| PodFacts {
        is_ready: true,
        address: Some(IpAddr::from([10, 0, 1, ordinal])),
        ..pod(&format!("demo-etcd-{ordinal}"), "3.6.16-0")
    };
    observed.etcd_pods = Read::found((0..3).map(member));
    let told = |ordinal: i32| MemberFacts {
        name: format!("demo-etcd-{ordinal}"),
        is_leader: ordinal == 0,
        ..MemberFacts::default()
    };
    observed.etcd_members = Read::found((0..3).map(told));
    observed
}

fn steps(plan: &Plan) -> Vec<BackupStep> {
    let of = |step: &Step| match step {
        Step::Own(OwnStep::Backup(step)) => Some(step.clone()),
        _ => None,
    };
    plan.steps.iter().filter_map(of).collect()
}

fn ordered(observed: &Observed) -> Option<Order> {
    match &steps(&checked(observed))[..] {
        [BackupStep::Make(order)] => Some((**order).clone()),
        [] => None,
        other => panic!("{other:?}"),
    }
}

fn made(order: &Order, began: Timestamp) -> Work {
    Work::Made(Box::new(Made {
        id: began.strftime("%Y%m%dT%H%M%SZ").to_string(),
        began,
        seconds: 7,
        size: 1 << 20,
        stored_size: 1 << 20,
        revision: 42,
        is_encrypted: order.settings.encryption.is_some(),
        has_keys: !order.keys.is_empty(),
        request: order.request.clone(),
        is_last: order.is_last,
        retention_failure: None,
    }))
}

fn failed(order: &Order, at: Timestamp, origin: Origin) -> Work {
    Work::Failed(Box::new(Failure {
        at,
        origin,
        reason: "StoreDenied".to_owned(),
        message: "put object: AccessDenied".to_owned(),
        request: order.request.clone(),
        settings: Some(order.settings_hash.clone()),
    }))
}

/// What a pass writes, and the work that it recorded is gone.
fn write(observed: &mut Observed, work: Work) -> Plan {
    observed.backup = work;
    let plan = checked(observed);
    observed.control_plane.status = Some(plan.status.clone());
    observed.backup = Work::None;
    plan
}

fn later(observed: &mut Observed, time: SignedDuration) {
    observed.now = observed.now.checked_add(time).unwrap();
    observed.clocks = Clocks::alone(observed.now);
}

fn said(plan: &Plan, type_: &str) -> String {
    let found = plan.status.conditions.iter().find(|found| found.type_ == type_);
    found.map(|found| format!("{} {}", found.reason, found.message)).unwrap_or_default()
}

#[test]
fn the_first_backup_is_ordered_at_once_from_a_follower_and_only_once() {
    let mut observed = running(&json!({}));
    let order = ordered(&observed).unwrap();
    assert_eq!(
        (order.through.member.as_str(), order.through.address.to_string().as_str()),
        ("demo-etcd-2", "10.0.1.2:2379")
    );
    assert_eq!(order.owner, ("team".to_owned(), "demo".to_owned()));
    assert!(said(&checked(&observed), etcd_backed_up::TYPE).starts_with("NoneYet "));
    observed.backup = Work::Running;
    assert_eq!(ordered(&observed), None);
    let began = observed.now;
    let plan = write(&mut observed, made(&order, began));
    assert_eq!(steps(&plan), []);
    let status = &plan.status;
    assert_eq!(status.etcd_last_backup_time.as_ref().unwrap().0, began);
    assert_eq!(status.etcd_next_backup_time.as_ref().unwrap().0.to_string(), "2026-01-03T03:00:00Z");
    assert_eq!(status.etcd_backup.as_ref().unwrap().last_success.as_ref().unwrap().revision, 42);
    assert!(said(&plan, etcd_backed_up::TYPE).starts_with("UpToDate"));
    // The same again is the same: no status is written for nothing.
    let again = checked(&observed);
    assert_eq!((ordered(&observed), &again.status), (None, &plan.status));
    assert_eq!(again.wake, Wake::At("2026-01-03T03:00:00Z".parse().unwrap()).sooner(again.wake));
    let before = observed.backup_identity();
    later(&mut observed, days(30));
    assert!(ordered(&observed).is_some(), "missed for a month");
    assert_eq!(observed.backup_identity(), before, "time alone starts nothing anew");
}

#[test]
fn only_the_end_of_a_backup_makes_it_another_one() {
    let mut observed = running(&json!({}));
    let order = ordered(&observed).unwrap();
    observed.backup = Work::Running;
    observed.control_plane.metadata.generation = Some(99);
    observed.control_plane.spec.replicas = 3;
    observed.etcd_members = Read::unknown("none answers");
    assert_eq!(observed.backup_identity().unwrap(), order.identity);
    let failing = failed(&order, observed.now, Origin::Store);
    write(&mut observed, failing);
    assert_ne!(observed.backup_identity().unwrap(), order.identity);
}

#[test]
fn a_store_that_fails_is_told_tried_again_ever_more_rarely_and_disturbs_nothing() {
    let mut observed = running(&json!({}));
    let quiet = checked(&running(&json!({})));
    for (attempt, minutes) in [1, 2, 4, 8, 16, 32, 60, 60].into_iter().enumerate() {
        let order = ordered(&observed).unwrap();
        let at = observed.now;
        let plan = write(&mut observed, failed(&order, at, Origin::Store));
        let status = plan.status.etcd_backup.clone().unwrap();
        assert_eq!(status.last_failure.unwrap().attempts, i32::try_from(attempt).unwrap() + 1);
        let text = said(&plan, etcd_backed_up::TYPE);
        assert!(text.starts_with("StoreFailing put object: AccessDenied; waiting for the store"), "{text}");
        assert_eq!(condition_status(&plan, "Ready"), condition_status(&quiet, "Ready"));
        assert_eq!(plan.objects.len(), quiet.objects.len());
        later(&mut observed, SignedDuration::from_secs(minutes * 60 - 1));
        assert_eq!(ordered(&observed), None, "attempt {attempt}");
        later(&mut observed, SignedDuration::from_secs(1));
    }
    // Another setting is tried at once, and so is a request.
    let order = ordered(&observed).unwrap();
    let at = observed.now;
    write(&mut observed, failed(&order, at, Origin::Secret));
    assert_eq!(ordered(&observed), None);
    let mut edited = observed.clone();
    edited.control_plane.spec.settings.etcd.as_mut().unwrap().backup.as_mut().unwrap().secret.name =
        "other".to_owned();
    assert!(ordered(&edited).is_some());
    annotate(&mut observed, "token-1");
    let order = ordered(&observed).unwrap();
    assert_eq!(order.request.as_deref(), Some("token-1"));
    let at = observed.now;
    write(&mut observed, failed(&order, at, Origin::Secret));
    assert_eq!(ordered(&observed), None, "once, and then as any other");
    // It ends with a backup.
    later(&mut observed, SignedDuration::from_hours(1));
    let order = ordered(&observed).unwrap();
    let began = observed.now;
    let plan = write(&mut observed, made(&order, began));
    assert!(said(&plan, etcd_backed_up::TYPE).starts_with("UpToDate"));
    assert!(plan.status.etcd_backup.unwrap().last_failure.is_some(), "what failed last can still be seen");
}

#[test]
fn a_failure_is_over_with_a_backup_that_began_in_the_same_second() {
    let mut observed = running(&json!({}));
    let order = ordered(&observed).unwrap();
    let at = observed.now;
    write(&mut observed, failed(&order, at, Origin::Secret));
    annotate(&mut observed, "now");
    let order = ordered(&observed).unwrap();
    let plan = write(&mut observed, made(&order, at));
    assert!(
        said(&plan, etcd_backed_up::TYPE).starts_with("UpToDate"),
        "{}",
        said(&plan, etcd_backed_up::TYPE)
    );
    // And begins again in the same second.
    annotate(&mut observed, "again");
    let order = ordered(&observed).unwrap();
    let plan = write(&mut observed, failed(&order, at, Origin::Store));
    assert!(said(&plan, etcd_backed_up::TYPE).starts_with("StoreFailing"));
    assert_eq!(plan.status.etcd_backup.unwrap().last_failure.unwrap().attempts, 1);
}

fn annotate(observed: &mut Observed, token: &str) {
    let annotations = observed.control_plane.metadata.annotations.get_or_insert_default();
    annotations.insert(BACKUP_REQUESTED_ANNOTATION.to_owned(), token.to_owned());
}

#[test]
fn a_request_is_answered_once() {
    let mut observed = running(&json!({}));
    let order = ordered(&observed).unwrap();
    let began = observed.now;
    write(&mut observed, made(&order, began));
    assert_eq!(ordered(&observed), None);
    annotate(&mut observed, "a");
    // While one is made that began before the request, another is still needed.
    let order = ordered(&observed).unwrap();
    observed.backup = Work::Running;
    annotate(&mut observed, "b");
    let began = observed.now;
    let plan = write(&mut observed, made(&order, began));
    assert_eq!(plan.status.etcd_backup.unwrap().last_request.as_deref(), Some("a"));
    later(&mut observed, SignedDuration::from_secs(2));
    let order = ordered(&observed).unwrap();
    assert_eq!(order.request.as_deref(), Some("b"));
    let began = observed.now;
    write(&mut observed, made(&order, began));
    later(&mut observed, SignedDuration::from_hours(1));
    assert_eq!(ordered(&observed), None);
    assert!(observed.control_plane.status.as_ref().unwrap().etcd_next_backup_time.is_some());
    annotate(&mut observed, &"x".repeat(10_000));
    assert_eq!(ordered(&observed).unwrap().request.unwrap().len(), 128);
}

#[test]
fn nothing_is_begun_while_etcd_could_not_give_a_backup() {
    let waits = |change: fn(&mut Observed), expected: &str| {
        let mut observed = running(&json!({}));
        change(&mut observed);
        assert_eq!(ordered(&observed), None, "{expected}");
        let text = said(&checked(&observed), etcd_backed_up::TYPE);
        assert!(text.contains(expected), "{text}");
    };
    waits(|observed| observed.etcd_members = Read::unknown("no answer"), "an answer of a member of etcd");
    waits(|observed| observed.etcd_pods = Read::Absent, "a quorum of etcd, 0 of 3 members are ready");
    let corrupt = |observed: &mut Observed| {
        observed.etcd_members.iter_mut().for_each(|member| member.alarms = [Alarm::Corrupt].into());
    };
    waits(corrupt, "which member has the right data");
    // One that is full can be read.
    let mut full = running(&json!({}));
    full.etcd_members.iter_mut().for_each(|member| member.alarms = [Alarm::NoSpace].into());
    assert!(ordered(&full).is_some());
    // Without a follower that is well, the leader.
    let mut alone = running(&json!({}));
    alone.etcd_pods.iter_mut().for_each(|pod| pod.is_ready = pod.name != "demo-etcd-2");
    assert_eq!(ordered(&alone).unwrap().through.member, "demo-etcd-1");
    alone.etcd_members.retain(|member| member.name == "demo-etcd-0");
    assert_eq!(ordered(&alone).unwrap().through.member, "demo-etcd-1", "one that did not say that it leads");
    // A backup that was made and is due again is late.
    let mut late = running(&json!({}));
    let (order, began) = (ordered(&late).unwrap(), late.now);
    write(&mut late, made(&order, began));
    later(&mut late, days(2));
    late.etcd_pods = Read::Absent;
    assert!(said(&checked(&late), etcd_backed_up::TYPE).starts_with("Late "));
}

#[test]
fn no_member_is_restarted_while_a_backup_is_made() {
    let mut observed = running(&json!({}));
    let evicts = |observed: &Observed| checked(observed).steps.iter().any(|step| is(step, "evict", "pod"));
    let version = observed.etcd.iter().next().unwrap().version.clone();
    observed.etcd_pods.iter_mut().for_each(|pod| pod.version = Some("3.5.0-0".to_owned()));
    listed(&mut observed, 3, 0);
    assert!(version.is_some() && evicts(&observed));
    observed.backup = Work::Running;
    assert!(!evicts(&observed));
    let rolling = said(&checked(&observed), conditions::rolling_out::TYPE);
    assert!(rolling.contains("the backup that is being made to end, then for etcd's members"), "{rolling}");
}

#[test]
fn keys_go_along_with_encrypted_backups_alone_and_a_condition_tells_what_is_missing() {
    let plain = running(&json!({}));
    assert_eq!(ordered(&plain).unwrap().keys.len(), 0);
    let encryption = json!({"encryption": {"secretName": "key"}});
    let mut observed = running(&encryption);
    let order = ordered(&observed).unwrap();
    assert_eq!(order.keys.len(), Material::IRREPLACEABLE.len());
    assert_eq!(order.keys["ca"], "demo-ca");
    assert_eq!(condition_status(&checked(&observed), etcd_backup_complete::TYPE), "");
    let began = observed.now;
    let plan = write(&mut observed, made(&order, began));
    assert_eq!(condition_status(&plan, etcd_backup_complete::TYPE), "True Complete");
    let mut observed = plain;
    let (order, began) = (ordered(&observed).unwrap(), observed.now);
    let plan = write(&mut observed, made(&order, began));
    assert_eq!(condition_status(&plan, etcd_backup_complete::TYPE), "False WithoutKeys");
    let text = said(&plan, etcd_backup_complete::TYPE);
    assert!(text.contains("spec.etcd.backup.encryption (the cluster owner must act)"), "{text}");
}

#[test]
fn backups_can_be_suspended_and_removed_also_while_one_is_made() {
    let mut observed = running(&json!({}));
    observed.backup = Work::Running;
    let backup = |observed: &mut Observed| {
        observed.control_plane.spec.settings.etcd.as_mut().unwrap().backup.as_mut().unwrap().suspend =
            Some(true);
    };
    let identity = observed.backup_identity();
    backup(&mut observed);
    assert_eq!(observed.backup_identity(), identity, "or nobody could end it");
    let plan = checked(&observed);
    assert_eq!(steps(&plan), [BackupStep::Stop]);
    assert_eq!(condition_status(&plan, etcd_backed_up::TYPE), "False Suspended");
    observed.backup = Work::None;
    assert_eq!(steps(&checked(&observed)), []);
    observed.control_plane.status = Some(plan.status);
    observed.control_plane.spec.settings.etcd.as_mut().unwrap().backup = None;
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, etcd_backed_up::TYPE), "");
    assert_eq!(plan.status.etcd_next_backup_time, None);
}

#[test]
fn a_schedule_that_was_stored_and_cannot_be_read_stops_backups_alone() {
    let observed = running(&json!({"schedule": "99 99 * * *"}));
    let plan = checked(&observed);
    assert_eq!(condition_status(&plan, etcd_backed_up::TYPE), "False InvalidSchedule");
    assert_eq!(condition_status(&plan, "SpecificationValid"), "True Valid");
    assert_eq!(steps(&plan), []);
}

#[test]
fn what_cannot_be_deleted_from_the_bucket_is_told() {
    let mut observed = running(&json!({}));
    let (order, began) = (ordered(&observed).unwrap(), observed.now);
    let Work::Made(mut success) = made(&order, began) else { panic!() };
    success.retention_failure = Some(format!("delete object: AccessDenied{}", "x".repeat(1000)));
    let plan = write(&mut observed, Work::Made(success));
    let text = said(&plan, etcd_backed_up::TYPE);
    assert!(text.starts_with("NotPruned delete object: AccessDenied") && text.len() < 500, "{text}");
}

/// What a plan does and says about backups.
fn shown(stage: &str, plan: &Plan) -> Value {
    let of_backups = |found: &&k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
        [etcd_backed_up::TYPE, etcd_backup_complete::TYPE].contains(&found.type_.as_str())
    };
    let conditions = plan.status.conditions.iter().filter(of_backups);
    let line = |found: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
        format!("{}={} {}: {}", found.type_, found.status, found.reason, found.message)
    };
    let orders: Vec<String> = steps(plan)
        .iter()
        .map(|step| match step {
            BackupStep::Make(order) => format!(
                "{}: from {}, for {}/{}, with {:?}, last {}",
                step.id(),
                order.through.member,
                order.owner.0,
                order.owner.1,
                order.keys.values().collect::<Vec<_>>(),
                order.is_last
            ),
            BackupStep::Stop => step.id().to_string(),
        })
        .collect();
    json!({
        "stage": stage,
        "orders": orders,
        "conditions": conditions.map(line).collect::<Vec<_>>(),
        "status": plan.status.etcd_backup,
        "last": plan.status.etcd_last_backup_time,
        "next": plan.status.etcd_next_backup_time,
    })
}

#[test]
fn the_life_of_backups_as_a_golden() {
    let mut observed = running(&json!({"encryption": {"secretName": "key"}, "beforeDeletion": true}));
    let mut stages = vec![shown("none yet", &checked(&observed))];
    let (order, at) = (ordered(&observed).unwrap(), observed.now);
    observed.backup = Work::Running;
    stages.push(shown("the first is being made", &checked(&observed)));
    stages.push(shown("it failed", &write(&mut observed, failed(&order, at, Origin::Store))));
    later(&mut observed, SignedDuration::from_mins(1));
    let (order, began) = (ordered(&observed).unwrap(), observed.now);
    stages.push(shown("it is made", &write(&mut observed, made(&order, began))));
    later(&mut observed, days(3));
    stages.push(shown("three were missed", &checked(&observed)));
    insta::assert_snapshot!(golden::documents(stages));
}

/// All API servers have ended.
fn leaving(more: &Value) -> Observed {
    let mut observed = running(more);
    delete(&mut observed);
    (observed.api_server, observed.controller_manager, observed.scheduler) =
        (Read::Absent, Read::Absent, Read::Absent);
    (observed.api_server_pods, observed.controller_pods) = (Read::Absent, Read::Absent);
    observed
}

fn deletes(observed: &Observed, kind: &str) -> bool {
    let steps = checked(observed).steps;
    steps.iter().any(|step| is(step, "delete", "management") && step.id().name.contains(kind))
}

#[test]
fn a_deletion_waits_for_the_last_backup_and_for_no_other_reason() {
    let asked = json!({"beforeDeletion": true});
    let mut observed = leaving(&asked);
    let order = ordered(&observed).unwrap();
    assert!(order.is_last && !deletes(&observed, "StatefulSet"));
    assert!(said(&checked(&observed), deleting::TYPE).starts_with("LastBackup "));
    observed.backup = Work::Running;
    assert!(ordered(&observed).is_none() && !deletes(&observed, "StatefulSet"));
    // A store that fails is tried again, and the condition says how to go on.
    let at = observed.now;
    let plan = write(&mut observed, failed(&order, at, Origin::Store));
    let text = said(&plan, deleting::TYPE);
    assert!(text.contains("AccessDenied") && text.contains("spec.etcd.backup.suspend"), "{text}");
    assert!(ordered(&observed).is_none());
    later(&mut observed, SignedDuration::from_mins(1));
    let order = ordered(&observed).unwrap();
    let began = observed.now;
    write(&mut observed, made(&order, began));
    assert!(ordered(&observed).is_none() && deletes(&observed, "StatefulSet"));
    // Also when etcd is half gone.
    (observed.etcd, observed.etcd_pods) = (Read::Absent, Read::Absent);
    (observed.service, observed.tunnel) = (Read::Absent, Read::Absent);
    assert!(deletes(&observed, "PersistentVolumeClaim"));

    // The API servers come first.
    let mut serving = running(&asked);
    delete(&mut serving);
    assert!(ordered(&serving).is_none() && deletes(&serving, "Deployment"));

    let goes_on = |observed: &Observed, why: &str| {
        assert!(ordered(observed).is_none() && deletes(observed, "StatefulSet"), "{why}");
    };
    goes_on(&leaving(&json!({})), "nobody asked for it");
    goes_on(&leaving(&json!({"beforeDeletion": true, "suspend": true})), "suspended");
    let mut empty = leaving(&asked);
    empty.control_plane.metadata.annotations.as_mut().unwrap().remove(names::ETCD_ANNOTATION);
    goes_on(&empty, "there never was data");
    let mut moved = leaving(&asked);
    let annotations = moved.control_plane.metadata.annotations.as_mut().unwrap();
    annotations.insert(DELETE_FOR_MOVE_ANNOTATION.to_owned(), String::new());
    goes_on(&moved, "it lives on elsewhere");
    let mut namespace = leaving(&asked);
    let (order, at) = (ordered(&namespace).unwrap(), namespace.now);
    write(&mut namespace, failed(&order, at, Origin::Namespace));
    goes_on(&namespace, "the namespace goes, and must not wait");
    // An earlier backup is not the last one.
    let mut before = running(&asked);
    let (order, began) = (ordered(&before).unwrap(), before.now);
    write(&mut before, made(&order, began));
    let mut observed = leaving(&asked);
    observed.control_plane.status = before.control_plane.status;
    assert!(ordered(&observed).unwrap().is_last);
    // Without a quorum it waits, and says so.
    observed.etcd_pods = Read::Absent;
    assert!(ordered(&observed).is_none() && !deletes(&observed, "StatefulSet"));
    assert!(said(&checked(&observed), deleting::TYPE).contains("a quorum of etcd"));
}

/// What there is outside: the object, the bucket, and what the process that leads remembers.
struct World {
    observed: Observed,
    complete: Vec<(String, Timestamp)>,
    unfinished: usize,
    running: Option<Order>,
    ended: Option<(String, Work)>,
}

impl World {
    fn new() -> Self {
        let observed = running(&json!({}));
        Self { observed, complete: Vec::new(), unfinished: 0, running: None, ended: None }
    }

    fn see(&mut self) {
        later(&mut self.observed, SignedDuration::from_secs(1));
        let identity = self.observed.backup_identity();
        self.observed.backup = match (&self.running, &self.ended) {
            (Some(order), _) if Some(&order.identity) == identity.as_ref() => Work::Running,
            (_, Some((of, work))) if Some(of) == identity.as_ref() => work.clone(),
            _ => Work::None,
        };
    }

    /// One thing that happens, in turn: a pass runs its steps, it writes its status, the work gets on.
    fn event(&mut self, number: usize) {
        self.see();
        match number % 4 {
            0 => {
                if let Some(order) = ordered(&self.observed) {
                    assert_eq!(self.running, None, "two at once");
                    // It removes what an earlier one left.
                    (self.running, self.ended, self.unfinished) = (Some(order), None, 1);
                }
            }
            1 | 3 => self.observed.control_plane.status = Some(checked(&self.observed).status),
            _ => {
                if let Some(order) = self.running.take() {
                    let began = self.observed.now;
                    let work = made(&order, began);
                    let Work::Made(made) = &work else { panic!() };
                    self.complete.push((made.id.clone(), began));
                    self.unfinished = 0;
                    self.ended = Some((order.identity, work));
                }
            }
        }
    }

    fn crash(&mut self) {
        (self.running, self.ended) = (None, None);
    }
}

#[test]
fn a_backup_survives_a_crash_at_every_moment() {
    for crashes in (0..12).map(Some).chain([None]) {
        let mut world = World::new();
        for number in 0..24 {
            world.event(number);
            if crashes == Some(number) {
                world.crash();
            }
        }
        world.see();
        let recorded = world.observed.control_plane.status.clone().unwrap().etcd_backup.unwrap();
        let recorded = recorded.last_success.unwrap().id;
        assert_eq!(Some(&recorded), world.complete.last().map(|(id, _)| id), "{crashes:?}");
        // One more at most: that which was complete and not on record.
        let most = if crashes.is_some() { 2 } else { 1 };
        assert!(world.complete.len() <= most, "{crashes:?} {:?}", world.complete);
        assert_eq!((world.unfinished, &world.running), (0, &None), "{crashes:?}");
    }
}
