//! What a machine's services wrote. The files are on the host, so a stopped machine still tells.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use super::Machine;
use crate::error::{Doing, Error, Result, on};

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
    /// The log files by name without ending: one per service, and `supervisor`.
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

    /// The last `bytes` of a log, or all of it.
    pub fn logs(&self, name: &str, bytes: Option<u64>) -> Result<String> {
        let files = self.log_files()?;
        let path = files.get(name).ok_or_else(|| {
            let known: Vec<&str> = files.keys().map(String::as_str).collect();
            Error::Invalid(format!("machine {} has no log {name:?}, only: {}", self.name, known.join(", ")))
        })?;
        let mut file = File::open(path).doing(|| on("open", path))?;
        let length = file.metadata().doing(|| on("read", path))?.len();
        if let Some(bytes) = bytes {
            file.seek(SeekFrom::Start(length.saturating_sub(bytes))).doing(|| on("read", path))?;
        }
        let mut content = Vec::new();
        file.read_to_end(&mut content).doing(|| on("read", path))?;
        Ok(String::from_utf8_lossy(&content).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // One that never ends.
        assert!(last_words(Path::new("/dev/zero"), 0).len() < 20_000);
    }
}
