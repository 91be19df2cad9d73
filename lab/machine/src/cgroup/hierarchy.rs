//! The control group hierarchies of this host, as mounted.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use crate::error::{Doing, Error, Result, on};

/// Mount options of a v1 hierarchy that are not controllers.
const NOT_CONTROLLERS: [&str; 9] =
    ["rw", "ro", "xattr", "noprefix", "clone_children", "cpuset_v2_mode", "favordynmods", "none", "all"];

/// Interface generation of a hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

/// One mounted hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    pub(crate) version: Version,
    pub(crate) mount: PathBuf,
    /// Controllers of a v1 hierarchy, or `name=…`.
    pub(crate) controllers: Vec<String>,
}

impl Hierarchy {
    pub(crate) fn has(&self, controller: &str) -> bool {
        self.controllers.iter().any(|name| name == controller)
    }

    /// Options that mount this v1 hierarchy again.
    pub(crate) fn mount_options(&self) -> String {
        let named = self.controllers.iter().all(|name| name.starts_with("name="));
        let list = self.controllers.join(",");
        if named { format!("none,{list}") } else { list }
    }

    /// Directory name under /sys/fs/cgroup.
    pub(crate) fn directory_name(&self) -> String {
        self.controllers.join(",").replace("name=", "")
    }
}

/// All hierarchies of this host.
#[derive(Debug, Clone)]
pub(crate) struct Hierarchies {
    pub(crate) all: Vec<Hierarchy>,
}

impl Hierarchies {
    pub(crate) fn discover() -> Result<Self> {
        let path = Path::new("/proc/self/mountinfo");
        Self::parse(&fs::read_to_string(path).doing(|| on("read", path))?)
    }

    fn parse(mountinfo: &str) -> Result<Self> {
        let mut all: Vec<Hierarchy> = Vec::new();
        let mut devices = BTreeSet::new();
        for line in mountinfo.lines() {
            let Some((left, right)) = line.split_once(" - ") else {
                continue;
            };
            let left: Vec<&str> = left.split(' ').collect();
            let right: Vec<&str> = right.split(' ').collect();
            let ([_, _, device, _, mount, ..], [kind, _, options]) = (&left[..], &right[..]) else {
                continue;
            };
            let version = match *kind {
                "cgroup" => Version::One,
                "cgroup2" => Version::Two,
                _ => continue,
            };
            // The same hierarchy may be mounted twice.
            if !devices.insert((*device).to_owned()) {
                continue;
            }
            let controllers = match version {
                Version::One => {
                    options.split(',').filter(|name| is_controller(name)).map(str::to_owned).collect()
                }
                Version::Two => Vec::new(),
            };
            all.push(Hierarchy { version, mount: unescape(mount), controllers });
        }
        if all.is_empty() { Err(Error::NoCgroups) } else { Ok(Self { all }) }
    }

    /// Whether the controllers are on v2.
    pub(crate) fn is_unified(&self) -> bool {
        !self.all.iter().any(|one| one.version == Version::One && one.has("memory"))
            && self.all.iter().any(|one| one.version == Version::Two)
    }

    /// Refuses a host on which kubelet could not run.
    pub(crate) fn check(&self) -> Result<()> {
        let (needed, present): (&[&str], BTreeSet<String>) = if self.is_unified() {
            let mut present = BTreeSet::new();
            for hierarchy in self.all.iter().filter(|one| one.version == Version::Two) {
                let text = fs::read_to_string(hierarchy.mount.join("cgroup.controllers")).unwrap_or_default();
                present.extend(text.split_ascii_whitespace().map(str::to_owned));
            }
            (&["cpu", "cpuset", "memory", "pids"], present)
        } else {
            let present = self.all.iter().flat_map(|one| one.controllers.iter().cloned()).collect();
            (&["cpu", "cpuacct", "cpuset", "memory"], present)
        };
        let missing: Vec<&str> = needed.iter().copied().filter(|name| !present.contains(*name)).collect();
        if missing.is_empty() { Ok(()) } else { Err(Error::MissingControllers(missing.join(", "))) }
    }
}

fn is_controller(option: &str) -> bool {
    !NOT_CONTROLLERS.contains(&option) && (!option.contains('=') || option.starts_with("name="))
}

/// mountinfo writes blanks, tabs, newlines and backslashes as three octal digits.
pub(crate) fn unescape(text: &str) -> PathBuf {
    let mut plain = text.to_owned();
    for (escape, character) in [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")] {
        plain = plain.replace(escape, character);
    }
    PathBuf::from(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset,clone_children
35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,release_agent=/x,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
99 31 0:32 / /elsewhere rw - cgroup cgroup rw,memory
";
    const V2: &str =
        "28 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
";

    #[test]
    fn reads_a_hybrid_host() {
        let found = Hierarchies::parse(V1).unwrap();
        let names: Vec<String> = found.all.iter().map(Hierarchy::directory_name).collect();
        assert_eq!(names, ["cpu,cpuacct", "cpuset", "memory", "systemd", ""]);
        assert_eq!(found.all[0].mount_options(), "cpu,cpuacct");
        assert_eq!(found.all[3].mount_options(), "none,name=systemd");
        assert!(!found.is_unified());
        found.check().unwrap();
    }

    #[test]
    fn reads_a_unified_host() {
        let found = Hierarchies::parse(V2).unwrap();
        assert!(found.is_unified());
        assert_eq!(found.all.len(), 1);
    }

    #[test]
    fn says_what_is_missing() {
        assert!(matches!(Hierarchies::parse("22 27 0:21 / /proc rw - proc proc rw"), Err(Error::NoCgroups)));
        let memory_only = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory";
        let error = Hierarchies::parse(memory_only).unwrap().check().unwrap_err();
        assert_eq!(error.to_string(), "cgroup controllers missing on this host: cpu, cpuacct, cpuset");
    }

    /// On v2 the root group itself says what there is.
    #[test]
    fn says_what_is_missing_on_a_unified_host() {
        let place = tempfile::tempdir().unwrap();
        let line = format!("28 23 0:26 / {} rw - cgroup2 cgroup2 rw", place.path().display());
        let found = Hierarchies::parse(&line).unwrap();
        let controllers = place.path().join("cgroup.controllers");
        fs::write(&controllers, "cpu io memory\n").unwrap();
        let error = found.check().unwrap_err();
        assert_eq!(error.to_string(), "cgroup controllers missing on this host: cpuset, pids");
        fs::write(&controllers, "cpuset cpu io memory hugetlb pids rdma misc\n").unwrap();
        found.check().unwrap();
    }

    /// A named v1 hierarchy without controllers, or one of somebody's own, does not make a v2 host a v1 host.
    #[test]
    fn leftovers_of_v1_on_a_unified_host() {
        let lines = format!(
            "{V2}40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n50 31 0:40 / /run/net_cls rw - cgroup net_cls rw,net_cls\n"
        );
        let found = Hierarchies::parse(&lines).unwrap();
        assert!(found.is_unified());
        assert_eq!(found.all.len(), 3, "groups are made in all of them, so that processes are found by each");
    }

    #[test]
    fn unescapes_mount_points() {
        assert_eq!(unescape("/a\\040b\\134c"), Path::new("/a b\\c"));
    }
}
