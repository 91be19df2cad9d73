//! Finds a program: in an override directory if one is named, else in the cache.
//!
//! Overrides are used as they are: their version is not checked. A program is searched as `<directory>/<set>/<program>`
//! and then as `<directory>/<program>`; the latter only for the sets that tests use by default, since several sets have
//! a program of the same name. A program that is in none of the override directories comes from the cache.

use std::path::{Path, PathBuf};

use crate::build::{self, BuildResult};
use crate::cache::{Cache, State};
use crate::error::{Error, Result};
use crate::progress::Audience;
use crate::sets::Set;

/// Our own override; wins over [`KUBEBUILDER_VARIABLE`].
pub const BIN_DIRECTORY_VARIABLE: &str = "HANGAR_BIN_DIR";

/// The override that envtest users have set already.
pub const KUBEBUILDER_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// The pinned programs of this machine.
#[derive(Debug, Clone)]
pub struct Parts {
    overrides: Vec<PathBuf>,
    cache: Cache,
    go: PathBuf,
}

impl Parts {
    /// With the cache and the overrides that the environment names.
    pub fn from_env() -> Result<Self> {
        let overrides = [BIN_DIRECTORY_VARIABLE, KUBEBUILDER_VARIABLE]
            .iter()
            .filter_map(std::env::var_os)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
            .collect();
        Ok(Self { overrides, ..Self::new(Cache::from_env()?) })
    }

    /// With the given cache and no overrides.
    pub fn new(cache: Cache) -> Self {
        Self { overrides: Vec::new(), cache, go: PathBuf::from("go") }
    }

    /// With these override directories, first wins.
    #[must_use]
    pub fn with_overrides(mut self, overrides: Vec<PathBuf>) -> Self {
        self.overrides = overrides;
        self
    }

    /// With this Go command instead of the one on the path.
    #[must_use]
    pub fn with_go(mut self, go: impl Into<PathBuf>) -> Self {
        self.go = go.into();
        self
    }

    /// The cache in use.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Builds what is missing of these sets, which may take minutes and is shown on standard error. A set all of whose
    /// programs are overridden, and that has no files, counts as there.
    pub fn ensure(&self, sets: &[Set]) -> Result<Vec<BuildResult>> {
        self.ensure_for(sets, &mut Audience::Everybody)
    }

    /// The same for callers with a display of their own: `tell` hears how it goes, a line at a time, every second on a
    /// terminal and every half a minute elsewhere.
    pub fn ensure_telling(&self, sets: &[Set], tell: &mut dyn FnMut(&str)) -> Result<Vec<BuildResult>> {
        self.ensure_for(sets, &mut Audience::Listener(tell))
    }

    fn ensure_for(&self, sets: &[Set], audience: &mut Audience<'_>) -> Result<Vec<BuildResult>> {
        let (overridden, needed): (Vec<Set>, Vec<Set>) =
            sets.iter().partition(|set| self.is_overridden(**set));
        let mut results: Vec<BuildResult> = overridden.into_iter().map(BuildResult::Present).collect();
        results.extend(build::ensure(&self.cache, &self.go, &needed, audience)?);
        Ok(results)
    }

    /// Refuses what [`Self::ensure`] would refuse before it starts: no Go, no C compiler where one is needed, too little
    /// disk. Nothing is written.
    pub fn check(&self, sets: &[Set]) -> Result<()> {
        let needed: Vec<Set> = sets.iter().copied().filter(|set| !self.is_overridden(*set)).collect();
        build::check(&self.cache, &self.go, &needed).map(drop)
    }

    /// Builds only those sets of which a named program is found neither in an override nor in the cache. This
    /// is what a test wants that runs with `KUBEBUILDER_ASSETS`, which has three programs and no more.
    pub fn ensure_programs(&self, programs: &[(Set, &str)]) -> Result<Vec<BuildResult>> {
        let mut sets = Vec::new();
        for &(set, program) in programs {
            match self.program(set, program) {
                Ok(_) => {}
                Err(Error::NotBuilt { .. }) if sets.contains(&set) => {}
                Err(Error::NotBuilt { .. }) => sets.push(set),
                Err(error) => return Err(error),
            }
        }
        build::ensure(&self.cache, &self.go, &sets, &mut Audience::Everybody)
    }

    /// The path of a program. Never builds.
    pub fn program(&self, set: Set, name: &str) -> Result<PathBuf> {
        let recipe = set.recipe();
        if !recipe.has_program(name) {
            return Err(Error::UnknownProgram { set, program: name.to_owned() });
        }
        if let Some(path) = self.override_of(set, name) {
            return Ok(path);
        }
        match self.cache.stamp(recipe) {
            Some(_) => Ok(self.cache.program(recipe, name)),
            None => Err(Error::NotBuilt { set, what: name.to_owned() }),
        }
    }

    /// The directory with the set's files. Never builds.
    pub fn files(&self, set: Set) -> Result<PathBuf> {
        let recipe = set.recipe();
        match self.cache.stamp(recipe) {
            Some(_) => Ok(self.cache.set_directory(recipe).join("files")),
            None => Err(Error::NotBuilt { set, what: format!("the content of {set}") }),
        }
    }

    /// How far the set is in the cache, whatever the overrides say.
    pub fn state(&self, set: Set) -> State {
        self.cache.state(set)
    }

    /// Whether overrides make the cache unnecessary for this set.
    pub fn is_overridden(&self, set: Set) -> bool {
        let recipe = set.recipe();
        let is_covered = |name| self.override_of(set, name).is_some();
        !recipe.programs.is_empty()
            && recipe.files.is_empty()
            && recipe.programs.iter().all(|program| is_covered(program.name))
    }

    fn override_of(&self, set: Set, name: &str) -> Option<PathBuf> {
        let candidates = |directory: &Path| {
            let of_set = directory.join(set.name()).join(name);
            let flat = set.takes_flat_override().then(|| directory.join(name));
            std::iter::once(of_set).chain(flat).find(|path| path.is_file())
        };
        self.overrides.iter().find_map(|directory| candidates(directory))
    }
}

#[cfg(test)]
mod tests;
