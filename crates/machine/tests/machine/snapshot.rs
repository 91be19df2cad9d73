//! The host as this crate could change it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use hangar_machine::net::Network;

/// Settings of the host that machines or kubelets like to change.
const SETTINGS: [&str; 8] = [
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/hostname",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "net/ipv4/ip_forward",
    "net/ipv4/conf/all/rp_filter",
    "net/bridge/bridge-nf-call-iptables",
];

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// Processes that live in other namespaces than this one, and relays.
    strangers: BTreeSet<String>,
    mounts: BTreeSet<String>,
    links: BTreeSet<String>,
    addresses: BTreeSet<String>,
    routes: BTreeSet<String>,
    cgroups: BTreeSet<PathBuf>,
    settings: BTreeMap<&'static str, String>,
    /// Size and change time of every file in /etc.
    etc: BTreeMap<PathBuf, (u64, i64, i64)>,
    run: BTreeSet<PathBuf>,
}

impl Snapshot {
    pub(crate) fn take() -> Self {
        let mut network = Network::here().unwrap();
        let mut etc = BTreeMap::new();
        walk(Path::new("/etc"), &mut etc);
        Self {
            strangers: strangers(),
            mounts: fs::read_to_string("/proc/self/mountinfo").unwrap().lines().map(mount_of).collect(),
            links: network.links().unwrap().into_iter().map(|link| link.name).collect(),
            addresses: network.addresses().unwrap().into_iter().map(|a| format!("{a:?}")).collect(),
            routes: network.routes().unwrap().into_iter().map(|r| format!("{r:?}")).collect(),
            cgroups: cgroups(),
            settings: SETTINGS
                .iter()
                .map(|name| {
                    (*name, fs::read_to_string(Path::new("/proc/sys").join(name)).unwrap_or_default())
                })
                .collect(),
            etc,
            run: ["/run/hangar", "/run/netns"]
                .iter()
                .map(PathBuf::from)
                .filter(|path| path.exists())
                .collect(),
        }
    }

    /// Compares with now. A killed process may need a moment to be collected by its new parent.
    pub(crate) fn assert_same(&self) {
        let mut now = Self::take();
        for _ in 0..200 {
            if now == *self {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
            now = Self::take();
        }
        assert_eq!(self.strangers, now.strangers, "processes");
        assert_eq!(self.mounts, now.mounts, "mounts");
        assert_eq!(self.links, now.links, "links");
        assert_eq!(self.addresses, now.addresses, "addresses");
        assert_eq!(self.routes, now.routes, "routes");
        assert_eq!(self.cgroups, now.cgroups, "control groups");
        assert_eq!(self.settings, now.settings, "settings");
        assert_eq!(self.etc, now.etc, "/etc");
        assert_eq!(self.run, now.run, "/run");
    }
}

/// Mount point, file system and what of it is mounted.
fn mount_of(line: &str) -> String {
    let fields: Vec<&str> = line.split(' ').collect();
    format!("{} {} {}", fields[4], fields[3], line.split(" - ").nth(1).unwrap_or_default())
}

fn strangers() -> BTreeSet<String> {
    let own: Vec<_> = ["net", "mnt", "pid", "uts"].iter().map(|kind| namespace("self", kind)).collect();
    let mut found = BTreeSet::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let pid = entry.file_name().to_string_lossy().into_owned();
        if pid.parse::<u32>().is_err() {
            continue;
        }
        let theirs: Vec<_> = ["net", "mnt", "pid", "uts"].iter().map(|kind| namespace(&pid, kind)).collect();
        let command = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        // Kernel threads and processes that just ended have none.
        let is_elsewhere = theirs.iter().all(Option::is_some) && theirs != own;
        if is_elsewhere || command.trim() == "hangar-relay" {
            found.insert(format!("{pid} {}", command.trim()));
        }
    }
    found
}

fn namespace(pid: &str, kind: &str) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok()
}

/// Groups of ours in every hierarchy.
fn cgroups() -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for hierarchy in fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten() {
        let inner = fs::read_dir(hierarchy.path()).into_iter().flatten().flatten().map(|entry| entry.path());
        found.extend(inner.chain([hierarchy.path()]).filter(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("hangar"))
        }));
    }
    found
}

fn walk(directory: &Path, found: &mut BTreeMap<PathBuf, (u64, i64, i64)>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(metadata) = fs::symlink_metadata(entry.path()) else {
            continue;
        };
        found.insert(entry.path(), (metadata.len(), metadata.mtime(), metadata.ctime_nsec()));
        if metadata.is_dir() {
            walk(&entry.path(), found);
        }
    }
}
