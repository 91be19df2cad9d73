//! The types that all controllers share: what was read, what is planned, and what came of it.
//!
//! These types are pure data and are in `plan`, not in the controller runtime, so that plans can be written, tested and
//! interpreted without tokio or a client. The runtime (`kit`) and the controllers (`operator`) execute them.
//!
//! Invariants
//! - **Unknown is not absent.** A [`Read`] that failed or is stale is `Unknown`; nothing is created or deleted from it.
//! - **A plan is a frontier.** It contains only steps whose inputs were observed. No step refers to the result of
//!   another: run a step, fold its [`Outcome`] into the observation, plan again.
//! - **Refusals and lost answers are data.** An [`Outcome`] is not an error; the next plan decides what it means.
//! - **Steps have a stable identity** ([`StepId`]): the crash sweep ([`crash`]) names its points by it, the executor
//!   runs nothing twice in one pass, and a step that did not work waits longer each time ([`Setbacks`]).
//! - **Steps say who executes them** ([`Step`]): a controller that does nothing in a cloud cannot write a step for one.

mod clocks;
pub mod crash;
#[cfg(test)]
pub(crate) mod doubt;
mod draft;
mod outcome;
mod plan;
mod planner;
mod read;
mod report;
mod rounds;
mod step;
mod wake;
mod write;

pub use clocks::Clocks;
pub(crate) use draft::{Draft, Drafted, HasRoot, has_root};
pub use outcome::{Failure, Outcome, Refusal};
pub use plan::{Frontier, Plan};
pub use planner::{NOT_CALLED, PlanOf, Planner, StepOf};
pub use read::{Read, Unknown};
pub use report::{Decision, Report};
pub use rounds::{Ending, Next, ROUNDS, Ran, Rounds, Setbacks};
pub use step::{Identified, Never, Step, StepId};
pub use wake::{NotYet, Wake};
pub use write::{Action, Seen, Target, Write, dynamic};
