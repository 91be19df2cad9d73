//! A draft: a plan while it is being made. Everything that a controller decides or reports goes through it.
//!
//! A condition is set with [`Draft::say`]; each type has at most one, and the last call counts. A condition that is not
//! good is also a wait in the report. Only [`Draft::finish`] writes to the status: the conditions that were set, in the
//! current and in the older format, and the generation they are about. A condition that was not set stays as it was.

use std::time::Duration;

use hangar_api::conditions::{self, Conditioned, Finding, Term};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Resource;
use kube::core::ObjectMeta;
use kube::core::object::HasStatus;

use super::{Frontier, Plan, PlanOf, Planner, Report, StepOf, Wake};
use crate::conditions::{is_declared, shared::paused, shared::readable};

/// What a draft has to know about the observation it is made from.
pub(crate) trait HasRoot {
    /// The object that everything is said about.
    type Root: Resource<DynamicType = ()> + HasStatus<Status: Conditioned>;
    /// Conditions that are repeated in the older contract's shape, and their names there.
    const OLDER: &'static [(&'static str, &'static str)];

    fn root(&self) -> &Self::Root;
    fn now(&self) -> Timestamp;
    /// Nothing may follow from a read that failed.
    #[cfg(test)]
    fn doubt(&self, plan: &PlanOf<Self>)
    where
        Self: Planner;
}

/// Implements [`HasRoot`] for an `Observed`: kind and field of the object, and what is repeated in the older shape.
macro_rules! has_root {
    ($root:ident in $field:ident $(, $type:path => $older:literal)*) => {
        impl $crate::flow::HasRoot for Observed {
            type Root = $root;
            const OLDER: &'static [(&'static str, &'static str)] = &[$(($type, $older)),*];

            fn root(&self) -> &$root {
                &self.$field
            }

            fn now(&self) -> jiff::Timestamp {
                self.now
            }

            #[cfg(test)]
            fn doubt(&self, plan: &$crate::flow::PlanOf<Self>) {
                $crate::flow::doubt::check(self, plan);
            }
        }
    };
}

pub(crate) use has_root;

/// A plan in the making.
pub(crate) struct Draft<'a, P: Planner> {
    pub(crate) observed: &'a P,
    pub(crate) objects: Vec<P::Object>,
    pub(crate) steps: Frontier<StepOf<P>>,
    /// The status so far, without what was said.
    pub(crate) status: P::Status,
    pub(crate) report: Report,
    pub(crate) wake: Wake,
    said: Vec<Finding>,
    is_attended: bool,
}

/// Whatever can be drafted: the status that is planned is that of the object.
pub(crate) trait Drafted:
    Planner<Status: Conditioned> + HasRoot<Root: HasStatus<Status = <Self as Planner>::Status>>
{
}

impl<P> Drafted for P where
    P: Planner<Status: Conditioned> + HasRoot<Root: HasStatus<Status = <P as Planner>::Status>>
{
}

impl<'a, P: Drafted> Draft<'a, P> {
    /// Begins with the status that was written last.
    pub(crate) fn new(observed: &'a P) -> Self {
        let mut status = observed.root().status().cloned().unwrap_or_default();
        // It was read.
        status.forget(readable::TYPE);
        Self {
            observed,
            objects: Vec::new(),
            steps: Frontier::default(),
            status,
            report: Report::default(),
            wake: Wake::OnChange,
            said: Vec::new(),
            is_attended: true,
        }
    }

    pub(crate) fn metadata(&self) -> &'a ObjectMeta {
        self.observed.root().meta()
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.metadata().deletion_timestamp.is_some()
    }

    pub(crate) fn has_finalizer(&self, name: &str) -> bool {
        self.metadata().finalizers.iter().flatten().any(|finalizer| finalizer == name)
    }

    /// Nothing is done for the object: its present generation does not count as observed.
    pub(crate) fn unattended(&mut self) {
        self.is_attended = false;
    }

    /// Adds a step.
    pub(crate) fn step(&mut self, step: impl Into<StepOf<P>>) {
        self.steps.push(step.into());
    }

    /// Plans again after this long at the latest.
    pub(crate) fn again(&mut self, after: Duration) {
        self.wake_at(Wake::after(self.observed.now(), after));
    }

    /// Plans again then at the latest.
    pub(crate) fn wake_at(&mut self, wake: Wake) {
        self.wake = self.wake.sooner(wake);
    }

    /// Says one condition.
    pub(crate) fn say(&mut self, finding: impl Into<Finding>) {
        let finding = finding.into();
        let kind = P::Root::kind(&());
        debug_assert!(is_declared(&kind, &finding), "not declared for {kind}: {finding:?}");
        if let Some(waiting) = finding.waiting() {
            self.report.wait(waiting.clone());
        }
        self.said.retain(|other| other.type_() != finding.type_());
        self.said.push(finding);
    }

    /// Says whether reconciliation is paused, and tells it: until when.
    pub(crate) fn is_paused(&mut self, until: Option<&'static str>) -> bool {
        match until {
            Some(until) => self.say(paused::PAUSED.waits(until)),
            None => self.say(paused::NOT_PAUSED),
        }
        until.is_some()
    }

    /// Takes away a condition that does not apply.
    pub(crate) fn forget(&mut self, type_: &str) {
        self.said.retain(|finding| finding.type_() != type_);
        self.status.forget(type_);
    }

    /// Says the summary of other conditions.
    pub(crate) fn summarise(&mut self, type_: &'static str, terms: &[Term<'_>]) {
        let summary = conditions::summary(type_, terms, |type_| self.condition(type_));
        self.say(summary);
    }

    /// What was said in this plan.
    pub(crate) fn said(&self) -> &[Finding] {
        &self.said
    }

    /// A condition as it is written, or as it was where nothing was said.
    pub(crate) fn condition(&self, type_: &str) -> Option<Condition> {
        let before = self.status.condition(type_);
        match self.said.iter().find(|finding| finding.type_() == type_) {
            Some(finding) => {
                let (generation, now) = (self.metadata().generation, self.observed.now());
                Some(conditions::written(before.as_ref(), finding, generation, now))
            }
            None => before,
        }
    }

    /// Writes everything that was said, and gives the plan.
    pub(crate) fn finish(self) -> PlanOf<P> {
        let (generation, now) = (self.metadata().generation, self.observed.now());
        #[cfg(test)]
        let observed = self.observed;
        let Self { objects, steps, mut status, report, wake, said, is_attended, .. } = self;
        for finding in &said {
            status.write(finding, generation, now);
        }
        if is_attended {
            status.conclude(generation, P::OLDER, now);
        }
        let plan = Plan { objects, steps, status, report, wake };
        #[cfg(test)]
        observed.doubt(&plan);
        plan
    }
}
