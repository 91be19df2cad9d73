//! The controllers against real API servers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cluster;
mod hosted_control_plane;
mod load;
mod machines;
mod stubs;
mod whole;
mod workers;
