//! The planner: the pure half of a controller, apart from how it reads and writes.
//!
//! ```text
//! stores -> Observed -> wanted? -> read -> Observed -> plan -> step -> Outcome -> fold -> Observed -> plan ...
//!                         ^                   |
//!                         +-------------------+   until nothing more is wanted
//! ```
//!
//! Reading happens in turns. What the stores have costs nothing and is always there. What costs a call (a tenant, a
//! cloud, the content of a Secret) is read only if the planner asks for it, after it has seen the rest.

use super::{Identified, Outcome, Plan, Step, StepId};

/// Why a tenant says nothing in a preview without one.
pub const NOT_CALLED: &str = "this preview calls no tenant";

pub type StepOf<P> = Step<<P as Planner>::Own, <P as Planner>::Tenant, <P as Planner>::Cloud>;
pub type PlanOf<P> = Plan<StepOf<P>, <P as Planner>::Status, <P as Planner>::Object>;

/// Pure decisions about one kind, made by what was observed of it: everything that decides.
pub trait Planner: Sized + Send + Sync + 'static {
    /// What has to be read before a plan can be made.
    type Wanted: Send + Sync;
    /// Steps that only this controller's edge can run.
    type Own: Identified + Send + Sync;
    /// Steps in the tenant.
    type Tenant: Identified + Send + Sync;
    /// Steps in the cloud.
    type Cloud: Identified + Send + Sync;
    /// What is said about the object.
    type Status: Send + Sync;
    /// What is applied as a whole, after the steps.
    type Object: Send + Sync;

    /// What to read next; none when a plan can be made from what is there.
    fn wanted(&self) -> Option<Self::Wanted> {
        None
    }
    /// Answers a read without the call, for a preview without tenant and cloud: nothing exists there but what the
    /// specification names. What has to be read all the same is given back.
    fn assume(&mut self, wanted: Self::Wanted) -> Option<Self::Wanted> {
        Some(wanted)
    }
    /// Takes over what an earlier pass of a preview read, with its steps folded in: they happened nowhere else.
    fn recall(&mut self, before: &Self) {
        let _ = before;
    }
    fn plan(&self) -> PlanOf<Self>;
    /// Makes the observation what it is after that outcome.
    fn fold(&mut self, step: &StepOf<Self>, outcome: &Outcome);
    /// The same for an object of the plan that could not be applied; conditions tell about it.
    fn not_applied(&mut self, object: StepId, outcome: &Outcome) {
        let _ = (object, outcome);
    }
}
