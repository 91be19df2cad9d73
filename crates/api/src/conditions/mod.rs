//! Conditions: made, written, mirrored, aggregated and summarised in one place.
//!
//! A controller makes [`Finding`]s: what holds, what does not, and then always who must act and what is waited for.
//! Only [`set()`] turns a finding into a condition of an object; it alone decides the transition time, from a clock that is
//! passed in. Nothing else in the tree writes `lastTransitionTime`.
//!
//! - [`get()`] reads conditions, of our objects and of foreign ones as raw JSON, in either contract's shape;
//! - [`mirror()`] shows one condition of another object under a name of ours;
//! - [`aggregate()`] merges the same condition of many objects;
//! - [`summary()`] merges several conditions of one object.
//!
//! Merging goes by priority: issues, then what is unknown, then information. Input order never shows in the result, so
//! that a status is written only when something changed.

pub mod actor;
pub mod aggregate;
pub mod finding;
pub mod get;
pub mod mirror;
mod order;
mod owners;
pub mod polarity;
pub mod set;
pub mod severity;
pub mod summary;

#[cfg(test)]
mod tests;

pub use actor::{Actor, Waiting};
pub use aggregate::{Source, aggregate};
pub use finding::{Finding, Status};
pub use get::{HasConditions, get, is_true};
pub use mirror::mirror;
pub use polarity::{Polarity, Priority};
pub use set::{remove, set};
pub use severity::{Severity, set_severity};
pub use summary::{Part, summary};
