//! What every test starts from.

use std::{
    cell::RefCell,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hangar_machine::{
    Environment, Machine, MachineSpec, Name, ServiceState, SupervisorCommand,
    net::{Fabric, FabricSpec},
};
use tempfile::TempDir;

use crate::snapshot::{Marks, Snapshot, processes_of};

/// The program with the hidden subcommand.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_hangar-machine");

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A state directory and the host as it was. Dropping it checks that the host is the same again.
pub(crate) struct Bench {
    pub(crate) state: TempDir,
    marks: RefCell<Marks>,
    before: Option<Snapshot>,
    _alone: MutexGuard<'static, ()>,
}

pub(crate) fn bench() -> Bench {
    let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(
        rustix::process::geteuid().is_root(),
        "these tests make real machines and need root: run them as root, they do not pass without"
    );
    let state = tempfile::Builder::new().prefix("hangar-machine-").tempdir_in("/var/tmp").unwrap();
    let mark = state.path().file_name().unwrap().to_str().unwrap().to_owned();
    let marks = Marks { state: mark, ..Marks::default() };
    Bench { before: Some(Snapshot::take(&marks)), marks: RefCell::new(marks), state, _alone: alone }
}

impl Bench {
    pub(crate) fn environment(&self, name: &str) -> Environment {
        let supervisor = SupervisorCommand { program: PROGRAM.into(), arguments: vec!["supervise".into()] };
        let environment = Environment::new(self.state.path(), self::name(name), supervisor).unwrap();
        let netns = environment.netns(&self::name("any"));
        let directory = netns.path().ancestors().nth(2).and_then(Path::file_name).unwrap();
        let mut marks = self.marks.borrow_mut();
        marks.environments.insert(name.to_owned());
        marks.directories.insert(directory.to_str().unwrap().to_owned());
        environment
    }

    /// How many processes of its machines and networks run now.
    pub(crate) fn processes(&self) -> usize {
        processes_of(&self.marks.borrow().state).len()
    }

    /// A machine on a private network runs: the comparison must see each kind of thing it is made of.
    pub(crate) fn sees_what_is_there(&self) {
        let now = Snapshot::take(&self.marks.borrow());
        assert_eq!(self.before.as_ref().unwrap().same_kinds(&now), ["settings", "/etc"]);
    }

    /// The host is as it was, now.
    pub(crate) fn check(&self) {
        self.before.as_ref().unwrap().assert_same(&self.marks.borrow());
    }

    /// The host is as it was; called at the end of each test.
    pub(crate) fn finish(mut self) {
        let left: Vec<_> =
            std::fs::read_dir(self.state.path()).unwrap().flatten().map(|e| e.path()).collect();
        assert_eq!(left, Vec::<std::path::PathBuf>::new(), "files were left in the state directory");
        self.before.take().unwrap().assert_same(&self.marks.borrow());
    }
}

impl Drop for Bench {
    /// A failed test must not leave machines behind for the next one.
    fn drop(&mut self) {
        let Ok(entries) = std::fs::read_dir(self.state.path()) else {
            return;
        };
        for entry in entries.flatten() {
            let Ok(name) = Name::new(entry.file_name().to_string_lossy()) else {
                continue;
            };
            let environment = self.environment(name.as_str());
            let _ = environment.delete_all();
        }
    }
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// A private network with a host link; `third` picks the range 100.120.third.0/24, away from those that `hangar up` takes:
/// an environment that runs on the same host must not fail these tests.
pub(crate) fn fabric(environment: &Environment, third: u8) -> Fabric {
    environment.create_fabric(fabric_spec(third)).unwrap()
}

pub(crate) fn fabric_spec(third: u8) -> FabricSpec {
    FabricSpec {
        name: name("private"),
        gateway: format!("100.120.{third}.1/24").parse().unwrap(),
        host: Some(format!("100.120.{third}.2").parse().unwrap()),
        mtu: None,
        outside: false,
        never_outside: Vec::new(),
    }
}

pub(crate) fn spec(machine: &str, fabric: &Fabric, last: u8) -> MachineSpec {
    let [a, b, c, _] = fabric.range().network().octets();
    let mut spec = MachineSpec::new(name(machine));
    spec.nics.push(fabric.nic("eth0", [a, b, c, last].into()).unwrap());
    spec
}

pub(crate) fn machine(environment: &Environment, machine: &str, fabric: &Fabric, last: u8) -> Machine {
    environment.create_machine(spec(machine, fabric, last)).unwrap()
}

/// A shell line inside that must succeed; its output without the last newline.
pub(crate) fn sh(machine: &Machine, line: &str) -> String {
    machine.run(["/bin/sh", "-c", line]).unwrap().trim_end().to_owned()
}

/// What a service does, and how often it was started.
pub(crate) fn state_of(machine: &Machine, service: &str) -> (ServiceState, u32) {
    let all = machine.services().unwrap();
    let found = all.into_iter().find(|status| status.name.as_str() == service).unwrap();
    (found.state, found.starts)
}

/// Looks until it is so. The wait has an end only so that a broken build does not hang.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..30000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never happened: {what}");
}

pub(crate) fn host_file(path: &str) -> String {
    std::fs::read_to_string(Path::new(path)).unwrap_or_default()
}
