//! A snapshot of what this crate could change on the host.
//!
//! Other environments may exist on the same host, and come and go while a test runs: what is known to be theirs is left
//! out.

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

/// By what things of a test are known.
#[derive(Debug, Default, Clone)]
pub(crate) struct Marks {
    /// Name of the state directory.
    pub(crate) state: String,
    /// Names of environments, as in the alias of a link.
    pub(crate) environments: BTreeSet<String>,
    /// `<environment>-<tag>`, as in /run/hangar.
    pub(crate) directories: BTreeSet<String>,
}

impl Marks {
    fn has_link(&self, alias: &str) -> bool {
        alias.split(' ').nth(1).is_some_and(|environment| self.environments.contains(environment))
    }

    fn has_mount(&self, line: &str) -> bool {
        let directory = line.split(' ').nth(4).and_then(|target| target.strip_prefix("/run/hangar/"));
        directory
            .is_none_or(|rest| rest.split('/').next().is_some_and(|name| self.directories.contains(name)))
    }

    fn has_cgroup(&self, name: &str) -> bool {
        let mut tags = self.directories.iter().filter_map(|directory| directory.rsplit('-').next());
        tags.any(|tag| name.ends_with(tag))
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// Processes of our machines and networks. Others live in namespaces too, and come and go as they like.
    ours: BTreeSet<String>,
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
    pub(crate) fn take(marks: &Marks) -> Self {
        let mut network = Network::here().unwrap();
        let (foreign, links): (Vec<_>, Vec<_>) = network.links().unwrap().into_iter().partition(|link| {
            link.alias.as_deref().is_some_and(|alias| alias.starts_with("hangar ") && !marks.has_link(alias))
        });
        let is_foreign = |index: u32| foreign.iter().any(|link| link.index == index);
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mut etc = BTreeMap::new();
        walk(Path::new("/etc"), &mut etc);
        Self {
            ours: processes_of(&marks.state),
            mounts: mounts.lines().filter(|line| marks.has_mount(line)).map(mount_of).collect(),
            links: links.into_iter().map(|link| link.name).collect(),
            addresses: network
                .addresses()
                .unwrap()
                .into_iter()
                .filter(|(index, _)| !is_foreign(*index))
                .map(|address| format!("{address:?}"))
                .collect(),
            routes: network
                .routes()
                .unwrap()
                .into_iter()
                .filter(|(index, _)| !index.is_some_and(is_foreign))
                .map(|route| format!("{route:?}"))
                .collect(),
            cgroups: cgroups(marks),
            settings: SETTINGS
                .iter()
                .map(|name| {
                    (*name, fs::read_to_string(Path::new("/proc/sys").join(name)).unwrap_or_default())
                })
                .collect(),
            etc,
            run: marks
                .directories
                .iter()
                .map(|name| Path::new("/run/hangar").join(name))
                .chain([PathBuf::from("/run/netns")])
                .filter(|path| path.exists())
                .collect(),
        }
    }

    /// Names of the kinds of things that are the same in both.
    pub(crate) fn same_kinds(&self, other: &Self) -> Vec<&'static str> {
        let kinds = [
            ("processes", self.ours == other.ours),
            ("mounts", self.mounts == other.mounts),
            ("links", self.links == other.links),
            ("addresses", self.addresses == other.addresses),
            ("routes", self.routes == other.routes),
            ("control groups", self.cgroups == other.cgroups),
            ("settings", self.settings == other.settings),
            ("/etc", self.etc == other.etc),
            ("/run", self.run == other.run),
        ];
        kinds.into_iter().filter(|(_, is_same)| *is_same).map(|(kind, _)| kind).collect()
    }

    /// Compares with now. A killed process may need a moment to be collected by its new parent.
    pub(crate) fn assert_same(&self, marks: &Marks) {
        let mut now = Self::take(marks);
        for _ in 0..6000 {
            if now == *self {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
            now = Self::take(marks);
        }
        assert_eq!(self.ours, now.ours, "processes");
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

/// Supervisors, relays and visitors name the state directory in their arguments; whatever else runs in a machine has parts
/// of it mounted, also when it is deleted by now.
pub(crate) fn processes_of(state: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let pid = entry.file_name().to_string_lossy().into_owned();
        if pid.parse::<u32>().is_err() {
            continue;
        }
        // One that just ended has none.
        let read = |file: &str| {
            let bytes = fs::read(entry.path().join(file)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        if read("cmdline").contains(state) || read("mountinfo").contains(state) {
            found.insert(format!("{pid} {}", read("comm").trim()));
        }
    }
    found
}

/// Groups of ours in every hierarchy.
fn cgroups(marks: &Marks) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for hierarchy in fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten() {
        let inner = fs::read_dir(hierarchy.path()).into_iter().flatten().flatten().map(|entry| entry.path());
        found.extend(inner.chain([hierarchy.path()]).filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("hangar") && marks.has_cgroup(&name)
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
