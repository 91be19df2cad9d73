//! Waiting for what comes about in its own time.

use std::time::{Duration, Instant};

/// Only for a check that fails.
pub(crate) const PATIENCE: Duration = Duration::from_mins(10);

#[track_caller]
pub(crate) fn eventually(what: &str, mut claim: impl FnMut() -> Result<(), String>) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match claim() {
            Ok(()) => return,
            Err(state) => assert!(Instant::now() < deadline, "{what}: {state}"),
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

pub(crate) fn is(claim: bool, state: impl FnOnce() -> String) -> Result<(), String> {
    if claim { Ok(()) } else { Err(state()) }
}

/// Looks without a pause, because what follows must come in time.
#[track_caller]
pub(crate) fn soon(what: &str, mut claim: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !claim() {
        assert!(Instant::now() < deadline, "{what}");
    }
}
