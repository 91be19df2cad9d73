//! A plan: which objects should exist, what to do next, what to report, when to plan again.

use kube::core::DynamicObject;

use super::{Identified, Report, Wake};

/// The steps that can be run now, in order of preference, independent of each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frontier<S>(Vec<S>);

impl<S> Default for Frontier<S> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<S: Identified> Frontier<S> {
    /// Adds a step. A second step with the same identity is the same step: the first stays.
    pub fn push(&mut self, step: S) {
        let id = step.id();
        if !self.0.iter().any(|present| present.id() == id) {
            self.0.push(step);
        }
    }

    /// Adds several steps.
    pub fn extend(&mut self, steps: impl IntoIterator<Item = S>) {
        for step in steps {
            self.push(step);
        }
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

impl<S: Identified> FromIterator<S> for Frontier<S> {
    fn from_iter<I: IntoIterator<Item = S>>(steps: I) -> Self {
        let mut frontier = Self::default();
        frontier.extend(steps);
        frontier
    }
}

impl<'a, S: Identified> IntoIterator for &'a Frontier<S> {
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
