//! What this crate's own processes report to the process that started them: [`READY`], or one line with the reason of
//! a failure.

use std::{
    io::{self, Read, Write},
    os::fd::AsFd,
    process::ExitCode,
    time::{Duration, Instant},
};

use crate::{
    error::{Doing, Result},
    readable,
};

/// The line of a process that is up.
pub(crate) const READY: &str = "ready";
/// Being up takes well under a second; on a host that is very busy it may take many. Who needs longer hangs.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// Reads a report until all writers have closed it; `None` when one still holds it after `patience`.
pub(crate) fn read(mut output: impl Read + AsFd, patience: Duration) -> Result<Option<String>> {
    let deadline = Instant::now() + patience;
    let mut report = Vec::new();
    let mut part = [0; 4096];
    while readable::by(&output, deadline).doing(|| "wait for a report")? {
        match output.read(&mut part).doing(|| "read a report")? {
            0 => return Ok(Some(String::from_utf8_lossy(&report).into_owned())),
            length => report.extend(part.iter().take(length)),
        }
    }
    Ok(None)
}

/// Says how it went, and ends with it.
pub(super) fn end(result: Result<()>) -> ExitCode {
    let Err(error) = result else {
        return ExitCode::SUCCESS;
    };
    // Whoever started us reads standard output; the log has standard error.
    let _ = writeln!(io::stdout(), "{error}");
    note(&error);
    ExitCode::FAILURE
}

/// One line into the log. Unlike `eprintln!` it does not panic when the disk is full or the reader is gone: that would
/// end the first process, and with it the machine.
pub(crate) fn note(line: impl std::fmt::Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_report_ends_when_all_let_go() {
        let (mut one, other) = UnixStream::pair().unwrap();
        let second = one.try_clone().unwrap();
        writeln!(one, "{READY}").unwrap();
        drop(one);
        assert_eq!(read(other.try_clone().unwrap(), Duration::ZERO).unwrap(), None, "one still holds it");
        drop(second);
        assert_eq!(read(other, PATIENCE).unwrap(), Some(String::new()), "the rest of it");
    }
}
