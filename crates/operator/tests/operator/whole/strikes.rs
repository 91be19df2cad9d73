//! Kills managers at chosen writes, through one gate for all transports: management cluster, tenant, cloud and etcd.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hangar_kit::call as kubernetes;
use {hangar_etcd as etcd, hangar_openstack as openstack};

/// A write, and the how-manieth of its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Point {
    pub(crate) name: String,
    pub(crate) occurrence: usize,
}

impl fmt::Display for Point {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} #{}", self.name, self.occurrence)
    }
}

/// A kill right after a write was committed, with or without its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) point: Point,
    pub(crate) is_answered: bool,
}

impl fmt::Display for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answer = if self.is_answered { "answered" } else { "answer lost" };
        write!(formatter, "{} ({answer})", self.point)
    }
}

/// Names as they are in every world: without the namespace and the random ends of MachineSets, Machines and tokens.
pub(crate) fn stable(name: &str, namespace: &str) -> String {
    let name = name.replace(namespace, "ns");
    // Named by the controller-manager.
    if let Some((verb, pod)) = name.split_once(" pods ns/") {
        let mut parts = pod.rsplitn(3, '-').skip(2);
        return format!("{verb} pods ns/{}-POD", parts.next().unwrap_or(pod));
    }
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '-';
    let mut whole = String::new();
    for piece in name.split_inclusive(|character| !is_part(character)) {
        let word = piece.trim_end_matches(|character| !is_part(character));
        whole.push_str(&stable_word(word));
        whole.push_str(&piece[word.len()..]);
    }
    whole
}

fn stable_word(word: &str) -> String {
    if let Some(rest) = word.strip_prefix("demo-workers-") {
        let mut parts = rest.split('-');
        let set = parts.next().map(|_| "SET".to_owned());
        let machine = parts.next().map(|_| "MACHINE".to_owned());
        let all: Vec<String> = set.into_iter().chain(machine).chain(parts.map(str::to_owned)).collect();
        return format!("demo-workers-{}", all.join("-"));
    }
    if word.starts_with("bootstrap-token-") {
        return "bootstrap-token-ID".to_owned();
    }
    word.to_owned()
}

/// What managers did in one half of a life, and where the present one dies. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Strikes {
    armed: Option<Case>,
    namespace: String,
    state: Arc<Mutex<State>>,
}

#[derive(Clone)]
struct State {
    seen: Vec<Point>,
    counts: BTreeMap<String, usize>,
    /// Writes that were sent and not answered yet.
    in_flight: BTreeSet<String>,
    is_dead: bool,
    has_fired: bool,
    last_call: Instant,
}

impl Strikes {
    pub(crate) fn new(namespace: &str, armed: Option<&Case>) -> Self {
        let state = State {
            seen: Vec::new(),
            counts: BTreeMap::new(),
            in_flight: BTreeSet::new(),
            is_dead: false,
            has_fired: false,
            last_call: Instant::now(),
        };
        Self { armed: armed.cloned(), namespace: namespace.to_owned(), state: Arc::new(Mutex::new(state)) }
    }

    /// Those of the next manager, which goes on counting where the last one died.
    pub(crate) fn next(&self, armed: Option<&Case>) -> Self {
        let before = self.state.lock().unwrap().clone();
        let state = State { is_dead: false, has_fired: false, last_call: Instant::now(), ..before };
        Self { armed: armed.cloned(), namespace: self.namespace.clone(), state: Arc::new(Mutex::new(state)) }
    }

    /// Whether it may be too late to strike there: it was committed, or was on its way when its manager died.
    pub(crate) fn may_have_passed(&self, point: &Point) -> bool {
        let state = self.state.lock().unwrap();
        state.seen.contains(point) || state.in_flight.contains(&point.name)
    }

    /// Where it should have struck and did not.
    pub(crate) fn missed(&self) -> Option<&Case> {
        self.armed.as_ref().filter(|_| !self.has_fired())
    }

    pub(crate) fn gate(&self, transport: &'static str) -> Gate {
        Gate { transport, strikes: self.clone() }
    }

    pub(crate) fn kill(&self) {
        self.state.lock().unwrap().is_dead = true;
    }

    pub(crate) fn has_fired(&self) -> bool {
        self.state.lock().unwrap().has_fired
    }

    pub(crate) fn seen(&self) -> Vec<Point> {
        self.state.lock().unwrap().seen.clone()
    }

    /// For how long nobody was called, watches aside.
    pub(crate) fn quiet(&self) -> Duration {
        self.state.lock().unwrap().last_call.elapsed()
    }

    fn is_dead(&self) -> bool {
        self.state.lock().unwrap().is_dead
    }

    fn called(&self) {
        self.state.lock().unwrap().last_call = Instant::now();
    }

    fn sent(&self, name: &str) -> Result<(), &'static str> {
        let name = stable(name, &self.namespace);
        let mut state = self.state.lock().unwrap();
        if state.is_dead {
            return Err(DEAD);
        }
        state.in_flight.insert(name);
        Ok(())
    }

    fn refused(&self, name: &str) {
        self.state.lock().unwrap().in_flight.remove(&stable(name, &self.namespace));
    }

    /// An answered write: none for an answer that arrives, else why it does not.
    fn written(&self, name: &str) -> Option<&'static str> {
        let name = stable(name, &self.namespace);
        let mut state = self.state.lock().unwrap();
        state.in_flight.remove(&name);
        let count = state.counts.entry(name.clone()).or_default();
        *count += 1;
        let point = Point { occurrence: *count, name };
        state.seen.push(point.clone());
        match &self.armed {
            Some(case) if case.point == point && !state.has_fired => {
                state.has_fired = true;
                state.is_dead = true;
                if case.is_answered { None } else { Some("the answer was lost") }
            }
            _ => None,
        }
    }
}

const DEAD: &str = "this manager is dead";

/// The strikes at one transport.
pub(crate) struct Gate {
    transport: &'static str,
    strikes: Strikes,
}

impl Gate {
    fn before(&self, write: Option<String>) -> Result<(), &'static str> {
        match write {
            Some(name) => self.strikes.sent(&name),
            None if self.strikes.is_dead() => Err(DEAD),
            None => Ok(()),
        }
    }

    /// Why an answer does not arrive, if it does not.
    fn after(&self, write: Option<String>, is_success: bool) -> Option<&'static str> {
        if self.strikes.is_dead() {
            return Some(DEAD);
        }
        match write {
            // A refused write committed nothing, and how often one is refused (a conflict) differs from run to run.
            Some(name) if !is_success => self.strikes.refused(&name),
            Some(name) => return self.strikes.written(&name),
            None => {}
        }
        None
    }

    fn kubernetes_write(&self, call: &kubernetes::Call) -> Option<String> {
        // Events tell people something; nothing is built on them.
        let is_event = call.resource.starts_with("events");
        // What other tests left on the same API server is tidied up too, now or then.
        let is_elsewhere = self.transport == "management"
            && call.namespace.as_ref().is_some_and(|namespace| *namespace != self.strikes.namespace);
        let is_write = call.verb.is_write() && !call.is_dry_run && !is_event && !is_elsewhere;
        is_write.then(|| format!("{}: {call}", self.transport))
    }

    fn cloud_write(&self, call: &openstack::Call) -> Option<String> {
        call.verb.is_write().then(|| format!("{}: {}", self.transport, call.without_id()))
    }

    /// Which member is called depends on who leads.
    fn etcd_write(&self, call: &etcd::Call) -> Option<String> {
        let is_write = call.verb.is_write() && !call.verb.is_of_store();
        is_write.then(|| format!("{}: {}", self.transport, call.verb.as_str()))
    }
}

impl kubernetes::CallGate for Gate {
    fn before(&self, call: &kubernetes::Call) -> Result<(), &'static str> {
        self.before(self.kubernetes_write(call))
    }

    fn after(
        &self,
        call: &kubernetes::Call,
        answer: kubernetes::Answer,
        _took: Duration,
    ) -> kubernetes::Delivery {
        if call.verb != kubernetes::Verb::Watch {
            self.strikes.called();
        }
        match self.after(self.kubernetes_write(call), answer.is_success()) {
            None => kubernetes::Delivery::Deliver,
            Some(why) => kubernetes::Delivery::Withhold(why),
        }
    }

    fn is_severed(&self) -> bool {
        self.strikes.is_dead()
    }
}

impl openstack::CallGate for Gate {
    fn before(&self, call: &openstack::Call, _limit: Duration) -> Result<(), &'static str> {
        self.before(self.cloud_write(call))
    }

    fn after(
        &self,
        call: &openstack::Call,
        answer: openstack::Answer,
        _took: Duration,
    ) -> openstack::Delivery {
        self.strikes.called();
        match self.after(self.cloud_write(call), answer.is_success()) {
            None => openstack::Delivery::Deliver,
            Some(why) => openstack::Delivery::Withhold(why),
        }
    }
}

impl etcd::CallGate for Gate {
    fn before(&self, call: &etcd::Call, _limit: Duration) -> Result<(), &'static str> {
        self.before(self.etcd_write(call))
    }

    fn after(&self, call: &etcd::Call, answer: etcd::Answer, _took: Duration) -> etcd::Delivery {
        self.strikes.called();
        match self.after(self.etcd_write(call), answer == etcd::Answer::Done) {
            None => etcd::Delivery::Deliver,
            Some(why) => etcd::Delivery::Withhold(why),
        }
    }
}

#[test]
fn names_are_the_same_in_every_world() {
    let name = |text: &str| stable(text, "whole-x1");
    assert_eq!(
        name("create machines whole-x1/demo-workers-2bcdf-x9z2k"),
        "create machines ns/demo-workers-SET-MACHINE"
    );
    assert_eq!(
        name("create network port demo-workers-2bcdf-x9z2k-0"),
        "create network port demo-workers-SET-MACHINE-0"
    );
    assert_eq!(
        name("apply machinesets whole-x1/demo-workers-2bcdf"),
        "apply machinesets ns/demo-workers-SET"
    );
    assert_eq!(
        name("create secrets kube-system/bootstrap-token-abcdef"),
        "create secrets kube-system/bootstrap-token-ID"
    );
    assert_eq!(
        name("patch pods whole-x1/demo-apiserver-54b6cc5cc6-cbzgx"),
        "patch pods ns/demo-apiserver-POD"
    );
    assert_eq!(
        name("patch machinedeployments whole-x1/demo-workers"),
        "patch machinedeployments ns/demo-workers"
    );
}

#[test]
fn a_strike_kills_every_transport_and_one_that_missed_says_so() {
    let point = |occurrence| Point { name: "cloud: create x".to_owned(), occurrence };
    let case = Case { point: point(2), is_answered: false };
    let strikes = Strikes::new("whole-x1", Some(&case));
    assert_eq!(strikes.written("cloud: create x"), None);
    assert_eq!(strikes.missed(), Some(&case));
    assert!(!strikes.is_dead());
    assert_eq!(strikes.written("cloud: create x"), Some("the answer was lost"));
    assert_eq!(strikes.missed(), None);
    assert!(strikes.is_dead() && strikes.gate("tenant").strikes.is_dead());
    let next = strikes.next(None);
    assert!(!next.is_dead() && next.may_have_passed(&point(2)) && !next.may_have_passed(&point(3)));
    next.sent("cloud: create x").unwrap();
    assert!(next.may_have_passed(&point(3)), "nobody knows whether it was committed");
    assert_eq!(next.seen(), [point(1), point(2)]);
}
