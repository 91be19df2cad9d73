//! The control groups of a machine: one group of the same name in every hierarchy of the host.
//!
//! - v1: one hierarchy per controller (or per few); the machine's processes are in the group itself.
//! - v2: a group with children must contain no processes, so the machine's first process and everything run by hand are
//!   in the leaf `supervisor`, and kubelet makes its groups beside it.
//! - Hybrid hosts have both; the v2 side then only tracks processes.
//!
//! On v2 a controller reaches a group only if every group above enables it for those below. So the controllers that
//! kubelet needs are enabled in the host's root group where they are not. They stay enabled when the last machine is
//! gone, because others may use them by then.
//!
//! Membership is also how a machine's processes are found when nothing else is known: the launcher enters the group
//! before it makes anything. Groups are made anew at each start, because a v2 group that already has children with
//! controllers cannot be entered.

mod hierarchy;

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};

pub(crate) use self::hierarchy::{Hierarchies, Hierarchy, Version};
use crate::error::{Doing, Error, Result, on};

/// Where the machine's own processes live on v2.
pub(crate) const LEAF: &str = "supervisor";
/// What kubelet and containers use of v2; those the host has are handed down.
const HANDED_DOWN: [&str; 6] = ["cpu", "cpuset", "io", "memory", "pids", "hugetlb"];

/// The group of one machine, whether it exists or not.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    hierarchies: Hierarchies,
    name: String,
}

impl Group {
    pub(crate) fn new(hierarchies: Hierarchies, name: impl Into<String>) -> Self {
        Self { hierarchies, name: name.into() }
    }

    fn directories(&self) -> impl Iterator<Item = (&Hierarchy, PathBuf)> {
        self.hierarchies.all.iter().map(|hierarchy| (hierarchy, hierarchy.mount.join(&self.name)))
    }

    /// Whether any hierarchy has the group.
    pub(crate) fn exists(&self) -> bool {
        self.directories().any(|(_, directory)| directory.exists())
    }

    /// Makes the group in every hierarchy.
    pub(crate) fn create(&self) -> Result<()> {
        let unified = self.hierarchies.is_unified();
        for (hierarchy, directory) in self.directories() {
            if unified && hierarchy.version == Version::Two {
                hand_down(&hierarchy.mount)?;
            }
            match fs::create_dir(&directory) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => made.doing(|| on("create the control group", &directory))?,
            }
            if hierarchy.has("cpuset") && hierarchy.version == Version::One {
                // A v1 cpuset starts empty, and nothing may enter it before it has processors and memory.
                for file in ["cpuset.cpus", "cpuset.mems"] {
                    let from = hierarchy.mount.join(file);
                    let value = fs::read_to_string(&from).doing(|| on("read", &from))?;
                    let to = directory.join(file);
                    fs::write(&to, value.trim()).doing(|| on("write", &to))?;
                }
            }
        }
        Ok(())
    }

    /// Moves the calling process into the group, as the root of its coming control group namespace.
    pub(crate) fn enter(&self) -> Result<()> {
        for (_, directory) in self.directories() {
            enter(&directory)?;
        }
        Ok(())
    }

    /// Moves the calling process to where it stays. On v2 this also hands the controllers down.
    pub(crate) fn settle(&self) -> Result<()> {
        if !self.hierarchies.is_unified() {
            return Ok(());
        }
        for (_, directory) in self.directories().filter(|(hierarchy, _)| hierarchy.version == Version::Two) {
            let leaf = directory.join(LEAF);
            fs::create_dir_all(&leaf).doing(|| on("create the control group", &leaf))?;
            enter(&leaf)?;
            hand_down(&directory)?;
        }
        Ok(())
    }

    /// Moves the calling process beside the processes of a running machine.
    pub(crate) fn visit(&self) -> Result<()> {
        for (hierarchy, directory) in self.directories() {
            let leaf = directory.join(LEAF);
            let unified = hierarchy.version == Version::Two && self.hierarchies.is_unified();
            enter(if unified { &leaf } else { &directory })?;
        }
        Ok(())
    }

    /// Every process in the group or below, by the host's numbers.
    pub(crate) fn processes(&self) -> Result<BTreeSet<i32>> {
        let mut found = BTreeSet::new();
        for (_, directory) in self.directories() {
            for below in tree(&directory).doing(|| on("list", &directory))? {
                let file = below.join("cgroup.procs");
                let text = match fs::read_to_string(&file) {
                    Err(error) if has_no_list(&error) => continue,
                    text => text.doing(|| on("read", &file))?,
                };
                // 0 stands for a process that this process namespace cannot see.
                found.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()).filter(|pid| *pid > 0));
            }
        }
        Ok(found)
    }

    /// Lets frozen processes go on, such as those of a container that was paused. On v1 they do not end before, however
    /// often they are killed, and a machine's first process waits for all others when it ends.
    pub(crate) fn thaw(&self) {
        let is_freezer = |one: &Hierarchy| one.version == Version::One && one.has("freezer");
        for (_, directory) in self.directories().filter(|(hierarchy, _)| is_freezer(hierarchy)) {
            for below in tree(&directory).unwrap_or_default() {
                let _ = fs::write(below.join("freezer.state"), "THAWED");
            }
        }
    }

    /// Sends SIGKILL to everything in the group. Nothing else can be hit: each process is pinned, then checked.
    pub(crate) fn kill(&self) -> Result<()> {
        self.thaw();
        for (hierarchy, directory) in self.directories() {
            if hierarchy.version == Version::Two {
                // Missing before Linux 5.14; the loop below does the same, only not at one instant.
                let _ = fs::write(directory.join("cgroup.kill"), "1");
            }
        }
        for number in self.processes()? {
            let Some(pid) = Pid::from_raw(number) else {
                continue;
            };
            let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else {
                continue;
            };
            if self.holds(number) {
                let _ = pidfd_send_signal(&pidfd, Signal::KILL);
            }
        }
        Ok(())
    }

    fn holds(&self, pid: i32) -> bool {
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        // Each line is `id:controllers:/path`; the path may lie below a prefix when we run in a container.
        text.lines()
            .filter_map(|line| line.splitn(3, ':').nth(2))
            .any(|path| path.split('/').any(|part| part == self.name))
    }

    /// Kills until nothing is left.
    pub(crate) fn kill_all(&self, patience: Duration) -> Result<()> {
        let deadline = Instant::now() + patience;
        loop {
            let left = self.processes()?;
            if left.is_empty() {
                return Ok(());
            }
            self.kill()?;
            if Instant::now() >= deadline {
                let left: Vec<String> = left.iter().map(ToString::to_string).collect();
                let (list, name) = (left.join(", "), &self.name);
                return Err(Error::Invalid(format!(
                    "the processes {list} of the control group {name} were killed and do not end: the kernel waits, for a \
                     disk or a network file system most likely (see /proc/PID/stack)"
                )));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Removes the group and everything below it. Its processes must be gone; their last traces are waited for.
    pub(crate) fn remove(&self, patience: Duration) -> Result<()> {
        let deadline = Instant::now() + patience;
        for (_, directory) in self.directories() {
            while let Err(error) = remove_tree(&directory) {
                if error.raw_os_error() != Some(Errno::BUSY.raw_os_error()) || Instant::now() >= deadline {
                    return Err(error).doing(|| on("remove the control group", &directory));
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        Ok(())
    }
}

fn enter(directory: &Path) -> Result<()> {
    let file = directory.join("cgroup.procs");
    fs::write(&file, "0").doing(|| on("enter the control group", directory))
}

fn hand_down(directory: &Path) -> Result<()> {
    let read = |name: &str| {
        let file = directory.join(name);
        fs::read_to_string(&file).doing(|| on("read", &file))
    };
    let (available, enabled) = (read("cgroup.controllers")?, read("cgroup.subtree_control")?);
    for controller in to_hand_down(&available, &enabled) {
        let written = fs::write(directory.join("cgroup.subtree_control"), format!("+{controller}"));
        written.doing(|| cannot_enable(controller, directory))?;
    }
    Ok(())
}

/// Controllers that are there, are wanted below and are not there yet.
fn to_hand_down<'a>(available: &'a str, enabled: &str) -> Vec<&'a str> {
    let is_enabled = |name: &str| enabled.split_ascii_whitespace().any(|other| other == name);
    let available = available.split_ascii_whitespace();
    available.filter(|name| HANDED_DOWN.contains(name) && !is_enabled(name)).collect()
}

fn cannot_enable(controller: &str, directory: &Path) -> String {
    let directory = directory.display();
    // What the kernel's answers mean is not in their words.
    let causes = "busy: processes live in that group, as in a container that is not given the host's control groups; \
                  invalid: real-time processes live in groups below it";
    format!("enable the {controller} controller below {directory} ({causes})")
}

/// A group that was removed meanwhile, or one of threads, whose processes the group above lists.
pub(crate) fn has_no_list(error: &io::Error) -> bool {
    let expected = [Errno::NOENT, Errno::NODEV, Errno::OPNOTSUPP];
    expected.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// The directory and all below it, parents first. Nothing when it does not exist.
fn tree(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(next) = waiting.pop() {
        let entries = match fs::read_dir(&next) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            match entry.and_then(|entry| Ok((entry.file_type()?, entry.path()))) {
                Ok((kind, path)) if kind.is_dir() => waiting.push(path),
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        found.push(next);
    }
    Ok(found)
}

fn remove_tree(directory: &Path) -> io::Result<()> {
    // Children come after their parents in the list, so backwards removes leaves first.
    for next in tree(directory)?.iter().rev() {
        match fs::remove_dir(next) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
