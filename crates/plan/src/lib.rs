//! What Hangar decides: synchronous, deterministic, without I/O.
//!
//! Clock and randomness are passed in: the same input gives the same bytes, which the golden tests rely on. Everything
//! that reads or writes the world lives in other crates; everything that decides lives here.

pub mod admission;
pub mod controllers;
pub mod flow;
pub mod install;
