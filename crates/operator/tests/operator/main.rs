//! The controllers against real API servers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

/// Shorter than a manager waits: it is waited for often. Tests of what comes later say so themselves.
const SETTLING: Duration = Duration::from_secs(12);

mod beside;
mod cluster;
mod following;
mod hosted_control_plane;
mod load;
mod machines;
mod rights;
mod stubs;
mod unreadable;
mod whole;
mod workers;
