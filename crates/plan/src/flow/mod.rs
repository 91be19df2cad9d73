//! The words every controller speaks: what was read, what is planned, what came of it.
//!
//! These types are pure data and live in `plan`, not in the controller runtime, so that plans can be written,
//! tested and interpreted without tokio or a client. The runtime (`kit`) imports them and gives them effect.
//!
//! Invariants
//! - **Unknown is not absent.** A [`Read`] that failed or is stale is `Unknown`; nothing is created or deleted from it.
//! - **A plan is a frontier.** It holds only steps whose inputs were observed. There are no references to results of
//!   other steps: run a step, fold its [`Outcome`] into the observation, plan again.
//! - **Refusals and lost answers are data.** An [`Outcome`] is not an error; the next plan decides what it means.
//! - **Steps have a stable identity** ([`StepId`]): the crash sweep ([`crash`]) names its points by it, and the
//!   executor uses it to run nothing twice in one pass.

pub mod crash;
mod outcome;
mod plan;
mod read;
mod report;
mod wake;

pub use outcome::{Failure, Outcome};
pub use plan::{Frontier, Plan, Step, StepId};
pub use read::{Read, Unknown};
pub use report::{Actor, Decision, Report, Wait};
pub use wake::{NotYet, Wake};
