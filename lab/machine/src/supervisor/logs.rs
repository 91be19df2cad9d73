//! Writes the output of services to their logs.
//!
//! A service's output is a pipe that process 1 reads, with one thread for each log. Process 1 writes the file, so it
//! can rotate a full one (see [`crate::log_file`]) between two lines, without the service's knowledge. The alternatives
//! lose lines: copying and truncating a file that others append to loses what is written between the two, and writers
//! of a renamed file go on writing into it.
//!
//! - A pipe whose reader is gone ends its writers (SIGPIPE), and a full one without a reader blocks them. Neither can
//!   happen: process 1 holds both ends as long as it lives, and when it dies the kernel ends the whole machine. If a
//!   file cannot be written (full disk), the pipe is still read.
//! - A log has one pipe as long as the machine runs. So processes that outlive a service (containerd's shims) keep
//!   writing into the same log, beside the service's next start.
//! - What a service wrote before it ended is in its file before its end is reported, see [`Logs::flush`]. Only if
//!   process 1 itself is killed, the content of the pipe (64 KiB at most) is lost.
//! - It costs one more copy of each line in memory and a wake-up of process 1: microseconds per line, for some ten
//!   lines a second that kubelet and containerd write.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    io::{PipeReader, PipeWriter, pipe},
    os::fd::AsFd,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::{Errno, ioctl_fionbio, ioctl_fionread, read},
};

use crate::{
    error::{Doing, Result},
    log_file::LogFile,
};

/// As much as a pipe holds.
const CHUNK: usize = 64 << 10;
/// Before it is tried again to read a pipe that cannot be read: no such failure is known.
const PAUSE: Duration = Duration::from_secs(1);

/// The logs of all services, by file name.
pub(super) struct Logs {
    directory: PathBuf,
    open: BTreeMap<String, Log>,
}

struct Log {
    writer: PipeWriter,
    pump: Arc<Pump>,
}

impl Logs {
    pub(super) fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), open: BTreeMap::new() }
    }

    /// Where a service writes.
    pub(super) fn writer(&mut self, name: &str) -> Result<PipeWriter> {
        let log = match self.open.entry(name.to_owned()) {
            Entry::Occupied(log) => log.into_mut(),
            Entry::Vacant(place) => place.insert(Log::open(self.directory.join(name))?),
        };
        log.writer.try_clone().doing(|| "copy a pipe")
    }

    /// Whatever was written before is in the file afterwards.
    pub(super) fn flush(&self, name: &str) {
        if let Some(log) = self.open.get(name) {
            log.pump.flush();
        }
    }

    pub(super) fn flush_all(&self) {
        self.open.values().for_each(|log| log.pump.flush());
    }
}

impl Log {
    fn open(path: PathBuf) -> Result<Self> {
        let (reader, writer) = pipe().doing(|| "make a pipe")?;
        // Of our end alone: the writers' end waits, as programs expect.
        ioctl_fionbio(&reader, true).doing(|| "make a pipe")?;
        let sink = Sink { file: LogFile::open(path), buffer: vec![0; CHUNK] };
        let pump = Arc::new(Pump { reader, sink: Mutex::new(sink) });
        let own = Arc::clone(&pump);
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || own.run())
            .doing(|| "start a thread that writes a log")?;
        Ok(Self { writer, pump })
    }
}

struct Pump {
    reader: PipeReader,
    /// Held from reading until it is written, so that the order stays.
    sink: Mutex<Sink>,
}

struct Sink {
    file: LogFile,
    buffer: Vec<u8>,
}

impl Sink {
    fn pass_on(&mut self, reader: impl AsFd) -> rustix::io::Result<usize> {
        let count = read(reader, &mut self.buffer)?;
        self.file.append(self.buffer.get(..count).unwrap_or_default());
        Ok(count)
    }
}

impl Pump {
    fn run(&self) {
        loop {
            let _ = poll(&mut [PollFd::new(&self.reader, PollFlags::IN)], None);
            let passed = self.sink.lock().unwrap_or_else(PoisonError::into_inner).pass_on(&self.reader);
            match passed {
                Ok(0) => return,
                Ok(_) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => thread::sleep(PAUSE),
            }
        }
    }

    fn flush(&self) {
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        // Not until it is empty: others may write as fast as we read.
        let mut left =
            ioctl_fionread(&self.reader).map_or(0, |count| usize::try_from(count).unwrap_or(CHUNK));
        while left > 0 {
            match sink.pass_on(&self.reader) {
                Ok(count) if count > 0 => left = left.saturating_sub(count),
                Err(Errno::INTR) => {}
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write};

    use super::*;

    #[test]
    fn what_was_written_is_in_the_file_after_a_flush() {
        let directory = tempfile::tempdir().unwrap();
        let mut logs = Logs::new(directory.path());
        let mut expected = String::new();
        for number in 0..400 {
            // Each time another writer, as of a service that starts again.
            let line = format!("{number} {}\n", "x".repeat(number));
            logs.writer("a.log").unwrap().write_all(line.as_bytes()).unwrap();
            expected.push_str(&line);
            logs.flush("a.log");
            assert_eq!(fs::metadata(directory.path().join("a.log")).unwrap().len(), expected.len() as u64);
        }
        assert!(
            fs::read_to_string(directory.path().join("a.log")).unwrap() == expected,
            "it is not the same"
        );
    }

    /// Far more than a pipe holds: a log that cannot be written must not block the service.
    #[test]
    fn a_full_disk_holds_up_nobody() {
        let directory = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/full", directory.path().join("a.log")).unwrap();
        let mut logs = Logs::new(directory.path());
        let mut writer = logs.writer("a.log").unwrap();
        for _ in 0..64 {
            writer.write_all(&vec![b'x'; CHUNK]).unwrap();
        }
    }
}
