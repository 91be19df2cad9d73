//! Links the programs that machines run into the environment.
//!
//! After a restart of the host a machine is started from the paths it was made with. The cache drops programs when pins
//! change; the environment keeps its links. The cache in turn keeps sets with a program that is linked, so an older
//! `hangar` need not build these again as long as its environment exists. Programs in images are not linked.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use hangar_parts::Cache;

use crate::error::{At, Result};
use crate::link;

/// Where an environment keeps them.
#[derive(Debug, Clone)]
pub struct LinkedPrograms<'a> {
    cache: &'a Cache,
    directory: PathBuf,
}

impl<'a> LinkedPrograms<'a> {
    /// Those of the cache, kept in this directory.
    pub fn new(cache: &'a Cache, directory: impl Into<PathBuf>) -> Self {
        Self { cache, directory: directory.into() }
    }

    /// The path that stays. A program that is not the cache's is its owner's business.
    pub fn keep(&self, program: &Path) -> Result<PathBuf> {
        let Ok(inside) = program.strip_prefix(self.cache.root().join("tools")) else {
            return Ok(program.to_owned());
        };
        // The first part is a set with version and hash: what is there is the same.
        let kept = self.directory.join(inside);
        if !kept.exists() {
            link::place(program, &kept)?;
        }
        Ok(kept)
    }

    /// The paths that stay of all programs in a directory.
    pub fn keep_all(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        let mut kept = Vec::new();
        for entry in fs::read_dir(directory).at("read", directory)? {
            let path = entry.at("read", directory)?.path();
            if path.is_file() {
                kept.push(self.keep(&path)?);
            }
        }
        kept.sort();
        Ok(kept)
    }

    /// Drops every set that none of these paths is in.
    pub fn forget_others<'p>(&self, used: impl Iterator<Item = &'p Path>) -> Result<()> {
        let set = |path: &'p Path| path.strip_prefix(&self.directory).ok()?.components().next();
        let used: BTreeSet<_> = used.filter_map(set).map(|set| set.as_os_str().to_owned()).collect();
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            if !used.contains(&entry.file_name()) {
                fs::remove_dir_all(entry.path()).at("remove", &entry.path())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(cache: &Cache, path: &str) -> PathBuf {
        let program = cache.root().join("tools").join(path);
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::write(&program, path).unwrap();
        program
    }

    #[test]
    fn a_program_outlives_the_cache() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path().join("cache"));
        let program = program(&cache, "set-v1-0123456789ab/bin/kubelet");
        let programs = LinkedPrograms::new(&cache, directory.path().join("cloud/programs"));
        let kept = programs.keep(&program).unwrap();
        assert_eq!(kept, programs.directory.join("set-v1-0123456789ab/bin/kubelet"));
        fs::remove_dir_all(cache.root()).unwrap();
        assert_eq!(fs::read_to_string(&kept).unwrap(), "set-v1-0123456789ab/bin/kubelet");
        assert_eq!(programs.keep(&program).unwrap(), kept, "it is there already");
        let own = directory.path().join("own/kubelet");
        assert_eq!(programs.keep(&own).unwrap(), own);
    }

    #[test]
    fn sets_that_nobody_uses_are_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path().join("cache"));
        let programs = LinkedPrograms::new(&cache, directory.path().join("kept"));
        programs.forget_others(std::iter::empty()).unwrap();
        let old = programs.keep(&program(&cache, "set-v1-0123456789ab/bin/kubelet")).unwrap();
        let bridge = program(&cache, "plugins-v1-0123456789ab/bin/bridge");
        let plugins = programs.keep_all(bridge.parent().unwrap()).unwrap();
        let new = programs.keep(&program(&cache, "set-v2-0123456789ab/bin/kubelet")).unwrap();
        let used = [new.as_path(), plugins[0].parent().unwrap(), Path::new("/usr/bin/true")];
        programs.forget_others(used.into_iter()).unwrap();
        assert!(!old.exists() && new.exists() && plugins[0].exists());
    }
}
