//! Log files of limited size.
//!
//! A log is the file `kubelet.log` and its older parts, `kubelet.1.log` (the newest of them) to `kubelet.4.log`. When
//! the file is full, every part is renamed to the next number, the oldest is removed, and a new file begins.
//!
//! - Only the writer of a log renames its parts, and only between two lines: nothing is copied, truncated or lost.
//!   (This does not work for a program that logs into a file of its own: it goes on writing into the renamed file.
//!   Hence the pipes of `supervisor::logs`.)
//! - A writer that is killed between two renames leaves a gap in the numbers, and the next rotation fills it first.
//! - A reader needs no lock: it opens all parts before it reads the first, and starts over when the newest was renamed
//!   meanwhile.
//! - If the file cannot be written, what is written is lost, but the writer is never ended or held up, and it notes how
//!   much was lost once it can write again.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::stdio::dup2_stderr;

/// A part is full with this much, and so many are kept beside the newest: what kubelet grants a container by default.
/// Unit tests, which are many and slow, fill smaller ones.
const LARGEST: u64 = if cfg!(test) { 128 << 10 } else { 10 << 20 };
const OLDER: u32 = 4;
/// A part ends with a line, which may make it larger than [`LARGEST`]; what never ends a line is cut after this much more.
const LONGEST_LINE: u64 = LARGEST / 10;
/// A reader that meets a rotation hardly meets another one at once. The end is for a log whose newest part is missing.
const LOOKS: u32 = 1000;

/// An older part's path: 1 is the newest.
fn older(path: &Path, age: u32) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(match name.strip_suffix(".log") {
        Some(stem) => format!("{stem}.{age}.log"),
        None => format!("{name}.{age}"),
    })
}

/// Whether a file of this name would be taken for an older part of another log.
pub(crate) fn is_older_name(name: &str) -> bool {
    let stem = name.strip_suffix(".log").unwrap_or(name);
    stem.rsplit_once('.').is_some_and(|(_, age)| age.parse::<u32>().is_ok())
}

/// Makes way for a new file.
fn make_way(path: &Path) -> io::Result<()> {
    if !path.try_exists()? {
        // Somebody removed it, or a rotation went this far.
        return Ok(());
    }
    let gap = (1..OLDER).find(|age| !older(path, *age).exists()).unwrap_or(OLDER);
    for age in (1..gap).rev() {
        fs::rename(older(path, age), older(path, age + 1))?;
    }
    fs::rename(path, older(path, 1))
}

fn open_to_write(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).read(true).append(true).open(path)
}

/// Begins a new file for this process's standard error when the one it has is full.
pub(crate) fn keep_standard_error_small(path: &Path) {
    // Nobody is in the middle of a line while we hold it.
    let errors = io::stderr().lock();
    let length = rustix::fs::fstat(&errors).map_or(0, |found| found.st_size);
    if u64::try_from(length).is_ok_and(|length| length >= LARGEST)
        && make_way(path).is_ok()
        && let Ok(file) = open_to_write(path)
    {
        let _ = dup2_stderr(&file);
    }
}

/// A log being written. There must be only one per path.
pub(crate) struct LogFile {
    path: PathBuf,
    file: Option<File>,
    is_at_line_start: bool,
    /// Bytes that could not be written since the last that could.
    lost: u64,
}

impl LogFile {
    pub(crate) fn open(path: PathBuf) -> Self {
        let mut log = Self { path, file: None, is_at_line_start: true, lost: 0 };
        log.reopen();
        log
    }

    fn reopen(&mut self) {
        self.is_at_line_start = true;
        self.file = open_to_write(&self.path).ok();
        // The writer before us may have been killed in the middle of a line.
        if self.file.as_mut().is_some_and(|file| !ends_a_line(file)) {
            self.write(b"\n");
        }
    }

    /// Adds what was written, as it comes: a line may arrive in several pieces.
    pub(crate) fn append(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.file.is_none() {
                self.reopen();
            }
            // Asked each time: a person may have emptied the file.
            let length =
                self.file.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |found| found.len());
            let (now, later) = bytes.split_at(fitting(length, self.is_at_line_start, bytes));
            self.write(now);
            if !later.is_empty() && !self.rotate() {
                // Too large is better than lost.
                self.write(later);
                return;
            }
            bytes = later;
        }
    }

    fn rotate(&mut self) -> bool {
        let made = make_way(&self.path).is_ok();
        if made {
            self.reopen();
        }
        made
    }

    fn write(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        let written = match &mut self.file {
            None => 0,
            Some(file) => {
                if self.lost > 0 {
                    let note = format!("\n[{} bytes of this log could not be written]\n", self.lost);
                    if write_some(file, note.as_bytes()) == note.len() {
                        self.lost = 0;
                    }
                }
                if self.lost > 0 { 0 } else { write_some(file, bytes) }
            }
        };
        self.lost = self.lost.saturating_add((bytes.len() - written) as u64);
        self.is_at_line_start = *last == b'\n';
    }
}

/// How many of the bytes belong into a file of this length; the rest belongs into the next.
fn fitting(length: u64, is_at_line_start: bool, bytes: &[u8]) -> usize {
    let room = usize::try_from(LARGEST.saturating_sub(length)).unwrap_or(usize::MAX);
    let Some(fits) = bytes.get(..room) else { return bytes.len() };
    if let Some(end) = fits.iter().rposition(|byte| *byte == b'\n') {
        return end + 1;
    }
    if is_at_line_start && length > 0 {
        return 0;
    }
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) => end + 1,
        None if length >= LARGEST + LONGEST_LINE => 0,
        None => bytes.len(),
    }
}

/// How many bytes could be written.
fn write_some(file: &mut File, bytes: &[u8]) -> usize {
    let mut written = 0;
    while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
        match file.write(rest) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) | Ok(0) => break,
            Ok(count) => written += count,
        }
    }
    written
}

fn ends_a_line(file: &mut File) -> bool {
    let mut last = [b'\n'];
    // Neither an empty file nor a device has a last byte.
    let is_file = file.metadata().is_ok_and(|found| found.is_file());
    if is_file && file.seek(SeekFrom::End(-1)).is_ok() {
        let _ = file.read(&mut last);
    }
    last == [b'\n']
}

/// The parts of a log, the oldest first; together they are what was written last, without a hole.
pub(crate) fn open_parts(path: &Path) -> io::Result<Vec<File>> {
    let mut looks = 0;
    loop {
        let (mut parts, mut known) = (Vec::new(), BTreeSet::new());
        // From the newest: what is renamed while we look is met once more further on, and never missed.
        for age in 0..=OLDER {
            let part = if age == 0 { path.to_owned() } else { older(path, age) };
            let file = match File::open(part) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                file => file?,
            };
            let found = file.metadata()?;
            if known.insert((found.dev(), found.ino())) {
                parts.push(file);
            }
        }
        looks += 1;
        let newest = parts.first().map(File::metadata).transpose()?;
        let is_still = |found: fs::Metadata| {
            newest.as_ref().is_some_and(|newest| (newest.dev(), newest.ino()) == (found.dev(), found.ino()))
        };
        // Otherwise newer ones than the first may be among those after it. A writer that was killed before it made a new
        // file leaves none.
        if fs::metadata(path).is_ok_and(is_still) || looks == LOOKS {
            parts.reverse();
            return if parts.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(parts) };
        }
    }
}

#[cfg(test)]
mod tests;
