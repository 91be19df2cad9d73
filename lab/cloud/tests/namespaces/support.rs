//! What every test starts from: an environment with an external network, a driver, and a check of what is left.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hangar_cloud::driver::namespaces::{MachineImage, Namespaces, Settings};
use hangar_cloud::driver::{Driver, Event};
use hangar_cloud::topology::Topology;
use hangar_machine::net::{Fabric, FabricSpec};
use hangar_machine::{Environment, Name, SupervisorCommand};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::packages;

/// The program with the hidden subcommand.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_hangar-cloud");

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// An environment of its own. `third` picks the external range 100.121.third.0/24.
pub(crate) struct Bench {
    state: TempDir,
    name: Name,
    environment: Environment,
    pub(crate) fabric: Fabric,
    pub(crate) runtime: Runtime,
    _alone: MutexGuard<'static, ()>,
}

pub(crate) fn bench(name: &str, third: u8) -> Bench {
    let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let state = tempfile::Builder::new().prefix("hangar-cloud-").tempdir_in("/var/tmp").unwrap();
    let name = Name::new(name).unwrap();
    let supervisor = SupervisorCommand { program: PROGRAM.into(), arguments: vec!["supervise".into()] };
    let environment = Environment::new(state.path(), name.clone(), supervisor).unwrap();
    let fabric = environment
        .create_fabric(FabricSpec {
            name: Name::new("private").unwrap(),
            gateway: format!("100.121.{third}.1/24").parse().unwrap(),
            host: None,
            mtu: None,
            outside: false,
            never_outside: Vec::new(),
        })
        .unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    Bench { state, name, environment, fabric, runtime, _alone: alone }
}

impl Bench {
    pub(crate) fn settings(
        &self,
        images: impl IntoIterator<Item = (&'static str, MachineImage)>,
    ) -> Settings {
        Settings {
            state: self.state.path().to_owned(),
            environment: self.name.clone(),
            fabric: Name::new("private").unwrap(),
            supervisor: vec![PROGRAM.into(), "supervise".into()],
            nft: Some(packages::tool("nft")),
            conntrack: Some(packages::tool("conntrack")),
            name_servers: vec!["100.121.0.9".parse().unwrap()],
            images: images
                .into_iter()
                .map(|(name, image)| (name.to_owned(), image))
                .collect::<BTreeMap<_, _>>(),
        }
    }

    /// A driver whose only image is a machine with nothing in it.
    pub(crate) fn driver(&self) -> Told<'_> {
        self.driver_with([("plain", MachineImage::default())])
    }

    pub(crate) fn driver_with(
        &self,
        images: impl IntoIterator<Item = (&'static str, MachineImage)>,
    ) -> Told<'_> {
        let driver = Namespaces::new(self.settings(images)).unwrap();
        let (events, heard) = unbounded_channel();
        Told { driver, runtime: &self.runtime, events, heard }
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Everything of this environment except its external network: there must be nothing.
    pub(crate) fn left(&self) -> Vec<String> {
        let mut found = Vec::new();
        let ports = self.fabric.netns().network(hangar_machine::net::Network::links).unwrap();
        let is_ours = |name: &str| !matches!(name, "lo" | "br0");
        found.extend(ports.into_iter().filter(|link| is_ours(&link.name)).map(|link| link.name));
        let directory = self.fabric.netns().path().parent().unwrap().to_owned();
        found.extend(names(&directory).into_iter().filter(|name| name != "fabric.private"));
        found.extend(names(&self.environment.directory()).into_iter().filter(|name| name != "fabrics"));
        let state = self.state.path().to_str().unwrap();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        found.extend(mounts.lines().filter(|line| line.contains(state)).map(str::to_owned));
        // Whoever runs these tests beside us has environments of the same names, but not in the same place.
        let place = directory.parent().and_then(Path::file_name).unwrap().to_string_lossy().into_owned();
        let tag = place.rsplit('-').next().unwrap();
        let mark = self.state.path().file_name().unwrap().to_str().unwrap();
        let (prefix, title) = (format!("hangar.{}.", self.name), format!("hangar-supervisor {}/", self.name));
        for hierarchy in names(Path::new("/sys/fs/cgroup")) {
            let groups = names(&Path::new("/sys/fs/cgroup").join(&hierarchy));
            let is_ours = |name: &String| name.starts_with(&prefix) && name.ends_with(tag);
            found.extend([hierarchy].into_iter().chain(groups).filter(is_ours));
        }
        for process in names(Path::new("/proc")) {
            let read = |file: &str| fs::read_to_string(format!("/proc/{process}/{file}")).unwrap_or_default();
            let command = read("cmdline");
            if command.starts_with(&title) && read("mountinfo").contains(mark) {
                found.push(command.replace('\0', " "));
            }
        }
        found
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

impl Drop for Bench {
    /// A failed test must not leave machines behind for the next one.
    fn drop(&mut self) {
        let _ = self.environment.delete_all();
    }
}

/// A driver and what it says.
pub(crate) struct Told<'a> {
    pub(crate) driver: Namespaces,
    runtime: &'a Runtime,
    events: UnboundedSender<Event>,
    heard: UnboundedReceiver<Event>,
}

impl Told<'_> {
    /// One pass that must succeed, and what was said in it.
    pub(crate) fn realise(&mut self, topology: &Topology) -> Vec<Event> {
        self.runtime.block_on(self.driver.realise(topology, &self.events)).unwrap();
        std::iter::from_fn(|| self.heard.try_recv().ok()).collect()
    }

    pub(crate) fn console(&self, server: uuid::Uuid) -> String {
        self.runtime.block_on(self.driver.console(server))
    }
}
