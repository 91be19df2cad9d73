//! The directory of image stores: who may change it, and what is removed from it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hangar_machine::{Environment, Name, SupervisorCommand};
use hangar_parts::Cache;

use super::free_mebibytes;
use crate::error::{At, Error, Result};

/// Beginning of the names of directories that stores are made in.
pub(super) const WORK: &str = ".building-";
/// The file of a store that is written last.
pub(super) const COMPLETE: &str = "complete";
/// Stores beyond these are removed, least recently used first, of each kind: one for each common choice of options.
const KEPT: usize = 3;
/// Room for a store of upstream's images while it is made.
pub(super) const NEEDED_MEBIBYTES: u64 = 4096;
/// Interval of tries to take a held lock.
const LOOK: Duration = Duration::from_millis(100);

/// Where stores lie.
pub(super) fn directory(cache: &Cache) -> PathBuf {
    cache.root().join("images")
}

/// The disk that making the first store takes, until there is one.
pub(crate) fn needed_mebibytes(cache: &Cache) -> u64 {
    let stores = fs::read_dir(directory(cache)).into_iter().flatten().flatten();
    let has_one = stores.map(|entry| entry.path()).any(|store| is_complete(&store));
    if has_one { 0 } else { NEEDED_MEBIBYTES }
}

pub(super) fn is_complete(store: &Path) -> bool {
    store.join(COMPLETE).exists()
}

/// No other process makes or removes stores as long as the value lives. `waiting` is called once if one does now.
pub(super) fn lock(parent: &Path, waiting: impl FnOnce()) -> Result<File> {
    let mut waiting = Some(waiting);
    loop {
        if let Some(lock) = try_lock(parent)? {
            return Ok(lock);
        }
        if let Some(waiting) = waiting.take() {
            waiting();
        }
        std::thread::sleep(LOOK);
    }
}

fn try_lock(parent: &Path) -> Result<Option<File>> {
    fs::create_dir_all(parent).at("create", parent)?;
    let path = parent.join(".lock");
    let file = File::options().create(true).append(true).open(&path).at("open", &path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(source)) => return Err(source).at("lock", &path),
    }
    // Somebody who freed disk by hand may have removed the file: then another one counts.
    let ours = file.metadata().at("read", &path)?;
    let is_current = fs::metadata(&path).is_ok_and(|current| current.ino() == ours.ino());
    Ok(is_current.then_some(file))
}

/// The environment of the throw-away machine. What the kernel knows of it is named after this very directory, so no two
/// makers meet, whatever cache they use.
pub(super) fn builder_environment(work: &Path, supervisor: &SupervisorCommand) -> Result<Environment> {
    Ok(Environment::new(work, Name::new("images")?, supervisor.clone())?)
}

/// Removes what killed makers left. Nothing is touched while one is at work.
pub fn remove_leftovers(cache: &Cache, supervisor: &SupervisorCommand) -> Result<()> {
    let parent = directory(cache);
    if !parent.exists() {
        return Ok(());
    }
    match try_lock(&parent)? {
        Some(_lock) => remove_leftovers_locked(&parent, supervisor),
        None => Ok(()),
    }
}

/// The lock is held. What is not complete now never will be.
pub(super) fn remove_leftovers_locked(parent: &Path, supervisor: &SupervisorCommand) -> Result<()> {
    for entry in fs::read_dir(parent).at("read", parent)? {
        let entry = entry.at("read", parent)?;
        let (name, path) = (entry.file_name(), entry.path());
        if name.to_string_lossy().starts_with(WORK) {
            builder_environment(&path, supervisor)?.delete_all()?;
            remove(&path)?;
        } else if path.is_dir() && !is_complete(&path) {
            remove(&path)?;
        }
    }
    Ok(())
}

/// Machines that were filled from a store keep their links: removing it costs them nothing.
pub(super) fn forget_oldest(parent: &Path) -> Result<()> {
    let (mut bases, mut others) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(parent).at("read", parent)? {
        let entry = entry.at("read", parent)?;
        let path = entry.path();
        if let Ok(used) = fs::metadata(path.join(COMPLETE)).and_then(|found| found.modified()) {
            let has_own = entry.file_name().to_string_lossy().contains('-');
            if has_own { &mut others } else { &mut bases }.push((used, path));
        }
    }
    for mut stores in [bases, others] {
        stores.sort();
        let surplus = stores.len().saturating_sub(KEPT);
        for (_, path) in stores.iter().take(surplus) {
            // The mark first: half a store must not count as one.
            let complete = path.join(COMPLETE);
            fs::remove_file(&complete).at("remove", &complete)?;
            remove(path)?;
        }
    }
    Ok(())
}

pub(super) fn check_disk(path: &Path, needed_mebibytes: u64) -> Result<()> {
    let free_mebibytes = free_mebibytes(path)?;
    if free_mebibytes >= needed_mebibytes {
        return Ok(());
    }
    Err(Error::OutOfDisk { path: path.to_owned(), free_mebibytes, needed_mebibytes })
}

pub(super) fn remove(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).at("remove", directory),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn store(parent: &Path, name: &str, age_seconds: Option<u64>) {
        let content = parent.join(name).join("content");
        fs::create_dir_all(&content).unwrap();
        fs::write(content.join("blob"), name).unwrap();
        if let Some(age) = age_seconds {
            let complete = File::create(parent.join(name).join(COMPLETE)).unwrap();
            complete.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
        }
    }

    fn names(parent: &Path) -> Vec<String> {
        let entries = fs::read_dir(parent).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names
    }

    #[test]
    fn half_a_store_is_removed_unless_somebody_is_at_work() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path());
        let parent = super::directory(&cache);
        let supervisor = SupervisorCommand::own("supervise");
        assert_eq!(needed_mebibytes(&cache), NEEDED_MEBIBYTES);
        remove_leftovers(&cache, &supervisor).unwrap();
        assert!(!parent.exists(), "a look made something");
        store(&parent, "whole", Some(0));
        store(&parent, "half", None);
        let lock = lock(&parent, || panic!("nobody holds it")).unwrap();
        remove_leftovers(&cache, &supervisor).unwrap();
        assert_eq!(names(&parent), ["half", "whole"]);
        drop(lock);
        remove_leftovers(&cache, &supervisor).unwrap();
        assert_eq!(names(&parent), ["whole"]);
        assert_eq!(needed_mebibytes(&cache), 0);
    }

    #[test]
    fn a_lock_that_was_removed_does_not_count() {
        let directory = tempfile::tempdir().unwrap();
        let first = lock(directory.path(), || ()).unwrap();
        assert!(try_lock(directory.path()).unwrap().is_none());
        fs::remove_file(directory.path().join(".lock")).unwrap();
        let second = try_lock(directory.path()).unwrap();
        drop(first);
        assert!(second.is_some() && try_lock(directory.path()).unwrap().is_none());
    }

    #[test]
    fn the_least_recently_used_of_each_kind_go() {
        let directory = tempfile::tempdir().unwrap();
        for (name, age) in [("a", 50), ("b", 40), ("c", 30), ("d", 20), ("a-1", 60), ("d-1", 70)] {
            store(directory.path(), name, Some(age));
        }
        forget_oldest(directory.path()).unwrap();
        assert_eq!(names(directory.path()), ["a-1", "b", "c", "d", "d-1"]);
    }
}
