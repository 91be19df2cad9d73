//! Reaps every child that ends, services and adopted orphans alike.
//!
//! The reaper first looks which child ended without reaping it, then takes the lock that starting a service holds, then
//! reaps. So it never takes a child for which the standard library still waits (a program that could not be executed).

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc::Sender},
    time::Duration,
};

use rustix::{
    io::Errno,
    process::{WaitId, WaitIdOptions, WaitOptions, WaitStatus, wait, waitid},
};

use super::control::Event;

/// Without children of its own the reaper looks this often for adopted ones.
const IDLE: Duration = Duration::from_secs(1);

/// The lock that orders starting and collecting.
#[derive(Clone, Default)]
pub(super) struct Reaper {
    shared: Arc<(Mutex<()>, Condvar)>,
}

impl Reaper {
    pub(super) fn start(events: Sender<Event>) -> Self {
        let reaper = Self::default();
        let own = reaper.clone();
        std::thread::spawn(move || own.run(&events));
        reaper
    }

    /// Held while a child is started.
    pub(super) fn pause(&self) -> MutexGuard<'_, ()> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that there is a new child.
    pub(super) fn wake(&self) {
        self.shared.1.notify_all();
    }

    fn run(&self, events: &Sender<Event>) {
        loop {
            match waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
                Err(Errno::CHILD) => {
                    let guard = self.pause();
                    let _ = self.shared.1.wait_timeout(guard, IDLE);
                    continue;
                }
                Err(_) => continue,
                Ok(_) => {}
            }
            let guard = self.pause();
            let mut ended = Vec::new();
            while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
                ended.push((pid, status));
            }
            drop(guard);
            for (pid, status) in ended {
                let event = Event::Exited { pid: pid.as_raw_nonzero().get(), code: exit_code(status) };
                if events.send(event).is_err() {
                    return;
                }
            }
        }
    }
}

/// The code a shell would show.
fn exit_code(status: WaitStatus) -> i32 {
    status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal)).unwrap_or(255)
}
