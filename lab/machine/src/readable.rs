//! Waits until a descriptor is readable, always with a time limit.

use std::{
    os::fd::AsFd,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

/// Waits until there is something to read (or the other side is gone); `false` when there is not by then.
pub(crate) fn by(descriptor: impl AsFd, deadline: Instant) -> rustix::io::Result<bool> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&timespec(left))) {
            Err(Errno::INTR) => {}
            ready => return Ok(ready? > 0),
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: duration.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Write, os::unix::net::UnixStream};

    use super::*;

    #[test]
    fn has_an_end() {
        let (mut one, other) = UnixStream::pair().unwrap();
        assert!(!by(&other, Instant::now()).unwrap());
        one.write_all(b"x").unwrap();
        assert!(by(&other, Instant::now()).unwrap());
    }
}
