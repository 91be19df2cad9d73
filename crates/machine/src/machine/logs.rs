//! What a machine's services wrote. The files are on the host, so a stopped machine still tells.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    path::PathBuf,
};

use super::Machine;
use crate::error::{Doing, Error, Result, on};

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
