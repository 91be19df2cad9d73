//! Crash sweep over calls to etcd: the manager dies right after a member did what it was asked for, with and without the
//! answer, while real members are added, replaced and removed, and somebody writes. The next manager must go on and come
//! to the same end.
//!
//! In CI one manager after the other dies in one story, at each of the calls in turn. With `HANGAR_SWEEP=all` there is a
//! story for each call with each answer: that takes half an hour.

use std::collections::VecDeque;

use hangar_kit::call::CallLog;
use serde_json::json;

use super::super::world::{CONTROLLER, SWEPT, World, turn_to_sweep};
use super::{Members, Writer, lose, nothing_is_missing, settles, want};
use crate::whole::manager::Manager;
use crate::whole::strikes::{Case, Point, Strikes};

/// What is called from one member to three, one of which is replaced, and back to one from the highest, which leads.
const CALLS: [(&str, usize); 9] = [
    ("add learner", 1),
    ("promote", 1),
    ("add learner", 2),
    ("promote", 2),
    ("remove member", 1),
    ("add learner", 3),
    ("promote", 3),
    ("remove member", 2),
    ("remove member", 3),
];

/// Members may choose another leader by themselves before they are asked to.
const BY_CHANCE: (&str, usize) = ("move leader", 1);

fn case((verb, occurrence): (&str, usize), is_answered: bool) -> Case {
    Case { point: Point { name: format!("etcd: {verb}"), occurrence }, is_answered }
}

/// Starts a manager, and another one whenever the last one died.
struct Keeper {
    strikes: Strikes,
    cases: VecDeque<Case>,
    calls: CallLog,
    manager: Option<Manager>,
}

impl Keeper {
    fn start(world: &World, cases: Vec<Case>) -> Self {
        let (mut cases, calls) = (VecDeque::from(cases), CallLog::default());
        let strikes = Strikes::new(&world.namespace, cases.pop_front().as_ref());
        let manager = Some(Manager::start_of(CONTROLLER, &strikes, &calls));
        Self { strikes, cases, calls, manager }
    }

    async fn keep(&mut self) {
        loop {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            if self.strikes.has_fired() {
                // The old one is gone before the new one begins.
                if let Some(manager) = self.manager.take() {
                    manager.kill().await;
                }
                self.strikes = self.strikes.next(self.cases.pop_front().as_ref());
                self.manager = Some(Manager::start_of(CONTROLLER, &self.strikes, &self.calls));
            }
        }
    }
}

/// Says whether all of them were struck.
async fn story(cases: Vec<Case>) -> bool {
    let world = World::new_in(&SWEPT, "members").await;
    world.apply(json!({"version": "v1.34.11", "replicas": 1, "etcd": {"replicas": 1}})).await;
    let members = Members::start(&world);
    let etcdctl = &members.etcdctl;
    let mut keeper = Keeper::start(&world, cases);
    let told = async {
        settles(&world, etcdctl, 1).await;
        let writer = Writer::start(etcdctl);
        want(&world, 3).await;
        settles(&world, etcdctl, 3).await;
        lose(&world, "demo-etcd-1").await;
        settles(&world, etcdctl, 3).await;
        etcdctl.lead("demo-etcd-2").await;
        want(&world, 1).await;
        settles(&world, etcdctl, 1).await;
        writer
    };
    let writer = tokio::select! {
        writer = told => writer,
        () = keeper.keep() => unreachable!("it is kept without end"),
    };
    nothing_is_missing(writer, etcdctl);
    let seen = keeper.strikes.seen();
    let known: Vec<Point> = CALLS.into_iter().chain([BY_CHANCE]).map(|call| case(call, true).point).collect();
    let twice: Vec<&Point> =
        seen.iter().filter(|point| point.name.starts_with("etcd: ") && !known.contains(point)).collect();
    assert_eq!(twice, [] as [&Point; 0], "nothing is done twice");
    let is_struck = keeper.strikes.missed().is_none() && keeper.cases.is_empty();
    if let Some(manager) = keeper.manager {
        manager.kill().await;
    }
    is_struck
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manager_that_dies_after_any_call_to_etcd_leaves_no_member_twice_and_none_behind() {
    let _turn = turn_to_sweep().await;
    if std::env::var("HANGAR_SWEEP").is_ok_and(|value| value == "all") {
        for call in CALLS.into_iter().chain([BY_CHANCE]) {
            for is_answered in [true, false] {
                let case = case(call, is_answered);
                eprintln!("{case}");
                assert!(story(vec![case.clone()]).await || call == BY_CHANCE, "never reached: {case}");
            }
        }
        return;
    }
    let cases = CALLS.into_iter().zip([true, false].into_iter().cycle());
    let cases = cases.map(|(call, is_answered)| case(call, is_answered)).collect();
    assert!(story(cases).await, "not all calls were reached");
}
