//! The logs of a machine's services. The files are on the host, so those of a stopped machine can be read.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use super::Machine;
use crate::{
    error::{Doing, Error, Result, on},
    log_file::open_parts,
};

/// Enough to see why a process ended.
const LAST_LINES: usize = 5;
/// Where those lines are; what wrote more, or a log that is no plain file, must not fill the memory.
const LAST_BYTES: u64 = 16 << 10;

/// What was written to a log after its first `before` bytes, as a clause. It is part of the error because the log of a
/// machine that could not be made is removed with it.
pub(super) fn last_words(path: &Path, before: u64) -> String {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) => return format!("its log cannot be read: {error}"),
    };
    let mut content = Vec::new();
    let read = file.metadata().and_then(|metadata| {
        // A shorter one was begun since: that which had them was full.
        let before = if metadata.len() < before { 0 } else { before };
        let begin = before.max(metadata.len().saturating_sub(LAST_BYTES));
        file.seek(SeekFrom::Start(begin))?;
        file.take(LAST_BYTES).read_to_end(&mut content)
    });
    if let Err(error) = read {
        return format!("its log cannot be read: {error}");
    }
    let text = String::from_utf8_lossy(&content);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match &lines[lines.len().saturating_sub(LAST_LINES)..] {
        [] => "its log is empty".to_owned(),
        last => format!("its log ends with: {}", last.join("; ")),
    }
}

impl Machine {
    /// The log files by name without ending: one per service, and `supervisor`. Where such a file was full, the older parts
    /// of the log are beside it, as `<name>.1` (the newest of them), `<name>.2` and so on.
    pub fn log_files(&self) -> Result<BTreeMap<String, PathBuf>> {
        self.record()?;
        let directory = self.files.logs();
        let entries = match fs::read_dir(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            entries => entries.doing(|| on("list", &directory))?,
        };
        Ok(entries
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name().to_str()?.to_owned();
                let stem = name.strip_suffix(".log").unwrap_or(&name).to_owned();
                Some((stem, entry.path()))
            })
            .collect())
    }

    /// The last `bytes` of a log, or all that is kept of it, older parts included.
    pub fn logs(&self, name: &str, bytes: Option<u64>) -> Result<String> {
        let files = self.log_files()?;
        // For a moment, or after a supervisor was killed, there may be older parts alone.
        let renamed =
            || files.get(&format!("{name}.1")).map(|_| self.files.logs().join(format!("{name}.log")));
        let path = files.get(name).cloned().or_else(renamed).ok_or_else(|| {
            let known: Vec<&str> = files.keys().map(String::as_str).collect();
            Error::Invalid(format!("machine {} has no log {name:?}, only: {}", self.name, known.join(", ")))
        })?;
        let content = read_last(&path, bytes).doing(|| on("read", &path))?;
        Ok(String::from_utf8_lossy(&content).into_owned())
    }
}

/// The last bytes of a log, or all, over all its parts.
fn read_last(path: &Path, bytes: Option<u64>) -> io::Result<Vec<u8>> {
    let parts = open_parts(path)?;
    let lengths = parts.iter().map(|part| Ok(part.metadata()?.len())).collect::<io::Result<Vec<u64>>>()?;
    let mut skip = bytes.map_or(0, |bytes| lengths.iter().sum::<u64>().saturating_sub(bytes));
    let mut content = Vec::new();
    for (mut part, length) in parts.into_iter().zip(lengths) {
        part.seek(SeekFrom::Start(skip.min(length)))?;
        skip = skip.saturating_sub(length);
        part.read_to_end(&mut content)?;
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_spans_its_parts() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("a.log");
        assert!(read_last(&log, None).is_err());
        for (name, text) in [("a.3.log", "one\n"), ("a.1.log", "two\n"), ("a.log", "three\n")] {
            fs::write(directory.path().join(name), text).unwrap();
        }
        for (bytes, text) in [
            (None, "one\ntwo\nthree\n"),
            (Some(0), ""),
            (Some(6), "three\n"),
            (Some(8), "o\nthree\n"),
            (Some(13), "ne\ntwo\nthree\n"),
            (Some(99), "one\ntwo\nthree\n"),
        ] {
            assert_eq!(read_last(&log, bytes).unwrap(), text.as_bytes(), "{bytes:?}");
        }
        // Its writer was killed before it made a new file.
        fs::remove_file(&log).unwrap();
        assert_eq!(read_last(&log, None).unwrap(), b"one\ntwo\n");
    }

    #[test]
    fn last_words_are_of_this_start() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("supervisor.log");
        assert!(last_words(&log, 0).contains("cannot be read"));
        fs::write(&log, "earlier\n").unwrap();
        assert_eq!(last_words(&log, 8), "its log is empty");
        fs::write(&log, "earlier\none\n\ntwo\n3\n4\n5\n6\n").unwrap();
        assert_eq!(last_words(&log, 8), "its log ends with: two; 3; 4; 5; 6");
        fs::write(&log, "x".repeat(100_000) + "\nthe end\n").unwrap();
        assert!(last_words(&log, 8).len() < 20_000 && last_words(&log, 8).ends_with("the end"));
        // A new file, since the one before was full.
        fs::write(&log, "new\n").unwrap();
        assert_eq!(last_words(&log, 100_000), "its log ends with: new");
        // One that never ends.
        assert!(last_words(Path::new("/dev/zero"), 0).len() < 20_000);
    }
}
