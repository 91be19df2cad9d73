//! For tests: every plan is made again with each of its reads failed, one at a time, and nothing may follow from that.
//!
//! [`Draft::finish`](super::Draft::finish) calls [`check`] for the plans that tests make, so that each scenario is one
//! of this property too. [`reads!`] names all fields of an observation, whatever they are: when one is added, the
//! compiler asks for it, and its type knows which reads it contains.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{LazyLock, Mutex};

use kube::Resource as _;

use super::{Clocks, HasRoot, Identified as _, Plan, PlanOf, Planner, Read, StepId, StepOf};

/// Plans of one test that are doubted. Scenarios make fewer; sweeps make thousands that are much alike.
const PLANS: u32 = 6;

/// Of a plan's reads one in so many is doubted, of another plan others; with `HANGAR_SWEEP=all` every one.
const SAMPLE: u64 = 4;

/// What is right though a read failed: kind of the object, the read, the step's verb and kind or what is in the object that
/// is applied, and why.
const EXCEPTIONS: &[(&str, &str, &str, &str)] = &[
    (
        "HostedControlPlane",
        "tenant",
        r#""app.kubernetes.io/component": "api-server""#,
        "another version waits for its Nodes to be read, and the one that runs is rendered meanwhile",
    ),
    ("Machine", "node", "delete infrastructure", "a Node that was never seen is searched for a while only"),
    (
        "Machine",
        "node",
        "remove finalizer",
        "a Node that cannot be deleted holds its Machine for a while only",
    ),
];

thread_local! {
    static LEFT: Cell<u32> = const { Cell::new(PLANS) };
}

/// What contains reads.
pub(crate) trait Reads {
    /// Shows each of them.
    fn reads(&mut self, doubt: &mut Doubt);
}

/// Which read fails.
#[derive(Default)]
pub(crate) struct Doubt {
    number: usize,
    /// Whether it found nothing instead of failing, where it can.
    is_empty: bool,
    is_different: bool,
    seen: usize,
    path: Vec<String>,
    /// The one that failed.
    failed: Option<String>,
}

impl Doubt {
    /// Goes into a part.
    pub(crate) fn part(&mut self, name: impl Into<String>, part: &mut impl Reads) {
        self.path.push(name.into());
        part.reads(self);
        self.path.pop();
    }

    /// Here is a read that answered: what makes it one that did not, and one that found nothing.
    pub(crate) fn here<T>(&mut self, read: &mut T, failed: T, nothing: Option<T>) {
        if self.seen == self.number {
            self.failed = Some(self.path.join("."));
            self.is_different = !self.is_empty || nothing.is_some();
            match nothing {
                Some(nothing) if self.is_empty => *read = nothing,
                _ => *read = failed,
            }
        }
        self.seen += 1;
    }
}

/// Names all fields of types that contain reads, and types that contain none.
macro_rules! reads {
    ($($type:ident { $($field:ident),* $(,)? })* ; $($plain:ty),* $(,)?) => {
        $(impl $crate::flow::doubt::Reads for $type {
            fn reads(&mut self, doubt: &mut $crate::flow::doubt::Doubt) {
                let Self { $($field),* } = self;
                $(doubt.part(stringify!($field), $field);)*
            }
        })*
        $(impl $crate::flow::doubt::Reads for $plain {
            fn reads(&mut self, _: &mut $crate::flow::doubt::Doubt) {}
        })*
    };
}

pub(crate) use reads;

/// A read that failed.
pub(crate) const FAILED: &str = "the watch is broken";

impl<T: Reads> Reads for Read<T> {
    fn reads(&mut self, doubt: &mut Doubt) {
        if !self.is_unknown() {
            doubt.here(self, Self::unknown(FAILED), Some(Self::Absent));
        }
        for (number, item) in self.iter_mut().enumerate() {
            doubt.part(number.to_string(), item);
        }
    }
}

impl<T: Reads> Reads for Option<T> {
    fn reads(&mut self, doubt: &mut Doubt) {
        if let Some(item) = self {
            item.reads(doubt);
        }
    }
}

impl<T: Reads> Reads for Vec<T> {
    fn reads(&mut self, doubt: &mut Doubt) {
        for (number, item) in self.iter_mut().enumerate() {
            doubt.part(number.to_string(), item);
        }
    }
}

impl<K: Debug, T: Reads> Reads for BTreeMap<K, T> {
    fn reads(&mut self, doubt: &mut Doubt) {
        for (key, item) in self {
            doubt.part(format!("{key:?}"), item);
        }
    }
}

reads!(; (), bool, u32, String, std::time::Duration, jiff::Timestamp, Clocks);
reads!(;
    hangar_api::cluster::v1beta2::Cluster,
    hangar_api::cluster::v1beta2::Machine,
    hangar_api::cluster::v1beta2::MachineDeployment,
    hangar_api::cluster::v1beta2::MachineSet,
    crate::referred::Referred,
);

/// Makes the plan again with each read failed: whatever it still does, it did before, in the same way.
pub(crate) fn check<P>(observed: &P, plan: &PlanOf<P>)
where
    P: Planner<Object: Debug> + HasRoot + Reads + Clone + Debug,
    StepOf<P>: Debug,
{
    let left = LEFT.replace(0);
    if left == 0 {
        return;
    }
    let Some(seed) = new(observed) else { return LEFT.set(left) };
    let kind = P::Root::kind(&());
    let before = effects::<P>(plan);
    for number in 0.. {
        let doubted = |is_empty| {
            let (mut doubted, mut doubt) = (observed.clone(), Doubt { number, is_empty, ..Doubt::default() });
            doubted.reads(&mut doubt);
            let is_due = doubt.is_different && is_chosen(seed, number);
            let plan = is_due.then(|| effects::<P>(&doubted.plan()));
            Some((doubt.failed?, plan))
        };
        let Some((failed, after)) = doubted(false) else { break };
        let Some(after) = after else { continue };
        let nothing = doubted(true).and_then(|(_, effects)| effects);
        let is_allowed = |effect: &&(Option<StepId>, String)| {
            let is_there = before.contains(effect) && nothing.as_ref().is_none_or(|all| all.contains(effect));
            is_there || is_right(&kind, &failed, effect)
        };
        let new: Vec<&(Option<StepId>, String)> = after.iter().filter(|effect| !is_allowed(effect)).collect();
        assert!(
            new.is_empty(),
            "{kind}: {failed} could not be read, and this follows from it: {new:#?}\nbefore: {before:#?}\nabsent: {nothing:#?}"
        );
    }
    LEFT.set(left - 1);
}

/// A number for what was observed, if no test has come here yet: many begin in the same way.
fn new(observed: &impl Debug) -> Option<u64> {
    static SEEN: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());
    let mut hasher = DefaultHasher::new();
    format!("{observed:?}").hash(&mut hasher);
    let seed = hasher.finish();
    SEEN.lock().unwrap().insert(seed).then_some(seed)
}

/// The same every time for the same observation.
fn is_chosen(seed: u64, number: usize) -> bool {
    static IS_WHOLE: LazyLock<bool> =
        LazyLock::new(|| std::env::var("HANGAR_SWEEP").is_ok_and(|value| value == "all"));
    *IS_WHOLE || (seed % SAMPLE + number as u64).is_multiple_of(SAMPLE)
}

fn is_right(kind: &str, failed: &str, (step, text): &(Option<StepId>, String)) -> bool {
    EXCEPTIONS.iter().any(|(of, read, what, _)| {
        let is_it = match step {
            Some(id) => format!("{} {}", id.verb, id.kind) == *what,
            None => text.contains(what),
        };
        *of == kind && *read == failed && is_it
    })
}

/// What a plan does, apart from what it says.
fn effects<P>(plan: &PlanOf<P>) -> BTreeSet<(Option<StepId>, String)>
where
    P: Planner<Object: Debug>,
    StepOf<P>: Debug,
{
    let Plan { objects, steps, .. } = plan;
    let steps = steps.iter().map(|step| (Some(step.id()), format!("{step:?}")));
    steps.chain(objects.iter().map(|object| (None, format!("{object:?}")))).collect()
}
