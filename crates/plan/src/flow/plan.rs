//! A plan: what should exist, what to do next, what to say about it, when to look again.

use std::{collections::BTreeSet, fmt};

use kube::core::DynamicObject;

use super::{Report, Wake};

/// The identity of a step, the same in every run that plans the same step.
///
/// It carries what the step does and to what, never ids that the other side invents or times.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId {
    /// What is done, in one word: `create`, `tag`, `delete`.
    pub verb: &'static str,
    /// To what kind of thing: `server`, `etcd-member`.
    pub kind: &'static str,
    /// Which one, by a name that is derived and stable.
    pub name: String,
}

impl StepId {
    /// The identity of doing something to one named thing.
    pub fn new(verb: &'static str, kind: &'static str, name: impl Into<String>) -> Self {
        Self { verb, kind, name: name.into() }
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {} {}", self.verb, self.kind, self.name)
    }
}

/// One call to the outside: cloud, etcd, tenant, or a patch of an object that is not ours.
pub trait Step {
    /// Its stable identity.
    fn id(&self) -> StepId;
}

/// The steps that can be run now, in order of preference, independent of each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frontier<S>(Vec<S>);

impl<S> Default for Frontier<S> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<S: Step> Frontier<S> {
    /// Adds a step. A second step with the same identity is the same step: the first stays.
    pub fn push(&mut self, step: S) {
        let id = step.id();
        if !self.0.iter().any(|present| present.id() == id) {
            self.0.push(step);
        }
    }

    /// The first step that was not tried yet.
    pub fn next_untried(&self, tried: &BTreeSet<StepId>) -> Option<&S> {
        self.0.iter().find(|step| !tried.contains(&step.id()))
    }

    /// The steps in order.
    pub fn iter(&self) -> std::slice::Iter<'_, S> {
        self.0.iter()
    }

    /// True when nothing is left to do from here.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many steps can be run now.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl<S: Step> FromIterator<S> for Frontier<S> {
    fn from_iter<I: IntoIterator<Item = S>>(steps: I) -> Self {
        let mut frontier = Self::default();
        for step in steps {
            frontier.push(step);
        }
        frontier
    }
}

impl<'a, S: Step> IntoIterator for &'a Frontier<S> {
    type Item = &'a S;
    type IntoIter = std::slice::Iter<'a, S>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Everything one round of planning says.
///
/// `objects` are Kubernetes objects of the management cluster that should exist as written; `steps` are calls to
/// everything else. Both are complete: what is not in them is not decided anywhere else.
#[derive(Clone, Debug)]
pub struct Plan<S, T, O = DynamicObject> {
    /// Objects to apply, in order of applying.
    pub objects: Vec<O>,
    /// Calls that can be made now.
    pub steps: Frontier<S>,
    /// The status to write, always.
    pub status: T,
    /// Why, for people.
    pub report: Report,
    /// When to plan again without a change.
    pub wake: Wake,
}

impl<S, T: Default, O> Default for Plan<S, T, O> {
    fn default() -> Self {
        Self {
            objects: Vec::new(),
            steps: Frontier::default(),
            status: T::default(),
            report: Report::default(),
            wake: Wake::default(),
        }
    }
}
