//! The directories on disk. Each call may be repeated, and may have been half done before.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::Error;

/// Every user in the pod may write; outside of pods only root gets past the directory above.
const VOLUME_MODE: u32 = 0o777;
const ROOT_MODE: u32 = 0o700;

/// Where the volumes' directories are.
#[derive(Debug, Clone)]
pub(super) struct Directories {
    root: PathBuf,
}

impl Directories {
    /// Makes the directory that holds them all, closed to other users.
    pub(super) fn open(root: &Path) -> Result<Self, Error> {
        fs::create_dir_all(root).map_err(failed("make", root))?;
        // Also one that was there: the volumes in it are open to everybody who gets this far.
        fs::set_permissions(root, fs::Permissions::from_mode(ROOT_MODE)).map_err(failed("close", root))?;
        Ok(Self { root: root.to_owned() })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Makes a volume's directory, or finds it made.
    pub(super) fn make(&self, name: &str) -> Result<(), Error> {
        let path = self.path(name);
        match fs::create_dir(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            result => result.map_err(failed("make", &path))?,
        }
        // Not with the creation: the process' umask would take its share.
        fs::set_permissions(&path, fs::Permissions::from_mode(VOLUME_MODE)).map_err(failed("open up", &path))
    }

    /// Removes a volume's directory with all that is in it. Links in it are removed, not followed.
    pub(super) fn remove(&self, name: &str) -> Result<(), Error> {
        let path = self.path(name);
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            result => result.map_err(failed("remove", &path)),
        }
    }

    /// Removes empty directories that are not among the known, and returns them. One with content is left alone: it
    /// was in use, and its claim is gone.
    pub(super) fn remove_leftovers(&self, known: &BTreeSet<String>) -> Result<Vec<String>, Error> {
        let mut removed = Vec::new();
        for entry in fs::read_dir(&self.root).map_err(failed("read", &self.root))? {
            let entry = entry.map_err(failed("read", &self.root))?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if !name.starts_with("pvc-") || known.contains(&name) {
                continue;
            }
            match fs::remove_dir(entry.path()) {
                Ok(()) => removed.push(name),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => {
                    let path = entry.path();
                    tracing::warn!(path = %path.display(), %error, "cannot remove a directory without a volume");
                }
            }
        }
        Ok(removed)
    }
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Directory { action, path, source }
}
