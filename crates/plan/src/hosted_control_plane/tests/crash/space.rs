//! Crash sweeps over the care for etcd's space: volumes grow, members are restarted for a larger quota, databases are
//! defragmented, and the alarm ends. The world is three members with volumes, a storage driver and kubelets.
//!
//! What must never happen, whatever dies when: two volumes grow at once or one shrinks, a quota is larger than a volume
//! bears, two members are away at once, the leader comes before a follower, the alarm ends without room.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::rc::Rc;

use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use kube::core::DynamicObject;
use serde_json::json;

use super::super::super::etcd_calls::{
    EtcdStep, ListedMember, MemberChange, MemberId, MemberList, MemberState,
};
use super::super::super::*;
use super::super::checker::checked;
use super::super::fixture::{all_ready, claim, now, pod, workload};
use super::world::{Action, Effect};
use crate::flow::crash::{World, sweep};
use crate::flow::{Frontier, Next, Outcome, Read, Rounds, Setbacks, StepId};

const TAG: &str = "3.6.16-0";
const LIMIT: usize = 200;
const GIB: u64 = 1 << 30;

#[derive(Clone, Debug, PartialEq)]
struct Member {
    /// What its volume has and what its claim asks for, in GiB.
    size: u64,
    requested: u64,
    /// How often its pod was made, and with which quota.
    pods: usize,
    annotation: Option<String>,
    quota: u64,
    is_running: bool,
    allocated: u64,
    in_use: u64,
}

#[derive(Clone)]
struct Space {
    plans: Rc<RefCell<BTreeMap<String, Frontier<Action>>>>,
    base: Rc<Observed>,
    control_plane: HostedControlPlane,
    applied: BTreeMap<String, String>,
    /// What is in the files, and in the template.
    quota: u64,
    annotation: Option<String>,
    members: Vec<Member>,
    leader: usize,
    is_full: bool,
    restarted: Vec<usize>,
    violations: Vec<String>,
}

struct Seen {
    key: String,
    observed: Observed,
    applied: BTreeMap<String, String>,
}

impl Space {
    /// Three members with volumes of 8Gi; the first one leads.
    fn rested() -> Self {
        let base = all_ready(&json!({"etcd": {"replicas": 3}}));
        let member = Member {
            size: 8,
            requested: 8,
            pods: 1,
            annotation: None,
            quota: 6 * GIB,
            is_running: true,
            allocated: GIB,
            in_use: GIB,
        };
        let mut world = Self {
            plans: Rc::default(),
            control_plane: base.control_plane.clone(),
            base: Rc::new(base),
            applied: BTreeMap::new(),
            quota: 6 * GIB,
            annotation: None,
            members: vec![member; 3],
            leader: 0,
            is_full: false,
            restarted: Vec::new(),
            violations: Vec::new(),
        };
        world.converge();
        assert_eq!(world.restarted, Vec::<usize>::new(), "there is nothing to do");
        world
    }

    fn violated(&mut self, what: impl Into<String>) {
        self.violations.push(what.into());
    }

    fn write(&mut self, write: &flow::Write) -> Outcome {
        match &write.action {
            flow::Action::Itself(_) => write.on_itself(&mut self.control_plane),
            flow::Action::Change { target, fields } if target.kind == "PersistentVolumeClaim" => {
                let size = fields["spec"]["resources"]["requests"]["storage"].as_str().unwrap();
                let size: u64 = size.trim_end_matches("Gi").parse().unwrap();
                if self.members.iter().any(|member| member.size < member.requested) {
                    self.violated("two volumes grow at once");
                }
                let place = (0..3).find(|ordinal| claim(*ordinal).uid == target.uid).unwrap();
                let member = &mut self.members[usize::try_from(place).unwrap()];
                let is_smaller = size < member.requested;
                member.requested = size;
                if is_smaller {
                    self.violated("a volume shrinks");
                }
            }
            flow::Action::Evict { target } => {
                let is_it = |(ordinal, member): &(usize, &Member)| {
                    member.is_running && target.uid == format!("pod {ordinal} {}", member.pods)
                };
                let Some((ordinal, _)) = self.members.iter().enumerate().find(is_it) else {
                    return Outcome::Stale;
                };
                self.members[ordinal].is_running = false;
                if self.members.iter().filter(|member| !member.is_running).count() > 1 {
                    self.violated("two members are away at once");
                }
                let others = self.members.iter().enumerate().filter(|(other, _)| *other != ordinal);
                if self.leader == ordinal {
                    if others.clone().any(|(_, other)| other.annotation != self.annotation) {
                        self.violated("the leader was restarted before a follower");
                    }
                    self.leader = (ordinal + 1) % 3;
                }
                self.restarted.push(ordinal);
            }
            _ => {}
        }
        Outcome::Done
    }

    fn care(&mut self, step: &EtcdStep) -> Outcome {
        let ordinal: usize = step.member.rsplit('-').next().unwrap().parse().unwrap();
        let is_complete = self.members.iter().all(|member| member.is_running);
        match &step.change {
            MemberChange::Lead(id) => self.leader = usize::try_from(id.0).unwrap() - 1,
            MemberChange::Defragment => {
                if ordinal == self.leader {
                    self.violated("the leader was defragmented");
                }
                if !is_complete {
                    self.violated("a member was defragmented while another one was away");
                }
                let member = &mut self.members[ordinal];
                member.allocated = member.in_use;
            }
            MemberChange::EndNoSpace => {
                if self.members.iter().any(|member| member.allocated > member.quota / 8 * 7) {
                    self.violated("the alarm ended without room");
                }
                self.is_full = false;
            }
            _ => self.violated("nobody asked for a change of members"),
        }
        Outcome::Done
    }

    fn apply(&mut self, object: &DynamicObject) {
        match (object.types.as_ref().unwrap().kind.as_str(), object.metadata.name.as_deref()) {
            ("ConfigMap", Some("demo-etcd")) => {
                let text = object.data["data"]["demo-etcd-0.yaml"].as_str().unwrap();
                let file: serde_json::Value = serde_saphyr::from_str(text).unwrap();
                self.quota = file["quota-backend-bytes"].as_u64().unwrap();
                if self.members.iter().any(|member| self.quota > member.size * GIB / 4 * 3) {
                    self.violated("a quota is larger than a volume bears");
                }
            }
            ("StatefulSet", Some("demo-etcd")) => {
                let spec = &object.data["spec"];
                let first = &spec["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"];
                if *first != json!("8Gi") {
                    self.violated("the claim template was changed");
                }
                let annotations = &spec["template"]["metadata"]["annotations"];
                self.annotation = annotations[names::QUOTA_ANNOTATION].as_str().map(str::to_owned);
            }
            _ => {}
        }
    }

    fn converge(&mut self) {
        for _ in 0..30 {
            let mut seen = self.observe();
            checked(&seen.observed);
            let (mut rounds, setbacks) = (Rounds::default(), Setbacks::default());
            loop {
                let steps = self.plan(&seen);
                let Next::Run(step) = rounds.next(&steps, &setbacks, now()) else { break };
                let outcome = self.run(step);
                self.fold(&mut seen, step, &outcome);
                rounds.ran(step.id(), outcome);
            }
            self.settle();
        }
    }
}

impl World for Space {
    type Observation = Seen;
    type Step = Action;
    type EndState = (Vec<(u64, u64, u64, u64)>, bool, Vec<String>, Vec<String>);

    fn observe(&self) -> Seen {
        let mut observed = (*self.base).clone();
        observed.control_plane = self.control_plane.clone();
        let ready = self.members.iter().filter(|member| member.is_running).count();
        observed.etcd = Read::One(WorkloadFacts {
            quota: self.annotation.clone(),
            revision: Some(self.annotation.clone().unwrap_or_default()),
            ..workload("etcd", 3, i32::try_from(ready).unwrap(), TAG)
        });
        let members = || (0..).zip(&self.members);
        observed.etcd_pods = Read::found(members().map(|(ordinal, member)| PodFacts {
            uid: format!("pod {ordinal} {}", member.pods),
            is_ready: member.is_running,
            is_deleting: !member.is_running,
            address: Some("10.0.0.1".parse().unwrap()),
            quota: member.annotation.clone(),
            revision: Some(member.annotation.clone().unwrap_or_default()),
            ..pod(&format!("demo-etcd-{ordinal}"), TAG)
        }));
        observed.etcd_claims = Read::found(members().map(|(ordinal, member)| ClaimFacts {
            size: Some(format!("{}Gi", member.size)),
            requested: Some(format!("{}Gi", member.requested)),
            ..claim(ordinal)
        }));
        let size = |member: &Member| DatabaseSize {
            allocated: member.allocated,
            in_use: member.in_use,
            quota: member.quota,
        };
        let running = || members().filter(|(_, member)| member.is_running);
        let leader = i32::try_from(self.leader).unwrap();
        observed.etcd_members = Read::found(running().map(|(ordinal, member)| MemberFacts {
            name: format!("demo-etcd-{ordinal}"),
            is_leader: ordinal == leader,
            alarms: self.is_full.then_some(Alarm::NoSpace).into_iter().collect(),
            database: Some(size(member)),
        }));
        let id = |ordinal: i32| MemberId(u64::try_from(ordinal).unwrap() + 1);
        let listed = |(ordinal, _): (i32, &Member)| ListedMember {
            id: id(ordinal),
            name: format!("demo-etcd-{ordinal}"),
            peer_urls: vec![format!("https://etcd{ordinal}-demo.team.svc:2380")],
            is_learner: false,
        };
        let told = |(ordinal, member): (i32, &Member)| {
            let state = MemberState {
                id: id(ordinal),
                leader: Some(id(leader)),
                is_learner: false,
                revision: 1,
                errors: self.is_full.then(|| "memberID:1 alarm:NOSPACE ".to_owned()).into_iter().collect(),
                unapplied: 0,
                database: size(member),
            };
            (format!("demo-etcd-{ordinal}"), state)
        };
        observed.etcd_list = Read::One(MemberList {
            members: members().map(listed).collect(),
            told: running().map(told).collect(),
        });
        let state = (&self.members, self.leader, self.is_full, self.quota, &self.annotation);
        let spec = &self.control_plane.spec.settings.etcd;
        let key = format!("{state:?} {spec:?} {:?}", self.applied);
        Seen { key, observed, applied: self.applied.clone() }
    }

    fn plan(&self, seen: &Seen) -> Frontier<Action> {
        if let Some(known) = self.plans.borrow().get(&seen.key) {
            return known.clone();
        }
        let plan = seen.observed.plan();
        let calls = plan.steps.iter().map(|step| (step.id(), Effect::Call(step.clone())));
        let is_of_etcd = |object: &&DynamicObject| object.metadata.name.as_deref() == Some("demo-etcd");
        let applies = plan.objects.iter().filter(is_of_etcd).filter_map(|object| {
            let identity = ObjectIdentity::of(object);
            let hash = crate::hash::value(&serde_json::to_value(object).unwrap());
            let is_there = seen.applied.get(&identity.to_string()) == Some(&hash);
            let id = StepId::new("apply", "management", identity.to_string());
            (!is_there).then(|| (id, Effect::Apply(hash, Rc::new(object.clone()))))
        });
        let frontier: Frontier<Action> =
            calls.chain(applies).map(|(id, effect)| Action::new(id, effect)).collect();
        self.plans.borrow_mut().insert(seen.key.clone(), frontier.clone());
        frontier
    }

    fn run(&mut self, action: &Action) -> Outcome {
        match action.effect() {
            Effect::Apply(hash, object) => {
                self.applied.insert(ObjectIdentity::of(object).to_string(), hash.clone());
                self.apply(object);
                Outcome::Done
            }
            Effect::Call(Step::Write(write)) => self.write(write),
            Effect::Call(Step::Own(OwnStep::Etcd(step))) => self.care(step),
            Effect::Call(_) => Outcome::Done,
        }
    }

    fn fold(&self, seen: &mut Seen, action: &Action, outcome: &Outcome) {
        if outcome.is_success() {
            let _ = write!(seen.key, "\n{} {outcome}", action.id());
        }
        match action.effect() {
            Effect::Call(step) => seen.observed.fold(step, outcome),
            Effect::Apply(hash, object) if outcome.is_success() => {
                seen.applied.insert(ObjectIdentity::of(object).to_string(), hash.clone());
            }
            Effect::Apply(..) => {}
        }
    }

    /// What the storage driver and kubelets do.
    fn settle(&mut self) {
        let (quota, annotation) = (self.quota, self.annotation.clone());
        for member in &mut self.members {
            member.size = member.requested;
            if !member.is_running {
                member.pods += 1;
                (member.is_running, member.quota) = (true, quota);
                member.annotation.clone_from(&annotation);
            }
        }
    }

    fn end_state(&self) -> Self::EndState {
        let member = |member: &Member| (member.size, member.requested, member.quota, member.allocated);
        let said = self.observe().observed.plan().status.conditions;
        let said = said.iter().filter(|found| found.type_.starts_with("Etcd"));
        let said = said.map(|found| format!("{} {} {}", found.type_, found.status, found.reason)).collect();
        (self.members.iter().map(member).collect(), self.is_full, self.violations.clone(), said)
    }
}

/// Sweeps what follows from a change; the world after it.
fn swept(change: impl FnOnce(&mut Space)) -> Space {
    let mut world = Space::rested();
    change(&mut world);
    sweep(&world, LIMIT).unwrap();
    world.converge();
    let (_, is_full, violations, said) = world.end_state();
    assert_eq!(violations, Vec::<String>::new());
    assert_eq!((is_full, said), (false, vec!["EtcdClusterHealthy True AllReady".to_owned()]));
    world
}

#[test]
fn volumes_that_grow_survive_every_crash_and_members_are_restarted_once() {
    let wanted = serde_json::from_value(json!({"replicas": 3, "volumeSize": "10Gi"})).unwrap();
    let world = swept(|world| world.control_plane.spec.settings.etcd = Some(wanted));
    assert_eq!(world.restarted, [1, 2, 0], "followers first");
    assert!(world.members.iter().all(|member| (member.size, member.quota) == (10, 10 * GIB / 4 * 3)));
}

#[test]
fn defragmenting_survives_every_crash() {
    let world = swept(|world| {
        for member in &mut world.members {
            (member.allocated, member.in_use) = (5 * GIB, GIB);
        }
    });
    assert!(world.members.iter().all(|member| member.allocated == GIB));
    assert!(world.restarted.is_empty() && world.leader != 0);
}

#[test]
fn a_full_etcd_gets_room_whatever_dies() {
    let fill = |world: &mut Space, in_use: u64| {
        world.is_full = true;
        for member in &mut world.members {
            (member.allocated, member.in_use) = (6 * GIB, in_use);
        }
    };
    let world = swept(|world| fill(world, 2 * GIB));
    assert!(world.restarted.is_empty(), "there is much to give back");
    let grown = serde_json::from_value(json!({"replicas": 3, "autoGrow": true})).unwrap();
    let world = swept(|world| {
        fill(world, 6 * GIB - 1);
        world.control_plane.spec.settings.etcd = Some(grown);
    });
    assert!(world.members.iter().all(|member| (member.size, member.quota) == (11, 8 * GIB)));
    assert_eq!(world.restarted, [1, 2, 0]);
}
