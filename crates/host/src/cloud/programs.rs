//! Programs that servers run, linked into the environment.
//!
//! A server's machine is started again, after a restart of the host, from the paths it was made with. The cache forgets
//! programs when pins change; the environment keeps its links until it is removed.

use std::path::{Path, PathBuf};

use hangar_parts::Cache;

use crate::error::Result;
use crate::link;

/// Where an environment keeps them.
pub(super) struct Programs<'a> {
    pub(super) cache: &'a Cache,
    pub(super) directory: PathBuf,
}

impl Programs<'_> {
    /// The path that stays. A program that is not the cache's is its owner's business.
    pub(super) fn keep(&self, program: &Path) -> Result<PathBuf> {
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
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_program_outlives_the_cache() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path().join("cache"));
        let program = cache.root().join("tools/set-v1-0123456789ab/bin/kubelet");
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::write(&program, "kubelet").unwrap();
        let programs = Programs { cache: &cache, directory: directory.path().join("cloud/programs") };
        let kept = programs.keep(&program).unwrap();
        assert_eq!(kept, programs.directory.join("set-v1-0123456789ab/bin/kubelet"));
        fs::remove_dir_all(cache.root()).unwrap();
        assert_eq!(fs::read_to_string(&kept).unwrap(), "kubelet");
        assert_eq!(programs.keep(&program).unwrap(), kept, "it is there already");
        let own = directory.path().join("own/kubelet");
        assert_eq!(programs.keep(&own).unwrap(), own);
    }
}
