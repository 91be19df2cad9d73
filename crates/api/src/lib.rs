//! The kinds Hangar serves, their conversions, conditions and contracts.
//!
//! There is a folder per API group and a file per kind. Nothing here does I/O, reads a clock or draws randomness: times
//! and look-ups are passed in, so that the conversion webhook, the controllers, the command line and the tests all run
//! the same functions.

#![warn(missing_docs)]
#![allow(clippy::duplicated_attributes, reason = "each printer column of a kind has a type and a path")]
#![allow(clippy::doc_markdown, reason = "doc comments become descriptions that people read in a terminal")]

pub mod addons;
pub mod bootstrap;
pub mod cluster;
pub mod conditions;
pub mod contract;
pub mod controlplane;
pub mod conversion;
pub mod crd;
pub mod infrastructure;
pub mod names;
pub mod naming;
pub mod reference;
