//! Checks what this host can do, before anything is created.

use std::{fs, path::Path};

use rustix::thread::{CapabilitySet, capabilities};

use crate::{
    cgroup::Hierarchies,
    error::{Doing, Error, Result, on},
};

/// Below this a machine's first log lines and containerd's database already fail.
const NEEDED_MEBIBYTES: u64 = 128;

/// Directories of the host's root that a merged /usr turns into links.
const MERGED: [&str; 4] = ["bin", "sbin", "lib", "lib64"];

/// Abilities that differ between hosts and that callers adapt to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abilities {
    /// `CAP_SYS_RESOURCE` is there. Without it nothing may lower `oom_score_adj`, and containerd must be told
    /// (`restrict_oom_score_adj`), or no pod starts.
    pub lower_oom_score: bool,
    /// The controllers are on the unified hierarchy (cgroup v2).
    pub cgroup_v2: bool,
}

/// Looks at the host.
pub fn abilities() -> Result<Abilities> {
    let sets = capabilities(None).doing(|| "read the capabilities of this process")?;
    let hierarchies = Hierarchies::discover()?;
    Ok(Abilities {
        lower_oom_score: sets.effective.contains(CapabilitySet::SYS_RESOURCE),
        cgroup_v2: hierarchies.is_unified(),
    })
}

/// Refuses hosts where a machine cannot work, with one reason. `state` need not exist yet: what counts is
/// the disk it will be on.
pub fn check(state: &Path) -> Result<()> {
    check_privileges()?;
    for name in MERGED {
        let path = Path::new("/").join(name);
        if fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_dir()) {
            return Err(Error::NotMergedUsr(path));
        }
    }
    Hierarchies::discover()?.check()?;
    check_disk(state)
}

/// Root with the two capabilities that everything here rests on.
pub fn check_privileges() -> Result<()> {
    let sets = capabilities(None).doing(|| "read the capabilities of this process")?;
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    if rustix::process::geteuid().is_root() && sets.effective.contains(needed) {
        Ok(())
    } else {
        Err(Error::NotRoot)
    }
}

fn check_disk(state: &Path) -> Result<()> {
    let existing = state.ancestors().find(|path| path.exists()).unwrap_or(state);
    let stat = rustix::fs::statvfs(existing).doing(|| on("look at the disk under", state))?;
    let free_mebibytes = stat.f_bavail.saturating_mul(stat.f_frsize) >> 20;
    if free_mebibytes < NEEDED_MEBIBYTES {
        return Err(Error::OutOfDisk {
            path: state.to_owned(),
            free_mebibytes,
            needed_mebibytes: NEEDED_MEBIBYTES,
        });
    }
    Ok(())
}
