//! Where managers are struck: one gate for the three transports, and which strikes are tried.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hangar_kit::call as kubernetes;
use hangar_openstack as openstack;

/// A write, and the how-manieth of its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Point {
    pub(super) name: String,
    pub(super) occurrence: usize,
}

/// A kill right after a write was committed, with or without its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) point: Point,
    pub(super) is_answered: bool,
}

impl fmt::Display for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let answer = if self.is_answered { "answered" } else { "answer lost" };
        write!(formatter, "{} #{} ({answer})", self.point.name, self.point.occurrence)
    }
}

/// Names as they are in every world: without the namespace and the random ends of MachineSets, Machines and tokens.
pub(super) fn stable(name: &str, namespace: &str) -> String {
    let name = name.replace(namespace, "ns");
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

/// What one manager did, and where it dies. Cloning shares it.
#[derive(Clone)]
pub(super) struct Strikes {
    armed: Option<Case>,
    namespace: String,
    state: Arc<Mutex<State>>,
}

struct State {
    seen: Vec<Point>,
    counts: BTreeMap<String, usize>,
    is_dead: bool,
    has_fired: bool,
    last_call: Instant,
}

impl Strikes {
    pub(super) fn new(namespace: &str, armed: Option<&Case>) -> Self {
        let state = State {
            seen: Vec::new(),
            counts: BTreeMap::new(),
            is_dead: false,
            has_fired: false,
            last_call: Instant::now(),
        };
        Self {
            armed: armed.cloned(),
            namespace: namespace.to_owned(),
            state: Arc::new(Mutex::new(state)),
        }
    }

    pub(super) fn gate(&self, transport: &'static str) -> Gate {
        Gate { transport, strikes: self.clone() }
    }

    pub(super) fn kill(&self) {
        self.state.lock().unwrap().is_dead = true;
    }

    pub(super) fn has_fired(&self) -> bool {
        self.state.lock().unwrap().has_fired
    }

    pub(super) fn is_armed(&self) -> bool {
        self.armed.is_some()
    }

    pub(super) fn seen(&self) -> Vec<Point> {
        self.state.lock().unwrap().seen.clone()
    }

    /// For how long nobody was called, watches aside.
    pub(super) fn quiet(&self) -> Duration {
        self.state.lock().unwrap().last_call.elapsed()
    }

    fn is_dead(&self) -> bool {
        self.state.lock().unwrap().is_dead
    }

    fn called(&self) {
        self.state.lock().unwrap().last_call = Instant::now();
    }

    /// An answered write: none for an answer that arrives, else why it does not.
    fn written(&self, name: &str) -> Option<&'static str> {
        let name = stable(name, &self.namespace);
        let mut state = self.state.lock().unwrap();
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
pub(super) struct Gate {
    transport: &'static str,
    strikes: Strikes,
}

impl kubernetes::CallGate for Gate {
    fn before(&self, _call: &kubernetes::Call) -> Result<(), &'static str> {
        if self.strikes.is_dead() { Err(DEAD) } else { Ok(()) }
    }

    fn after(
        &self,
        call: &kubernetes::Call,
        answer: kubernetes::Answer,
        _took: Duration,
    ) -> kubernetes::Delivery {
        if self.strikes.is_dead() {
            return kubernetes::Delivery::Withhold(DEAD);
        }
        if call.verb != kubernetes::Verb::Watch {
            self.strikes.called();
        }
        // Events tell people something; nothing is built on them.
        let is_event = call.resource.starts_with("events");
        if !call.verb.is_write() || call.is_dry_run || is_event || !answer.is_success() {
            return kubernetes::Delivery::Deliver;
        }
        match self.strikes.written(&format!("{}: {call}", self.transport)) {
            None => kubernetes::Delivery::Deliver,
            Some(why) => kubernetes::Delivery::Withhold(why),
        }
    }

    fn is_severed(&self) -> bool {
        self.strikes.is_dead()
    }
}

impl openstack::CallGate for Gate {
    fn before(&self, _call: &openstack::Call, _limit: Duration) -> Result<(), &'static str> {
        if self.strikes.is_dead() { Err(DEAD) } else { Ok(()) }
    }

    fn after(
        &self,
        call: &openstack::Call,
        answer: openstack::Answer,
        _took: Duration,
    ) -> openstack::Delivery {
        if self.strikes.is_dead() {
            return openstack::Delivery::Withhold(DEAD);
        }
        self.strikes.called();
        if !call.verb.is_write() || !answer.is_success() {
            return openstack::Delivery::Deliver;
        }
        match self.strikes.written(&format!("{}: {}", self.transport, call.without_id())) {
            None => openstack::Delivery::Deliver,
            Some(why) => openstack::Delivery::Withhold(why),
        }
    }
}

/// Why a point is not struck: whether a run reaches it depends on what happens to be seen together, not on the manager.
pub(super) fn by_chance(point: &Point) -> Option<&'static str> {
    let is_status = point.name.contains("/status ");
    if is_status && point.occurrence > 1 {
        return Some("how many statuses are written depends on how many changes are seen together");
    }
    None
}

/// Every case of the points, in an order that is the same every time: by a digest of its name, the transports in turn.
pub(super) fn cases(points: &[Point]) -> Vec<Case> {
    let mut by_transport: BTreeMap<&str, Vec<Case>> = BTreeMap::new();
    for point in points.iter().filter(|point| by_chance(point).is_none()) {
        let transport = point.name.split(':').next().unwrap_or_default();
        let both = [true, false].map(|is_answered| Case { point: point.clone(), is_answered });
        by_transport.entry(transport).or_default().extend(both);
    }
    let mut queues: Vec<VecDeque<Case>> = by_transport
        .into_values()
        .map(|mut cases| {
            cases.sort_by_cached_key(|case| digest(&case.to_string()));
            cases.into()
        })
        .collect();
    let mut all = Vec::new();
    while queues.iter().any(|queue| !queue.is_empty()) {
        all.extend(queues.iter_mut().filter_map(VecDeque::pop_front));
    }
    all
}

/// FNV-1a: the same in every build.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn names_are_the_same_in_every_world() {
    let name = |text: &str| stable(text, "whole-x1");
    assert_eq!(name("create machines whole-x1/demo-workers-2bcdf-x9z2k"), "create machines ns/demo-workers-SET-MACHINE");
    assert_eq!(name("create network port demo-workers-2bcdf-x9z2k-0"), "create network port demo-workers-SET-MACHINE-0");
    assert_eq!(name("apply machinesets whole-x1/demo-workers-2bcdf"), "apply machinesets ns/demo-workers-SET");
    assert_eq!(name("create secrets kube-system/bootstrap-token-abcdef"), "create secrets kube-system/bootstrap-token-ID");
    assert_eq!(name("patch machinedeployments whole-x1/demo-workers"), "patch machinedeployments ns/demo-workers");
}
