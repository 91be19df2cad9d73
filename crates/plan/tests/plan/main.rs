//! The controllers of the core kinds together, over a world in memory; and what is shipped beside the programs.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod monitoring;
mod sweep;
mod world;
