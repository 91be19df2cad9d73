//! One lock per machine and per fabric, held while kernel objects are made or removed.
//!
//! The lock is a flock on a file in the directory of its machine or fabric. It belongs to the open file, so a child
//! that inherits the file holds it too: the first process of a machine keeps it until it is fully up, even when the
//! creator was killed. So a process that deletes and holds the lock knows that no creation is under way.
//!
//! The lock is the last file of its directory to be removed: as long as anything else is there, so is the lock.

use std::{
    fs::{self, File, OpenOptions},
    io,
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
        meanwhile: impl FnMut() -> Result<()>,
    ) -> Result<Self> {
        wait(directory, patience, meanwhile, || {
            match fs::create_dir_all(directory) {
                // Somebody removed an empty parent in between.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                made => made.doing(|| on("create", directory))?,
            }
            match Self::open(directory, true)? {
                Some(file) => Self::try_lock(directory, file),
                None => Ok(None),
            }
        })
    }

    /// Takes the lock of something that is there; `None` when it is not, or no more once the lock is free. Nothing is
    /// made: who waits for a deleter must not bring the directory back.
    pub(crate) fn acquire_existing(directory: &Path, patience: Duration) -> Result<Option<Self>> {
        wait(
            directory,
            patience,
            || Ok(()),
            || match Self::open(directory, false)? {
                Some(file) => Ok(Self::try_lock(directory, file)?.map(Some)),
                None => Ok(Some(None)),
            },
        )
    }

    /// `None` when the file or its directory is not there (any more).
    fn open(directory: &Path, create: bool) -> Result<Option<File>> {
        let path = Self::path(directory);
        let opened = OpenOptions::new().create(create).truncate(false).read(true).write(true).open(&path);
        match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some).doing(|| on("open", &path)),
        }
    }

    fn try_lock(directory: &Path, file: File) -> Result<Option<Self>> {
        let path = Self::path(directory);
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

    /// Whether the lock is held now.
    pub(crate) fn is_held(directory: &Path) -> Result<bool> {
        let path = Self::path(directory);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            file => file.doing(|| on("open", &path))?,
        };
        // Shared, so that two who look do not take each other for a holder.
        let shared = rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared);
        Ok(matches!(shared, Err(Errno::WOULDBLOCK)))
    }

    fn path(directory: &Path) -> PathBuf {
        directory.join("lock")
    }

    /// Another handle on the same lock, for a child to inherit.
    pub(crate) fn share(&self) -> Result<File> {
        self.file.try_clone().doing(|| "share the lock")
    }

    /// Removes everything in a directory but its lock, which the caller holds.
    pub(crate) fn clear_directory(directory: &Path) -> Result<()> {
        let entries = match fs::read_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries.doing(|| on("list", directory))?,
        };
        for entry in entries {
            let entry = entry.doing(|| on("list", directory))?;
            let path = entry.path();
            if path == Self::path(directory) {
                continue;
            }
            let is_directory = entry.file_type().doing(|| on("look at", &path))?.is_dir();
            gone(if is_directory { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }, &path)?;
        }
        Ok(())
    }

    /// Removes a directory and all in it, the lock last: who comes before that waits for us, who comes after makes a
    /// directory of its own, which stays.
    pub(crate) fn remove_directory(directory: &Path) -> Result<()> {
        Self::clear_directory(directory)?;
        let path = Self::path(directory);
        gone(fs::remove_file(&path), &path)?;
        match fs::remove_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            removed => gone(removed, directory),
        }
    }
}

fn wait<T>(
    directory: &Path,
    patience: Duration,
    mut meanwhile: impl FnMut() -> Result<()>,
    mut attempt: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(done) = attempt()? {
            return Ok(done);
        }
        if Instant::now() >= deadline {
            return Err(Error::Busy(directory.to_owned()));
        }
        meanwhile()?;
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn gone(removed: io::Result<()>, path: &Path) -> Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.doing(|| on("remove", path)),
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
        assert!(Lock::is_held(directory.path()).unwrap());
        assert!(matches!(at_once(directory.path()), Err(Error::Busy(_))));
        let shared = lock.share().unwrap();
        drop(lock);
        assert!(Lock::is_held(directory.path()).unwrap(), "a shared handle keeps the lock");
        drop(shared);
        assert!(!Lock::is_held(directory.path()).unwrap());
        at_once(directory.path()).unwrap();
    }

    #[test]
    fn waiting_for_a_deleter_brings_nothing_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("machine");
        let existing = || Lock::acquire_existing(&path, Duration::ZERO);
        assert!(existing().unwrap().is_none());
        assert!(!path.exists(), "looking made the directory");
        let lock = at_once(&path).unwrap();
        assert!(matches!(existing(), Err(Error::Busy(_))));
        drop(lock);
        let lock = existing().unwrap().unwrap();
        fs::create_dir_all(path.join("overlay/etc")).unwrap();
        fs::write(path.join("machine.json"), "{}").unwrap();
        Lock::clear_directory(&path).unwrap();
        let left: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["lock"], "the lock goes last");
        assert!(Lock::is_held(&path).unwrap());
        Lock::remove_directory(&path).unwrap();
        assert!(!path.exists());
        Lock::remove_directory(&path).unwrap();
        drop(lock);
        assert!(existing().unwrap().is_none());
    }

    #[test]
    fn a_removed_directory_is_made_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("machine");
        let lock = at_once(&path).unwrap();
        fs::remove_dir_all(&path).unwrap();
        assert!(!Lock::is_held(&path).unwrap());
        let second = at_once(&path).unwrap();
        assert!(Lock::is_held(&path).unwrap());
        drop((lock, second));
    }
}
