//! Crash sweeps over the changes of etcd's members: one that lost its volume is replaced, and their number changes. The
//! world is etcd's: a list of members, claims and what is in them, pods that start as their configuration lets them.
//!
//! Where a majority has lost its data, one member goes on alone, as another cluster, and the others join it.
//!
//! What must never happen, whatever dies when: etcd loses its majority, a member votes in a volume without what it knew,
//! two members join at once, a volume goes that a member needs, somebody goes on alone while a majority lives, or twice.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
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

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    ordinal: i32,
    is_learner: bool,
    /// The claim that it began in.
    claim: Option<String>,
}

#[derive(Clone, Debug)]
struct Claim {
    uid: String,
    is_deleting: bool,
    is_lost: bool,
    /// The members whose data is in it, by directory.
    data: BTreeMap<String, u64>,
}

/// A pod, by its number, and whether a member runs in it.
#[derive(Clone, Debug)]
struct Runs {
    number: usize,
    member: Option<u64>,
}

#[derive(Clone)]
struct Etcd {
    plans: Rc<RefCell<BTreeMap<String, Frontier<Action>>>>,
    base: Rc<Observed>,
    control_plane: HostedControlPlane,
    replicas: i32,
    /// The number of the first pod.
    first: i32,
    /// The version of the StatefulSet's template, while there is one.
    template: Option<String>,
    is_deleting: bool,
    /// Where members have their data.
    directory: String,
    /// Who went on alone, with what, and where: a member's data and its directory.
    alone: Option<(i32, u64, String)>,
    /// Who each member's configuration names, by ordinal.
    lists: BTreeMap<i32, BTreeSet<i32>>,
    /// What API servers were told, one after the other.
    servers: Vec<usize>,
    applied: BTreeMap<String, String>,
    claims: BTreeMap<i32, Claim>,
    pods: BTreeMap<i32, Runs>,
    list: BTreeMap<u64, Entry>,
    leader: u64,
    made: u64,
    violations: Vec<String>,
}

struct Seen {
    key: String,
    observed: Observed,
    applied: BTreeMap<String, String>,
}

fn quorum(members: usize) -> usize {
    members / 2 + 1
}

impl Etcd {
    fn running(members: i32) -> Self {
        let base = all_ready(&json!({"etcd": {"replicas": members}}));
        let ordinals = || 0..members;
        let id = |ordinal: i32| u64::try_from(ordinal).unwrap() + 1;
        let entry = |ordinal| {
            let claim = Some(claim(ordinal).uid);
            (id(ordinal), Entry { ordinal, is_learner: false, claim })
        };
        let kept = |ordinal| {
            let data = [("data".to_owned(), id(ordinal))].into();
            (ordinal, Claim { uid: claim(ordinal).uid, is_deleting: false, is_lost: false, data })
        };
        let mut world = Self {
            plans: Rc::default(),
            control_plane: base.control_plane.clone(),
            base: Rc::new(base),
            replicas: members,
            first: 0,
            template: Some(TAG.to_owned()),
            is_deleting: false,
            directory: "data".to_owned(),
            alone: None,
            lists: BTreeMap::new(),
            servers: Vec::new(),
            applied: BTreeMap::new(),
            claims: ordinals().map(kept).collect(),
            pods: BTreeMap::new(),
            list: ordinals().map(entry).collect(),
            leader: id(members - 1),
            made: 100,
            violations: Vec::new(),
        };
        world.settle();
        world
    }

    fn voters(&self) -> Vec<u64> {
        self.list.iter().filter(|(_, entry)| !entry.is_learner).map(|(id, _)| *id).collect()
    }

    fn runs(&self, id: u64) -> bool {
        self.pods.values().any(|pod| pod.member == Some(id))
    }

    fn is_quorate(&self) -> bool {
        let voters = self.voters();
        voters.iter().filter(|id| self.runs(**id)).count() >= quorum(voters.len())
    }

    fn next(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    fn violated(&mut self, what: impl Into<String>) {
        self.violations.push(what.into());
    }

    /// What was decided about the number of members.
    fn want(&mut self, members: i32) {
        self.control_plane.spec.settings.etcd.as_mut().unwrap().replicas = Some(members);
    }

    fn record(&self) -> Membership {
        Membership::recorded(&self.control_plane).unwrap().unwrap()
    }

    fn change(&mut self, step: &EtcdStep) -> Outcome {
        let ordinal: i32 = step.member.rsplit('-').next().unwrap().parse().unwrap();
        if !self.is_quorate() {
            return Outcome::refused("etcdserver: no leader");
        }
        match &step.change {
            MemberChange::AddLearner { peer_url } => {
                if self.list.values().any(|entry| entry.is_learner) {
                    self.violated("two members join at once");
                }
                if !peer_url.contains(&format!("etcd{ordinal}-demo")) {
                    self.violated("a member with another's address");
                }
                if self.list.values().any(|entry| entry.ordinal == ordinal) {
                    return Outcome::Stale;
                }
                let id = self.next();
                self.list.insert(id, Entry { ordinal, is_learner: true, claim: None });
                return Outcome::Created(format!("{id:x}"));
            }
            MemberChange::Promote(id) => {
                if !self.runs(id.0) {
                    return Outcome::refused("learner is not in sync");
                }
                let Some(entry) = self.list.get_mut(&id.0) else { return Outcome::Stale };
                entry.is_learner = false;
            }
            MemberChange::Remove(id) => {
                if self.list.remove(&id.0).is_none() {
                    return Outcome::Stale;
                }
                for pod in self.pods.values_mut().filter(|pod| pod.member == Some(id.0)) {
                    pod.member = None;
                }
                if self.leader == id.0 {
                    let is_its = |claim: &Claim| claim.data.values().any(|data| *data == id.0);
                    if self.claims.values().any(|claim| is_its(claim) && !claim.is_deleting) {
                        self.violated("the leader was removed");
                    }
                    self.leader = self.voters().into_iter().find(|id| self.runs(*id)).unwrap();
                }
            }
            MemberChange::Lead(id) => self.leader = id.0,
            MemberChange::Defragment | MemberChange::EndNoSpace => {
                self.violated("nobody has too little room");
            }
        }
        if !self.is_quorate() {
            self.violated(format!("etcd lost its majority with {}", step.id()));
        }
        Outcome::Done
    }

    fn write(&mut self, write: &flow::Write) -> Outcome {
        match &write.action {
            flow::Action::Itself(_) => write.on_itself(&mut self.control_plane),
            flow::Action::Evict { target } => {
                let is_it = |pod: &Runs| target.uid == format!("pod {}", pod.number);
                let Some(ordinal) = self.pods.iter().find(|(_, pod)| is_it(pod)).map(|(ordinal, _)| *ordinal)
                else {
                    return Outcome::Stale;
                };
                if self.pods.remove(&ordinal).is_some_and(|pod| pod.member.is_some()) {
                    self.violated(format!("the pod of member {ordinal} that runs was ended"));
                }
            }
            flow::Action::Delete { target, .. } if target.kind == "PersistentVolumeClaim" => {
                let list = self.list.clone();
                for claim in self.claims.values_mut().filter(|claim| claim.uid == target.uid) {
                    claim.is_deleting = true;
                    if claim.data.values().any(|id| list.contains_key(id)) {
                        self.violations.push(format!("the volume of a member was deleted: {}", target.name));
                    }
                }
            }
            flow::Action::Delete { target, .. } if target.kind == "StatefulSet" => self.is_deleting = true,
            _ => {}
        }
        Outcome::Done
    }

    fn apply(&mut self, object: &DynamicObject) {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        match (object.types.as_ref().unwrap().kind.as_str(), name) {
            ("StatefulSet", "demo-etcd") => {
                let spec = &object.data["spec"];
                self.replicas = i32::try_from(spec["replicas"].as_i64().unwrap()).unwrap();
                self.first = i32::try_from(spec["ordinals"]["start"].as_i64().unwrap_or_default()).unwrap();
                let version = spec["template"]["metadata"]["labels"][names::VERSION_LABEL].as_str().unwrap();
                let is_restore = |version: &str| version.starts_with("restore-");
                if self.template.as_deref().is_some_and(|before| is_restore(before) != is_restore(version)) {
                    self.violated("pods of members and of a restore at the same time");
                }
                self.template = Some(version.to_owned());
                if is_restore(version) {
                    self.go_on(&spec["template"]["spec"].to_string());
                }
            }
            ("ConfigMap", "demo-etcd") => {
                let list = |text: &serde_json::Value| -> BTreeSet<i32> {
                    let file: serde_json::Value = serde_saphyr::from_str(text.as_str().unwrap()).unwrap();
                    let list = file["initial-cluster"].as_str().unwrap().split(',');
                    list.filter_map(|one| one.split('=').next()?.rsplit('-').next()?.parse().ok()).collect()
                };
                let data = object.data["data"].as_object().unwrap();
                let ordinal = |key: &str| {
                    key.split('.').next().unwrap().rsplit('-').next().unwrap().parse::<i32>().unwrap()
                };
                let file: serde_json::Value =
                    serde_saphyr::from_str(data.values().next().unwrap().as_str().unwrap()).unwrap();
                let place = file["data-dir"].as_str().unwrap();
                place.trim_start_matches("/var/lib/etcd/").clone_into(&mut self.directory);
                self.lists = data.iter().map(|(key, text)| (ordinal(key), list(text))).collect();
            }
            ("Deployment", "demo-apiserver") => {
                let arguments = object.data["spec"]["template"]["spec"]["containers"][0]["args"].to_string();
                let servers = arguments.split("--etcd-servers=").nth(1).unwrap();
                let count = servers.split('"').next().unwrap().matches("https://").count();
                if self.servers.last() != Some(&count) {
                    self.servers.push(count);
                }
            }
            _ => {}
        }
    }

    /// A member's data is copied, and becomes that of a cluster of one when it starts on it.
    fn go_on(&mut self, pod: &str) {
        let value = |flag: &str| pod.split_once(flag).unwrap().1.split('"').next().unwrap().to_owned();
        let (from, to) = (value("--data=/var/lib/etcd/"), value("--to=/var/lib/etcd/"));
        if self.is_quorate() {
            self.violated("a member went on alone while a majority lived");
        }
        let copied = self.next();
        let Some(claim) = self.claims.get_mut(&self.first) else {
            return self.violated("a restore without a volume");
        };
        if !claim.data.contains_key(&from) {
            self.violated("a member went on without data");
        } else if !claim.data.contains_key(&to) {
            claim.data.insert(to.clone(), copied);
            if self.alone.replace((self.first, copied, to)).is_some() {
                self.violated("somebody went on alone twice");
            }
        }
    }

    /// A member starts in the volume that its pod has.
    fn start(&mut self, ordinal: i32) -> Option<u64> {
        let claim = self.claims.get(&ordinal)?.clone();
        if claim.is_lost {
            return None;
        }
        if let Some(id) = claim.data.get(&self.directory).copied() {
            if let Some((of, data, _)) = self.alone.clone()
                && data == id
                && !self.list.contains_key(&id)
            {
                let entry = Entry { ordinal: of, is_learner: false, claim: Some(claim.uid) };
                (self.list, self.leader) = ([(id, entry)].into(), id);
            }
            return self.list.contains_key(&id).then_some(id);
        }
        let named = self.lists.get(&ordinal)?;
        let listed: BTreeSet<i32> = self.list.values().map(|entry| entry.ordinal).collect();
        if !named.contains(&ordinal) || *named != listed {
            return None;
        }
        let (id, entry) = self.list.iter_mut().find(|(_, entry)| entry.ordinal == ordinal)?;
        let (id, is_fresh) = (*id, entry.claim.is_none() && entry.is_learner);
        entry.claim = Some(claim.uid);
        self.claims.get_mut(&ordinal)?.data.insert(self.directory.clone(), id);
        if !is_fresh {
            self.violated(format!("member {ordinal} votes without what it knew"));
        }
        Some(id)
    }

    /// A fault-free run, every plan of it checked.
    fn converge(&mut self) {
        for _ in 0..30 {
            checked(&self.observe().observed);
            self.pass();
        }
    }

    /// All steps that follow from one look, and what others do then.
    fn pass(&mut self) {
        let mut seen = self.observe();
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

    fn health(&self) -> String {
        let status = self.observe().observed.plan().status;
        let found = status.conditions.into_iter().find(|found| found.type_ == "EtcdClusterHealthy");
        found.map(|found| format!("{} {}", found.status, found.reason)).unwrap_or_default()
    }
}

impl World for Etcd {
    type Observation = Seen;
    type Step = Action;
    type EndState = (Vec<i32>, Membership, BTreeMap<i32, bool>, Vec<String>, String);

    fn observe(&self) -> Seen {
        let mut observed = (*self.base).clone();
        observed.control_plane = self.control_plane.clone();
        let ready = self.pods.values().filter(|pod| {
            pod.member.is_some_and(|id| self.list.get(&id).is_some_and(|entry| !entry.is_learner))
        });
        let template = self.template.clone().unwrap_or_default();
        let is_restore = template.starts_with("restore-");
        let count = if is_restore { self.pods.len() } else { ready.count() };
        let ready = i32::try_from(count).unwrap();
        observed.etcd = if self.template.is_some() {
            let facts = workload("etcd", self.replicas, ready, &template);
            Read::One(WorkloadFacts { is_deleting: self.is_deleting, ..facts })
        } else {
            Read::Absent
        };
        let facts = |(ordinal, runs): (&i32, &Runs)| PodFacts {
            uid: format!("pod {}", runs.number),
            is_ready: is_restore
                || runs.member.is_some_and(|id| self.list.get(&id).is_some_and(|entry| !entry.is_learner)),
            address: Some("10.0.0.1".parse().unwrap()),
            ..pod(&format!("demo-etcd-{ordinal}"), &template)
        };
        observed.etcd_pods = Read::found(self.pods.iter().map(facts));
        observed.etcd_claims = Read::found(self.claims.iter().map(|(ordinal, found)| ClaimFacts {
            uid: found.uid.clone(),
            is_deleting: found.is_deleting,
            is_lost: found.is_lost,
            ..claim(*ordinal)
        }));
        let listed = |(id, entry): (&u64, &Entry)| ListedMember {
            id: MemberId(*id),
            name: entry.claim.as_ref().map(|_| format!("demo-etcd-{}", entry.ordinal)).unwrap_or_default(),
            peer_urls: vec![format!("https://etcd{}-demo.team.svc:2380", entry.ordinal)],
            is_learner: entry.is_learner,
        };
        let told = |(ordinal, runs): (&i32, &Runs)| {
            let id = runs.member?;
            let state = MemberState {
                id: MemberId(id),
                leader: Some(MemberId(self.leader)),
                is_learner: self.list.get(&id)?.is_learner,
                revision: 1,
                errors: Vec::new(),
                unapplied: 0,
                database: DatabaseSize::default(),
            };
            Some((format!("demo-etcd-{ordinal}"), state))
        };
        observed.etcd_list = if self.is_quorate() {
            Read::One(MemberList {
                members: self.list.iter().map(listed).collect(),
                told: self.pods.iter().filter_map(told).collect(),
            })
        } else {
            Read::unknown("etcdserver: no leader")
        };
        let set = (&self.template, self.is_deleting, self.first, &self.directory, &self.alone);
        let state = (&self.replicas, &self.lists, &self.claims, &self.pods, &self.list, self.leader, set);
        let spec = self.control_plane.spec.settings.etcd.as_ref().unwrap();
        let annotations = &self.control_plane.metadata.annotations;
        let asked = (spec.replicas, &spec.restore);
        let key = format!("{state:?} {asked:?} {annotations:?} {:?}", self.applied);
        Seen { key, observed, applied: self.applied.clone() }
    }

    fn plan(&self, seen: &Seen) -> Frontier<Action> {
        if let Some(known) = self.plans.borrow().get(&seen.key) {
            return known.clone();
        }
        let plan = seen.observed.plan();
        let calls = plan.steps.iter().map(|step| (step.id(), Effect::Call(step.clone())));
        let is_of_etcd = |object: &&DynamicObject| {
            ["demo-etcd", "demo-apiserver"].contains(&object.metadata.name.as_deref().unwrap_or_default())
        };
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
            Effect::Call(Step::Own(OwnStep::Etcd(step))) => self.change(step),
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

    /// What the StatefulSet's controller, the storage and kubelets do.
    fn settle(&mut self) {
        if std::mem::take(&mut self.is_deleting) {
            self.template = None;
            self.applied.retain(|identity, _| !identity.contains("StatefulSet"));
            self.pods.clear();
        }
        let is_restore = self.template.as_ref().is_some_and(|version| version.starts_with("restore-"));
        let pods = if self.template.is_some() { self.first..self.first + self.replicas } else { 0..0 };
        self.pods.retain(|ordinal, _| pods.contains(ordinal));
        for ordinal in pods.clone() {
            if !self.pods.contains_key(&ordinal) {
                self.claims.retain(|of, claim| *of != ordinal || !claim.is_deleting);
                let number = usize::try_from(self.next()).unwrap();
                if !self.claims.contains_key(&ordinal) {
                    let uid = format!("claim {}", self.next());
                    let claim = Claim { uid, is_deleting: false, is_lost: false, data: BTreeMap::new() };
                    self.claims.insert(ordinal, claim);
                }
                self.pods.insert(ordinal, Runs { number, member: None });
            }
        }
        let used = self.pods.clone();
        self.claims.retain(|of, claim| !claim.is_deleting || used.contains_key(of));
        for ordinal in pods.filter(|_| !is_restore) {
            let member = self.start(ordinal);
            if let Some(pod) = self.pods.get_mut(&ordinal) {
                pod.member = member;
            }
        }
    }

    fn end_state(&self) -> Self::EndState {
        let mut voters: Vec<i32> = self.voters().iter().map(|id| self.list[id].ordinal).collect();
        voters.sort_unstable();
        let mut record = self.record();
        // Uids are invented; whether they are the right ones is said instead.
        let claims = self.claims.iter().map(|(ordinal, claim)| {
            let place = usize::try_from(*ordinal).unwrap();
            (*ordinal, record.claims.get(place) == Some(&claim.uid))
        });
        let claims = claims.collect();
        record.claims.clear();
        (voters, record, claims, self.violations.clone(), self.health())
    }
}

/// Sweeps what follows from a change; the world after it.
fn swept(mut world: Etcd, change: impl FnOnce(&mut Etcd)) -> (Etcd, Vec<String>) {
    change(&mut world);
    let swept = sweep(&world, LIMIT).unwrap();
    world.converge();
    let (voters, record, claims, violations, health) = world.end_state();
    assert_eq!(violations, Vec::<String>::new());
    assert_eq!(health, "True AllReady", "{:?} {:?} {:?}", world.list, world.pods, world.record());
    assert_eq!(voters, (0..record.members).collect::<Vec<_>>());
    assert_eq!(claims, voters.iter().map(|ordinal| (*ordinal, true)).collect());
    assert_eq!((record.joining, record.announced, record.leaving), (None, None, Vec::new()));
    (world, swept.trace.iter().map(ToString::to_string).collect())
}

fn rested(members: i32) -> Etcd {
    let mut world = Etcd::running(members);
    world.converge();
    assert_eq!((world.health().as_str(), world.servers.len()), ("True AllReady", 1));
    world
}

/// The volume went with its claim, the claim is about to go, or the volume is gone under its claim.
#[test]
fn replacing_a_member_survives_every_crash() {
    for (members, all_lost) in [(3, vec![0, 2]), (5, vec![4])] {
        // Clones share the plans of states that they have in common.
        let rested = rested(members);
        for lost in all_lost {
            let losses: [fn(&mut Claim); 3] = [
                |claim| (claim.uid, claim.data) = ("another".to_owned(), BTreeMap::new()),
                |claim| claim.is_deleting = true,
                |claim| claim.is_lost = true,
            ];
            for lose in losses {
                let (_, trace) = swept(rested.clone(), |world| {
                    lose(world.claims.get_mut(&lost).unwrap());
                    world.settle();
                    // What leads has to run.
                    world.leader = world.voters().into_iter().find(|id| world.runs(*id)).unwrap();
                });
                let of_etcd: Vec<&str> = trace
                    .iter()
                    .filter(|step| step.contains("etcd-member"))
                    .map(|step| step.split(' ').next().unwrap())
                    .collect();
                assert_eq!(of_etcd, ["remove", "add-learner", "promote"], "{trace:?}");
            }
        }
    }
}

#[test]
fn two_lost_members_of_five_are_replaced_one_after_the_other() {
    let (world, trace) = swept(rested(5), |world| {
        for ordinal in [1, 3] {
            let claim = world.claims.get_mut(&ordinal).unwrap();
            (claim.uid, claim.data) = (format!("another {ordinal}"), BTreeMap::new());
        }
        world.settle();
    });
    let adds = trace.iter().filter(|step| step.starts_with("add-learner")).count();
    assert_eq!((adds, world.servers.len()), (2, 1), "{trace:?}");
}

#[test]
fn growing_and_shrinking_survive_every_crash_and_api_servers_are_told_once() {
    let mut world = rested(1);
    for (wanted, told) in
        [(3, vec![1, 3]), (5, vec![1, 3, 5]), (3, vec![1, 3, 5, 3]), (1, vec![1, 3, 5, 3, 1])]
    {
        (world, _) = swept(world, |world| world.want(wanted));
        assert_eq!((world.record().members, &world.servers), (wanted, &told));
    }
}

/// Somebody changes their mind, and a volume is lost, at every moment of a growth.
#[test]
fn a_growth_that_is_interrupted_is_undone_or_finished_first() {
    let rested = rested(3);
    for passes in 0..8 {
        let mut world = rested.clone();
        world.want(5);
        for _ in 0..passes {
            world.pass();
        }
        swept(world.clone(), |world| world.want(3));
        swept(world, |world| {
            let claim = world.claims.get_mut(&1).unwrap();
            (claim.uid, claim.data) = ("another".to_owned(), BTreeMap::new());
            world.settle();
        });
    }
}

/// A backup is made from a member, and nobody knows how long it takes. What has begun is better finished.
#[test]
fn no_change_begins_while_a_backup_is_made_and_one_that_has_begun_goes_on() {
    let of_etcd = |world: &Etcd, work: backup::Work| -> (Vec<String>, Plan) {
        let plan = checked(&Observed { backup: work, ..world.observe().observed });
        let ids: Vec<String> = plan.steps.iter().map(|step| step.id().to_string()).collect();
        let is_change = |id: &String| {
            id.contains("etcd-member")
                || id.contains("PersistentVolumeClaim")
                || id.contains("cluster.x-k8s.io/etcd")
        };
        (ids.into_iter().filter(is_change).collect(), plan)
    };
    let changes: [fn(&mut Etcd); 3] = [
        |world| world.want(5),
        |world| world.want(1),
        |world| {
            let claim = world.claims.get_mut(&0).unwrap();
            (claim.uid, claim.data) = ("another".to_owned(), BTreeMap::new());
            world.settle();
        },
    ];
    let rested = rested(3);
    for (number, change) in changes.into_iter().enumerate() {
        let mut world = rested.clone();
        change(&mut world);
        let (steps, _) = of_etcd(&world, backup::Work::None);
        assert_eq!(steps.len(), 1, "{number}: {steps:?}");
        let (steps, plan) = of_etcd(&world, backup::Work::Running);
        assert_eq!(steps, Vec::<String>::new(), "{number}");
        let says = |found: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
            found.message.contains("the backup that is being made to end")
        };
        assert!(plan.status.conditions.iter().any(says), "{number}: {:?}", plan.status.conditions);
    }
    let mut world = rested;
    world.want(5);
    world.pass();
    assert!(world.record().joining.is_some());
    let (steps, _) = of_etcd(&world, backup::Work::Running);
    assert_eq!(steps.len(), 1, "{steps:?}");
}

/// A majority has lost its data: the member that people name goes on, once, and the others join it.
#[test]
fn going_on_from_one_member_survives_every_crash() {
    for (members, lost, named) in [(3, vec![0, 1], 2), (3, vec![1, 2], 0), (5, vec![0, 2, 4], 1)] {
        let (world, trace) = swept(rested(members), |world| {
            for ordinal in &lost {
                let claim = world.claims.get_mut(ordinal).unwrap();
                (claim.uid, claim.data) = (format!("another {ordinal}"), BTreeMap::new());
            }
            world.settle();
            let etcd = world.control_plane.spec.settings.etcd.as_mut().unwrap();
            let asked = json!({"member": format!("demo-etcd-{named}"), "replace": "demo/1"});
            etcd.restore = Some(serde_json::from_value(asked).unwrap());
        });
        let record = world.record();
        assert_eq!(record.generation, 2, "{trace:?}");
        assert_eq!(world.alone.as_ref().unwrap().0, named);
        let kept = world.claims[&named].data.keys().collect::<Vec<_>>();
        assert_eq!(kept, ["data", "data-2"], "what it had is still there");
        let adds = trace.iter().filter(|step| step.starts_with("add-learner")).count();
        assert_eq!(adds, usize::try_from(members).unwrap() - 1, "{trace:?}");
    }
}
