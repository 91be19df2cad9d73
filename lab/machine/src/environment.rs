//! An environment: everything that belongs together under one name and one state directory.
//!
//! ```text
//! <state>/<environment>/machines/<name>/   see `record`
//! <state>/<environment>/fabrics/<name>/    lock, fabric.json, relay.json and relay.log where there is a way out
//! /run/hangar/<environment>-<tag>/netns/   mounted network namespaces
//! ```
//!
//! Any process that knows the state directory and the name can list and remove what is in it.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    error::{Doing, Result, on},
    name::{EnvironmentIdentity, Name},
    net::nft::Nft,
};

/// How this crate starts its own processes: the program and arguments that reach [`crate::supervise_main`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupervisorCommand {
    pub program: PathBuf,
    /// What comes before this crate's own arguments.
    pub arguments: Vec<OsString>,
}

impl SupervisorCommand {
    /// The running program itself, with a (hidden) subcommand that calls [`crate::supervise_main`].
    pub fn own(subcommand: impl Into<OsString>) -> Self {
        Self { program: PathBuf::from("/proc/self/exe"), arguments: vec![subcommand.into()] }
    }
}

/// A place for machines and their networks.
#[derive(Debug, Clone)]
pub struct Environment {
    state: PathBuf,
    identity: EnvironmentIdentity,
    supervisor: SupervisorCommand,
    nft: Nft,
}

impl Environment {
    /// Names an environment; nothing is made yet.
    pub fn new(state: impl AsRef<Path>, name: Name, supervisor: SupervisorCommand) -> Result<Self> {
        let state = resolve(state.as_ref())?;
        let identity = EnvironmentIdentity::new(&state, name);
        Ok(Self { state, identity, supervisor, nft: Nft::default() })
    }

    /// Uses this `nft` instead of the one in `PATH`.
    #[must_use]
    pub fn with_nft(mut self, nft: Nft) -> Self {
        self.nft = nft;
        self
    }

    pub(crate) fn nft(&self) -> &Nft {
        &self.nft
    }

    pub fn name(&self) -> &Name {
        &self.identity.environment
    }

    /// The state directory, with links resolved.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// The environment's own directory below the state directory.
    pub fn directory(&self) -> PathBuf {
        self.state.join(self.name().as_str())
    }

    pub(crate) fn identity(&self) -> &EnvironmentIdentity {
        &self.identity
    }

    pub(crate) fn supervisor(&self) -> &SupervisorCommand {
        &self.supervisor
    }

    pub(crate) fn names_in(&self, kind: &str) -> Result<Vec<Name>> {
        let directory = self.directory().join(kind);
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).doing(|| on("list", &directory)),
        };
        let mut names: Vec<Name> =
            entries.flatten().filter_map(|entry| Name::new(entry.file_name().to_str()?).ok()).collect();
        names.sort();
        Ok(names)
    }

    /// Removes directories that became empty. Others may be filling them: what is not empty stays.
    pub(crate) fn tidy(&self) {
        let netns = self.identity.netns_directory();
        let directory = self.directory();
        let candidates = [
            Some(directory.join("machines")),
            Some(directory.join("fabrics")),
            Some(directory),
            netns.parent().and_then(Path::parent).map(Path::to_owned),
        ];
        let _ = fs::remove_dir(&netns);
        let _ = netns.parent().map(fs::remove_dir);
        for candidate in candidates.into_iter().flatten() {
            let _ = fs::remove_dir(candidate);
        }
    }
}

/// The canonical path, also when its end does not exist yet: it must be the same before and after.
fn resolve(path: &Path) -> Result<PathBuf> {
    let absolute = std::path::absolute(path).doing(|| on("resolve", path))?;
    let mut missing = Vec::new();
    let mut existing = absolute.as_path();
    loop {
        match fs::canonicalize(existing) {
            Ok(mut resolved) => {
                resolved.extend(missing.iter().rev());
                return Ok(resolved);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).doing(|| on("resolve", path)),
        }
        let (Some(name), Some(parent)) = (existing.file_name(), existing.parent()) else {
            return Ok(absolute);
        };
        missing.push(name);
        existing = parent;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_resolve_the_same_before_and_after() {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().join("real");
        fs::create_dir(&real).unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let state = link.join("a/b");
        let before = resolve(&state).unwrap();
        fs::create_dir_all(&state).unwrap();
        assert_eq!(before, resolve(&state).unwrap());
        assert_eq!(before, fs::canonicalize(real).unwrap().join("a/b"));
    }
}
