//! `hangar up` as users run it, what is left when it is killed or refused, and what runs in the cluster. Needs root.
//!
//! It is a binary of its own and runs one test after the other: two clusters at once are too much for two cores.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod door;
mod egress;
mod environment;
mod extension;
mod killed;
mod kubectl;
mod losses;
mod management_nodes;
mod order;
mod recorder;
mod refused;
mod renewal;
mod requests;
mod restore;
mod server;
mod shared;
mod side_by_side;
mod tenant;
mod thin_path;
mod upgrade;
mod waiting;
mod ways_in;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// One at a time.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
