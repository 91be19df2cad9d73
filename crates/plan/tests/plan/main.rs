//! The controllers of the core kinds together, over a world in memory.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod sweep;
mod world;
