//! A snapshot of what an environment could change on the host. Other environments may come and go meanwhile, so it
//! contains only what carries this one's name, and what must never change at all.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hangar_machine::net::Network;

/// Settings of the host that machines and kubelets like to change.
const SETTINGS: [&str; 7] = [
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/hostname",
    "vm/overcommit_memory",
    "net/ipv4/ip_forward",
    "net/ipv4/conf/all/rp_filter",
    "net/netfilter/nf_conntrack_max",
];

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    processes: BTreeSet<String>,
    mounts: BTreeSet<String>,
    links: BTreeSet<String>,
    cgroups: BTreeSet<PathBuf>,
    namespaces: BTreeSet<PathBuf>,
    settings: BTreeMap<&'static str, String>,
    packages: Option<std::time::SystemTime>,
}

impl Snapshot {
    pub(crate) fn take(name: &str) -> Self {
        let links = Network::here().unwrap().links().unwrap();
        let ours = |link: &hangar_machine::net::LinkState| {
            link.alias.as_ref().is_some_and(|alias| alias.contains(name))
        };
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let read =
            |setting: &str| fs::read_to_string(Path::new("/proc/sys").join(setting)).unwrap_or_default();
        Self {
            processes: processes(name),
            mounts: mounts.lines().filter(|line| line.contains(name)).map(str::to_owned).collect(),
            links: links.into_iter().filter(ours).map(|link| link.name).collect(),
            cgroups: named(Path::new("/sys/fs/cgroup"), name, 2),
            namespaces: named(Path::new("/run/hangar"), name, 1),
            settings: SETTINGS.iter().map(|setting| (*setting, read(setting))).collect(),
            packages: fs::metadata("/var/lib/dpkg/status").and_then(|found| found.modified()).ok(),
        }
    }

    /// Compares with now. A killed process may need a moment to be collected by its new parent.
    pub(crate) fn assert_same(&self, name: &str) {
        for _ in 0..6000 {
            if *self == Self::take(name) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(*self, Self::take(name));
    }
}

/// Processes in control groups of this environment: everything in its machines is, whatever it calls itself. Relays are
/// known by their arguments.
fn processes(name: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let pid = entry.file_name().to_string_lossy().into_owned();
        if pid.parse::<u32>().is_err() || pid == std::process::id().to_string() {
            continue;
        }
        let read = |file: &str| fs::read_to_string(entry.path().join(file)).unwrap_or_default();
        if read("cgroup").contains(name) || read("cmdline").contains(name) {
            found.insert(format!("{pid} {}", read("comm").trim()));
        }
    }
    found
}

/// Directories whose name holds this one, down to a depth.
fn named(directory: &Path, name: &str, depth: usize) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().contains(name) {
            found.insert(entry.path());
        } else if depth > 1 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(named(&entry.path(), name, depth - 1));
        }
    }
    found
}
