//! Conditions: made, written, mirrored, aggregated and summarised in one place.
//!
//! A controller makes [`Finding`]s from [`Reason`]s that are declared beside their condition; a finding that is not
//! good always says who must act and what is waited for. Only [`set()`] and [`set_severity()`] turn a finding into a
//! condition of an object; they alone decide the transition time, from a clock that is passed in. No other code writes
//! `lastTransitionTime`.
//!
//! - [`get()`] reads conditions, of our objects and of foreign ones as raw JSON, in either contract's format;
//! - [`mirror()`] shows one condition of another object under a name of ours;
//! - [`aggregate()`] merges the same condition of many objects;
//! - [`summary()`] merges several conditions of one object.
//!
//! Conditions are merged by priority: issues, then what is unknown, then information. The result does not depend on the
//! order of the input, so that a status is written only when something changed.

pub mod actor;
pub mod aggregate;
pub mod finding;
pub mod get;
pub mod mirror;
mod order;
mod owners;
pub mod polarity;
pub mod reason;
pub mod set;
pub mod severity;
pub mod summary;

#[cfg(test)]
mod tests;

pub use actor::{Actor, Waiting};
pub use aggregate::{Source, aggregate};
pub use finding::{Finding, Status};
pub use get::{Conditioned, HasConditions, get, is_true};
pub use mirror::{mirror, renamed};
pub use polarity::{Polarity, Priority};
pub use reason::{Bad, ConditionType, Good, Origin, Reason};
pub use set::{remove, set, shortened, written};
pub use severity::{Severity, set_severity};
pub use summary::{Term, summary};
