//! The cache of finished sets, and what makes a set count as finished.
//!
//! ```text
//! <cache>/tools/<set>-<version>-<fingerprint>/bin/<program>     finished, never changed again
//!                                             files/…
//!                                             complete.json     written last
//! <cache>/tools/.staging-<set>/                                 being filled; renamed when complete
//! <cache>/tools/.lock-<set>                                     one builder per set and machine
//! <cache>/go/<set>/{module,build,mod,tmp}                       Go's own caches, dropped when the set is done
//! ```
//!
//! The rename is the commit: a build that is killed leaves a staging directory and warm Go caches, and the next run
//! continues from there. Files are synced before the rename, so that a crash of the host leaves no finished set with
//! empty files. Locks are advisory file locks: they are held by the builder and by the `go` it started, which may
//! outlive it and still write.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{Context, Error, Result};
use crate::sets::{Recipe, Set};

/// Names the cache directory; see [`Cache::from_env`].
pub const CACHE_VARIABLE: &str = "HANGAR_CACHE";

const STAMP: &str = "complete.json";

/// Interval of tries to take a held lock.
const LOOK: Duration = Duration::from_millis(200);

/// What is known about a finished set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// The set's name.
    pub set: String,
    /// The version of its module.
    pub version: String,
    /// The Go that built it, as it names itself.
    pub go: String,
    /// How long it took.
    pub seconds: u64,
    /// How large the programs and files are.
    pub bytes: u64,
}

/// How far a set is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    Absent,
    /// A build began and was interrupted, or runs right now; the next one goes on from there.
    Unfinished,
    Complete(Stamp),
}

/// The directory that holds everything built.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// A cache in the given directory, which need not exist.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// `HANGAR_CACHE`, else `hangar` in the user's cache directory.
    pub fn from_env() -> Result<Self> {
        Self::from_variables(|name| std::env::var_os(name).map(PathBuf::from))
    }

    pub(crate) fn from_variables(variable: impl Fn(&str) -> Option<PathBuf>) -> Result<Self> {
        let given = |name: &str| variable(name).filter(|path| !path.as_os_str().is_empty());
        let root = given(CACHE_VARIABLE)
            // The XDG specification: relative paths are invalid and to be ignored.
            .or_else(|| {
                given("XDG_CACHE_HOME").filter(|path| path.is_absolute()).map(|path| path.join("hangar"))
            })
            .or_else(|| given("HOME").map(|path| path.join(".cache/hangar")))
            .ok_or(Error::NoCacheDirectory)?;
        // Go refuses relative cache paths, and a caller may change its directory.
        let root = std::path::absolute(&root).context("resolve", &root)?;
        Ok(Self::new(root))
    }

    /// The cache's own directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the finished set lies, or will lie.
    pub fn set_directory(&self, recipe: &Recipe) -> PathBuf {
        self.tools().join(recipe.directory_name())
    }

    /// Where a program of the finished set lies, or will lie.
    pub fn program(&self, recipe: &Recipe, name: &str) -> PathBuf {
        self.set_directory(recipe).join("bin").join(name)
    }

    /// How far the set is. Cheap: a few file system lookups.
    pub fn state(&self, set: Set) -> State {
        let recipe = set.recipe();
        if let Some(stamp) = self.stamp(recipe) {
            State::Complete(stamp)
        } else if self.staging(recipe).exists() || self.go_directory(recipe).exists() {
            State::Unfinished
        } else {
            State::Absent
        }
    }

    pub(crate) fn stamp(&self, recipe: &Recipe) -> Option<Stamp> {
        let directory = self.set_directory(recipe);
        let text = fs::read(directory.join(STAMP)).ok()?;
        let stamp = serde_json::from_slice(&text).ok()?;
        // Somebody who frees disk by hand deletes the large files first.
        let is_whole =
            recipe.programs.iter().all(|program| directory.join("bin").join(program.name).is_file());
        is_whole.then_some(stamp)
    }

    fn tools(&self) -> PathBuf {
        self.root.join("tools")
    }

    pub(crate) fn staging(&self, recipe: &Recipe) -> PathBuf {
        self.tools().join(format!(".staging-{}", recipe.name))
    }

    pub(crate) fn go_directory(&self, recipe: &Recipe) -> PathBuf {
        self.root.join("go").join(recipe.name)
    }

    /// Waits until no other process builds the set. `waiting` is called again and again meanwhile.
    pub(crate) fn lock(&self, recipe: &Recipe, mut waiting: impl FnMut()) -> Result<SetLock> {
        loop {
            if let Some(lock) = self.try_lock(recipe)? {
                return Ok(lock);
            }
            waiting();
            thread::sleep(LOOK);
        }
    }

    fn try_lock(&self, recipe: &Recipe) -> Result<Option<SetLock>> {
        let tools = self.tools();
        fs::create_dir_all(&tools).context("create", &tools)?;
        let path = tools.join(format!(".lock-{}", recipe.name));
        let file = File::options().create(true).read(true).append(true).open(&path).context("open", &path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(SetLock { file })),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(source)) => Err(source).context("lock", &path),
        }
    }

    /// Removes what a builder that was killed right after its commit left: gigabytes that are no longer needed.
    pub(crate) fn drop_leftovers(&self, recipe: &Recipe) -> Result<()> {
        let leftovers = [self.go_directory(recipe), self.staging(recipe)];
        if self.stamp(recipe).is_none() || !leftovers.iter().any(|path| path.exists()) {
            return Ok(());
        }
        if let Some(_lock) = self.try_lock(recipe)?
            && self.stamp(recipe).is_some()
        {
            leftovers.iter().try_for_each(|path| remove_directory(path))?;
        }
        Ok(())
    }

    /// An empty staging directory.
    pub(crate) fn begin(&self, recipe: &Recipe, _lock: &SetLock) -> Result<PathBuf> {
        let staging = self.staging(recipe);
        remove_directory(&staging)?;
        fs::create_dir_all(&staging).context("create", &staging)?;
        Ok(staging)
    }

    /// Makes the staged set the finished one, and drops what it replaces and what its build needed.
    pub(crate) fn commit(&self, recipe: &Recipe, stamp: &Stamp, _lock: &SetLock) -> Result<()> {
        let staging = self.staging(recipe);
        let stamp_path = staging.join(STAMP);
        let text = serde_json::to_vec_pretty(stamp).map_err(io::Error::from).context("write", &stamp_path)?;
        fs::write(&stamp_path, text).context("write", &stamp_path)?;
        write_through(&staging)?;
        let directory = self.set_directory(recipe);
        // Only there if somebody deleted files out of it.
        remove_directory(&directory)?;
        fs::rename(&staging, &directory).context("rename", &staging)?;
        self.remove_superseded(recipe)?;
        remove_directory(&self.go_directory(recipe))
    }

    /// Removes builds of the same set from other pins or recipes, except those in use. Who does has hard links
    /// to programs of theirs: such a link needs no record that could be wrong, and goes with its owner.
    fn remove_superseded(&self, recipe: &Recipe) -> Result<()> {
        let tools = self.tools();
        let current = recipe.directory_name();
        // Everything after the set's name must be a version, else `kube-vip` would take `kube-vip-cloud-provider`.
        let prefix = format!("{}-v", recipe.name);
        for entry in fs::read_dir(&tools).context("read", &tools)? {
            let entry = entry.context("read", &tools)?;
            let name = entry.file_name();
            let is_other = name.to_str().is_some_and(|name| name.starts_with(&prefix) && name != current);
            if is_other && !is_used(&entry.path()) {
                remove_directory(&entry.path())?;
            }
        }
        Ok(())
    }
}

/// Held while a set is built. Dropping it, or dying, releases it, once those it is shared with have ended too.
#[derive(Debug)]
pub(crate) struct SetLock {
    file: File,
}

impl SetLock {
    /// Another handle on the same lock, for a child to inherit.
    pub(crate) fn share(&self) -> Result<File> {
        self.file.try_clone().context("share", Path::new("the lock"))
    }
}

/// Everything that was written so far to the file system of a path is on its disk afterwards.
pub(crate) fn write_through(path: &Path) -> Result<()> {
    let directory = File::open(path).context("open", path)?;
    rustix::fs::syncfs(&directory).map_err(io::Error::from).context("write to disk", path)
}

/// Whether a program of the set in this directory is linked from elsewhere.
fn is_used(set: &Path) -> bool {
    let programs = fs::read_dir(set.join("bin")).into_iter().flatten().flatten();
    programs.filter_map(|entry| entry.metadata().ok()).any(|found| found.is_file() && found.nlink() > 1)
}

/// Removes a directory that may not exist.
pub(crate) fn remove_directory(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).context("remove", path),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
