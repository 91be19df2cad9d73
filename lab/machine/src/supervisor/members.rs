//! Finds the processes of a service: its own and whatever it started, also in the background or in a session of its
//! own.
//!
//! They are known by a control group of the service, which its process enters before it becomes the service and which
//! children inherit, as with systemd. The group tells processes apart and limits nothing:
//! - v1: in the `freezer` hierarchy, else in `pids`. Those that kubelet and cAdvisor account by (`cpu`, `memory`,
//!   `name=systemd`) stay as they are. Containers leave it: runc puts them into groups of their own in every hierarchy.
//! - v2: below the leaf that contains the machine's own processes, which enables no controllers for it.
//!
//! If no such group can be made, the service's process group is used instead: processes that leave it are not found.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions},
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::{
    cgroup::{LEAF, has_no_list},
    name::Name,
    root::CGROUP,
};

/// In a v1 hierarchy.
const GROUP: &str = "hangar-services";

/// The processes of one service.
pub(super) struct Members {
    group: Option<PathBuf>,
}

impl Members {
    pub(super) fn of(service: &Name) -> Self {
        let group = place(Path::new(CGROUP)).map(|place| place.join(service.as_str()));
        Self { group: group.filter(|group| fs::create_dir_all(group).is_ok()) }
    }

    /// Whether they can be told from others.
    pub(super) fn are_known(&self) -> bool {
        self.group.is_some()
    }

    /// A file to write `0` to: the writer becomes a member.
    pub(super) fn door(&self) -> io::Result<Option<File>> {
        let Some(group) = &self.group else { return Ok(None) };
        // Somebody may have removed it while nothing ran in it.
        fs::create_dir_all(group)?;
        OpenOptions::new().write(true).open(list_of(group)).map(Some)
    }

    /// Whether there are any. Not being able to look is no proof that there are none.
    pub(super) fn any(&self) -> bool {
        self.list().map_or(true, |found| !found.is_empty())
    }

    /// The current members but one, and no other process: each is pinned before it is looked up again.
    pub(super) fn pin_all_but(&self, one: Option<Pid>) -> Vec<OwnedFd> {
        let pin = |number: i32| {
            let pid = Pid::from_raw(number).filter(|pid| Some(*pid) != one)?;
            Some((number, pidfd_open(pid, PidfdFlags::empty()).ok()?))
        };
        let pinned: Vec<_> = self.list().unwrap_or_default().into_iter().filter_map(pin).collect();
        let still = self.list().unwrap_or_default();
        pinned.into_iter().filter(|(number, _)| still.contains(number)).map(|(_, pidfd)| pidfd).collect()
    }

    fn list(&self) -> io::Result<BTreeSet<i32>> {
        let Some(group) = &self.group else { return Ok(BTreeSet::new()) };
        match fs::read_to_string(list_of(group)) {
            Err(error) if has_no_list(&error) => Ok(BTreeSet::new()),
            text => Ok(text?.lines().filter_map(|line| line.parse().ok()).collect()),
        }
    }
}

fn list_of(group: &Path) -> PathBuf {
    group.join("cgroup.procs")
}

/// Where the groups of services are made.
fn place(mount: &Path) -> Option<PathBuf> {
    if mount.join("cgroup.controllers").exists() {
        return Some(mount.join(LEAF));
    }
    let hierarchies = ["freezer", "pids"].map(|name| mount.join(name));
    hierarchies.into_iter().find(|hierarchy| hierarchy.exists()).map(|hierarchy| hierarchy.join(GROUP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_a_place_on_every_host() {
        let mount = tempfile::tempdir().unwrap();
        let mount = mount.path();
        assert_eq!(place(mount), None);
        fs::create_dir(mount.join("pids")).unwrap();
        assert_eq!(place(mount), Some(mount.join("pids/hangar-services")));
        fs::create_dir(mount.join("freezer")).unwrap();
        assert_eq!(place(mount), Some(mount.join("freezer/hangar-services")));
        fs::write(mount.join("cgroup.controllers"), "cpu memory\n").unwrap();
        assert_eq!(place(mount), Some(mount.join("supervisor")));
    }
}
