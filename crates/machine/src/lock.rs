//! One lock per machine and per fabric, held while kernel objects are made or removed.
//!
//! The lock is a flock on a file in the directory of its thing. It belongs to the open file, so a child that
//! inherits the file holds it too: the first process of a machine keeps it until it is fully up, even when the
//! creator was killed. That is what lets a deleter know that nobody is still making something.

use std::{
    fs::{self, File, OpenOptions},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::{fs::FlockOperation, io::Errno};

use crate::error::{Doing, Error, Result, on};

/// An acquired lock.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock of `directory`, making the directory if it is missing. Calls `meanwhile` while it waits.
    pub(crate) fn acquire(
        directory: &Path,
        patience: Duration,
        mut meanwhile: impl FnMut() -> Result<()>,
    ) -> Result<Self> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(lock) = Self::try_acquire(directory)? {
                return Ok(lock);
            }
            if Instant::now() >= deadline {
                return Err(Error::Busy(directory.to_owned()));
            }
            meanwhile()?;
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn try_acquire(directory: &Path) -> Result<Option<Self>> {
        fs::create_dir_all(directory).doing(|| on("create", directory))?;
        let path = Self::path(directory);
        let opened = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&path);
        let file = match opened {
            Ok(file) => file,
            // A deleter removed the directory in between.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).doing(|| on("open", &path)),
        };
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(error) => return Err(error).doing(|| on("lock", &path)),
        }
        // A deleter may have unlinked the file between our open and our flock: then we locked nothing.
        let (ours, current) = (file.metadata(), fs::metadata(&path));
        let same = match (ours, current) {
            (Ok(ours), Ok(current)) => ours.ino() == current.ino() && ours.dev() == current.dev(),
            _ => false,
        };
        Ok(same.then_some(Self { file }))
    }

    /// Whether somebody holds the lock now.
    pub(crate) fn is_held(directory: &Path) -> bool {
        let Ok(file) = File::open(Self::path(directory)) else {
            return false;
        };
        // Shared, so that two who look do not take each other for a holder.
        matches!(rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared), Err(Errno::WOULDBLOCK))
    }

    fn path(directory: &Path) -> PathBuf {
        directory.join("lock")
    }

    /// Another handle on the same lock, for a child to inherit.
    pub(crate) fn share(&self) -> Result<File> {
        self.file.try_clone().doing(|| "share the lock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_once(directory: &Path) -> Result<Lock> {
        Lock::acquire(directory, Duration::ZERO, || Ok(()))
    }

    #[test]
    fn one_holder_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let lock = at_once(directory.path()).unwrap();
        assert!(Lock::is_held(directory.path()));
        assert!(matches!(at_once(directory.path()), Err(Error::Busy(_))));
        let shared = lock.share().unwrap();
        drop(lock);
        assert!(Lock::is_held(directory.path()), "a shared handle keeps the lock");
        drop(shared);
        assert!(!Lock::is_held(directory.path()));
        at_once(directory.path()).unwrap();
    }

    #[test]
    fn a_removed_directory_is_made_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("machine");
        let lock = at_once(&path).unwrap();
        fs::remove_dir_all(&path).unwrap();
        assert!(!Lock::is_held(&path));
        let second = at_once(&path).unwrap();
        assert!(Lock::is_held(&path));
        drop((lock, second));
    }
}
