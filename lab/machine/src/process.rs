//! Identifies processes by more than their number.
//!
//! A process is identified by its number, its start time and the boot it belongs to. Before anything is signalled, a
//! pidfd is opened and the start time is read again: the pidfd pins the process, so a number that was reused between
//! reading the record and sending the signal cannot be hit.

use std::{
    fs, io,
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use serde::{Deserialize, Serialize};

use crate::{
    error::{Doing, Result},
    readable,
};

/// A process that cannot be confused with a later one of the same number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// Number in the host's process namespace.
    pub pid: i32,
    /// Start time in clock ticks since boot.
    pub start_time: u64,
    /// The boot the number belongs to.
    pub boot_id: String,
}

impl ProcessIdentity {
    /// Identity of a running process; `None` when it is gone or a zombie.
    pub fn of(pid: i32) -> Option<Self> {
        Self::look(pid).ok().flatten()
    }

    /// The same for those who act on "gone": not being able to look is an error.
    pub(crate) fn look(pid: i32) -> Result<Option<Self>> {
        let path = format!("/proc/{pid}/stat");
        let stat = match fs::read(&path) {
            Ok(stat) => stat,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            // It ended between opening and reading.
            Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => return Ok(None),
            Err(error) => return Err(error).doing(|| format!("read {path}")),
        };
        match parse_stat(&String::from_utf8_lossy(&stat)) {
            None | Some(('Z' | 'X', _)) => Ok(None),
            Some((_, start_time)) => Ok(Some(Self { pid, start_time, boot_id: boot_id()? })),
        }
    }

    /// Whether exactly this process still runs.
    pub fn is_alive(&self) -> bool {
        Self::of(self.pid).as_ref() == Some(self)
    }

    /// Pins the process; `None` when it is gone.
    pub(crate) fn pin(&self) -> Option<OwnedFd> {
        let pidfd = pidfd_open(Pid::from_raw(self.pid)?, PidfdFlags::empty()).ok()?;
        // Only now is the number fixed to one process, and only now is the check worth anything.
        self.is_alive().then_some(pidfd)
    }

    /// Asks the process to end. `true` when it was there.
    pub fn terminate(&self) -> bool {
        self.pin().is_some_and(|pidfd| pidfd_send_signal(pidfd, Signal::TERM).is_ok())
    }

    /// Ends the process at once. `true` when it was there.
    pub fn kill(&self) -> bool {
        self.pin().is_some_and(|pidfd| pidfd_send_signal(pidfd, Signal::KILL).is_ok())
    }

    /// Waits until the process is gone; `false` when it still is there after `patience`.
    pub fn wait_gone(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let Some(pidfd) = self.pin() else { return true };
        matches!(readable::by(pidfd, deadline), Ok(true)) || !self.is_alive()
    }
}

/// State letter and start time of a `/proc/PID/stat` line. The command in parentheses may hold anything.
fn parse_stat(stat: &str) -> Option<(char, u64)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    // Field 22 of the line; the state is field 3.
    let start_time = fields.nth(18)?.parse().ok()?;
    Some((state, start_time))
}

/// The kernel's identity of this boot.
pub(crate) fn boot_id() -> Result<String> {
    let path = "/proc/sys/kernel/random/boot_id";
    Ok(fs::read_to_string(path).doing(|| format!("read {path}"))?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn reads_a_hostile_command_name() {
        let line = "42 (a) b) R 1 42 42 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 987654 0 0";
        assert_eq!(parse_stat(line), Some(('R', 987_654)));
    }

    #[test]
    fn only_the_same_process_is_alive() {
        let own = ProcessIdentity::of(std::process::id().cast_signed()).unwrap();
        assert!(own.is_alive());
        let later = ProcessIdentity { start_time: own.start_time + 1, ..own.clone() };
        let other_boot = ProcessIdentity { boot_id: "another".to_owned(), ..own };
        for stale in [later, other_boot] {
            assert!(!stale.is_alive());
            assert!(stale.pin().is_none());
            assert!(!stale.kill(), "a stale identity must never be signalled");
        }
    }

    #[test]
    fn a_number_without_a_process_is_nobody() {
        assert_eq!(ProcessIdentity::look(i32::MAX).unwrap(), None);
    }

    #[test]
    fn kills_and_waits() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let identity = ProcessIdentity::of(child.id().cast_signed()).unwrap();
        assert!(!identity.wait_gone(Duration::from_millis(1)));
        assert!(identity.kill());
        assert!(identity.wait_gone(Duration::from_secs(10)));
        assert!(!identity.is_alive(), "a zombie counts as gone");
        child.wait().unwrap();
    }
}
