//! The lock of an environment: one process at a time changes it. The lock is on a file in the environment's directory,
//! and the kernel releases it however the process that holds it ends.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::{At, Error, Result};

/// Takes the lock of a directory, which is made if it is missing.
pub(crate) fn acquire(directory: &Path, patience: Duration) -> Result<File> {
    let path = directory.join("lock");
    let deadline = Instant::now() + patience;
    loop {
        fs::create_dir_all(directory).at("create", directory)?;
        let opened = match File::options().create(true).append(true).open(&path) {
            // `down` removed the directory in between.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            opened => Some(opened.at("open", &path)?),
        };
        if let Some(file) = opened.filter(|file| file.try_lock().is_ok()) {
            // `down` removes the file while it holds the lock: then another one counts.
            let ours = file.metadata().at("read", &path)?;
            if fs::metadata(&path).is_ok_and(|current| current.ino() == ours.ino()) {
                return Ok(file);
            }
        }
        if Instant::now() >= deadline {
            return Err(Error::Busy { directory: directory.to_owned() });
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_also_after_a_removal() {
        let directory = tempfile::tempdir().unwrap();
        let environment = directory.path().join("environment");
        let first = acquire(&environment, Duration::ZERO).unwrap();
        assert!(matches!(acquire(&environment, Duration::ZERO), Err(Error::Busy { .. })));
        fs::remove_dir_all(&environment).unwrap();
        let second = acquire(&environment, Duration::ZERO).unwrap();
        drop(first);
        assert!(matches!(acquire(&environment, Duration::ZERO), Err(Error::Busy { .. })));
        drop(second);
        acquire(&environment, Duration::ZERO).unwrap();
    }

    #[test]
    fn what_cannot_be_opened_is_not_taken_for_busy() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("lock")).unwrap();
        let refused = acquire(directory.path(), Duration::ZERO);
        assert!(matches!(refused, Err(Error::File { action: "open", .. })), "{refused:?}");
    }
}
