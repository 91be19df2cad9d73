//! The creator is killed in the middle of its work, at every stage that can be seen from outside.

use std::{
    fs,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use hangar_machine::{Environment, MachineState};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Bench, PROGRAM, bench, fabric, name, sh, spec};

/// A stage: what can be seen once the creator has reached it.
type Stage = (&'static str, fn(&Bench) -> bool);

fn machine_directory(bench: &Bench) -> PathBuf {
    bench.state.path().join("killed/machines/w1")
}

fn any_entry(directory: &Path, part: &str) -> bool {
    fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .any(|entry| entry.file_name().to_string_lossy().contains(part))
}

fn has_netns() -> bool {
    fs::read_to_string("/proc/self/mountinfo").unwrap().contains("machine.w1")
}

const STAGES: [Stage; 8] = [
    ("the process exists", |_| true),
    ("its directory exists", |bench| machine_directory(bench).exists()),
    ("its record is written", |bench| machine_directory(bench).join("machine.json").exists()),
    ("a control group exists", |_| {
        any_entry(Path::new("/sys/fs/cgroup/cpu"), "hangar.killed")
            || any_entry(Path::new("/sys/fs/cgroup"), "hangar.killed")
    }),
    ("its network namespace exists", |_| has_netns()),
    ("its logs exist", |bench| machine_directory(bench).join("logs/supervisor.log").exists()),
    ("its first process is recorded", |bench| machine_directory(bench).join("running.json").exists()),
    ("its overlay is made", |bench| machine_directory(bench).join("overlay/var/work").exists()),
];

fn creator(bench: &Bench) -> Child {
    Command::new(PROGRAM)
        .arg("--state")
        .arg(bench.state.path())
        .args([
            "--environment",
            "killed",
            "create",
            "w1",
            "--fabric",
            "private",
            "--address",
            "100.120.61.10",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Starts a creator and kills it at a stage. `false` when it was through before the kill arrived.
fn kill_at(bench: &Bench, stage: &Stage) -> bool {
    let mut child = creator(bench);
    while !(stage.1)(bench) && child.try_wait().unwrap().is_none() {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    child.wait().unwrap().signal() == Some(9)
}

/// Tries until a kill landed in the middle of the work, and leaves what it left.
fn land_kill(bench: &Bench, environment: &Environment, stage: &Stage) {
    for _ in 0..50 {
        if kill_at(bench, stage) {
            return;
        }
        environment.machine(&name("w1")).delete().unwrap();
    }
    panic!("no kill landed while {}", stage.0);
}

#[test]
fn then_deleting_is_clean() {
    let bench = bench();
    for stage in &STAGES {
        let environment = bench.environment("killed");
        fabric(&environment, 61);
        land_kill(&bench, &environment, stage);
        let begin = std::time::Instant::now();
        environment.machine(&name("w1")).delete().unwrap();
        println!("killed when {}: deleted in {:?}", stage.0, begin.elapsed());
        assert_eq!(environment.machines().unwrap().len(), 0);
        environment.delete_fabric(&name("private")).unwrap();
        let left = fs::read_dir(bench.state.path()).unwrap().count();
        assert_eq!(left, 0, "killed when {}: files are left", stage.0);
        bench.check();
    }
    bench.finish();
}

#[test]
fn then_it_can_be_made_or_started() {
    let bench = bench();
    let environment = bench.environment("killed");
    let fabric = fabric(&environment, 61);
    for stage in &STAGES {
        land_kill(&bench, &environment, stage);
        let machine = environment.machine(&name("w1"));
        // What a person would do: create it if it is not there, start it if it does not run.
        crate::support::eventually("nobody works on it", || {
            environment.machines().unwrap().iter().all(|status| status.state != MachineState::Changing)
        });
        match environment.machines().unwrap().first().map(|status| status.state.clone()) {
            None | Some(MachineState::Incomplete) => {
                drop(environment.create_machine(spec("w1", &fabric, 10)).unwrap());
            }
            Some(MachineState::Stopped) => machine.start().unwrap(),
            Some(MachineState::Running(_)) => {}
            Some(MachineState::Changing) => unreachable!(),
        }
        assert_eq!(sh(&machine, "hostname"), "w1", "killed when {}", stage.0);
        assert!(crate::ping::answers_here([100, 120, 61, 10].into()), "killed when {}", stage.0);
        machine.delete().unwrap();
    }
    environment.delete_all().unwrap();
    bench.finish();
}

/// The children of a process's first thread.
fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|number| number.parse().ok()).collect()
}

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.cast_signed()).unwrap();
    // It may be through already.
    let _ = kill_process(pid, signal);
}

/// Starts a creator whose launcher stands still from the moment it has started the first process until that is up, as
/// on a very busy host. `None` when the launcher was faster.
fn create_with_late_launcher(bench: &Bench) -> Option<bool> {
    let mut child = creator(bench);
    let (mut launcher, mut first) = (None, None);
    while first.is_none() && child.try_wait().unwrap().is_none() {
        launcher = launcher.or_else(|| children(child.id()).first().copied());
        first = launcher.and_then(|launcher| children(launcher).first().copied());
    }
    signal(launcher?, Signal::STOP);
    let socket = PathBuf::from(format!("/proc/{}/root/run/hangar-supervisor.sock", first?));
    crate::support::eventually("the first process is up", || {
        socket.exists() || child.try_wait().unwrap().is_some()
    });
    let was_late = !machine_directory(bench).join("running.json").exists();
    signal(launcher?, Signal::CONT);
    let is_good = child.wait().unwrap().success();
    was_late.then_some(is_good)
}

#[test]
fn a_late_launcher_still_records_what_it_started() {
    let bench = bench();
    let environment = bench.environment("killed");
    fabric(&environment, 61);
    let machine = environment.machine(&name("w1"));
    let mut landed = 0;
    for _ in 0..50 {
        let good = create_with_late_launcher(&bench);
        if let Some(good) = good {
            landed += 1;
            assert!(good, "it was not made");
            assert!(matches!(machine.status().unwrap().state, MachineState::Running(_)));
            assert_eq!(sh(&machine, "hostname"), "w1");
        }
        machine.delete().unwrap();
        if landed == 3 {
            break;
        }
    }
    assert!(landed > 0, "no launcher could be held");
    environment.delete_all().unwrap();
    bench.finish();
}

/// A deleter removes the record first, then the data.
#[test]
fn data_of_a_half_deleted_machine_is_not_the_next_ones() {
    let bench = bench();
    let environment = bench.environment("killed");
    let fabric = fabric(&environment, 61);
    let machine = environment.create_machine(spec("w1", &fabric, 10)).unwrap();
    sh(&machine, "echo old > /etc/hostname; echo old > /var/lib/old");
    machine.stop(std::time::Duration::ZERO).unwrap();
    fs::remove_file(machine.directory().join("machine.json")).unwrap();
    assert_eq!(machine.status().unwrap().state, MachineState::Incomplete);
    environment.create_machine(spec("w1", &fabric, 11)).unwrap();
    assert_eq!(sh(&machine, "cat /etc/hostname; ls /var/lib/old 2>/dev/null || true"), "w1");
    assert!(sh(&machine, "cat /etc/hosts").contains("100.120.61.11 w1"));

    // Half a record, as a host that lost its power may leave one: said, listed, and deleted.
    fs::write(machine.directory().join("machine.json"), "{\"environ").unwrap();
    let error = environment.create_machine(spec("w1", &fabric, 10)).unwrap_err().to_string();
    assert!(error.contains("its record cannot be read, delete it"), "{error}");
    assert_eq!(environment.machines().unwrap().len(), 1);
    assert!(machine.delete().unwrap());

    // The same of a network, and of its relay.
    let directory = environment.directory().join("fabrics/private");
    for file in ["fabric.json", "relay.json"] {
        fs::write(directory.join(file), "{\"na").unwrap();
    }
    crate::support::fabric(&environment, 61);
    fs::write(directory.join("relay.json"), "").unwrap();
    environment.delete_all().unwrap();
    bench.finish();
}

/// Somebody removes the state directory by hand while machines run.
#[test]
fn what_lost_its_files_is_removed_too() {
    let bench = bench();
    let environment = bench.environment("killed");
    let fabric = fabric(&environment, 61);
    environment.create_machine(spec("w1", &fabric, 10)).unwrap();
    fs::remove_dir_all(environment.directory()).unwrap();
    assert!(bench.processes() > 0);
    environment.delete_all().unwrap();
    bench.finish();
}

/// Ever later ones. The steps grow, so that a slow host takes a few more and not many times as many.
fn moments(first: Duration) -> impl Iterator<Item = Duration> {
    let grown = |step: &Duration| Some(step.mul_f64(1.05));
    let steps = std::iter::successors(Some(first), grown);
    std::iter::once(Duration::ZERO).chain(steps.scan(Duration::ZERO, |moment, step| {
        *moment += step;
        Some(*moment)
    }))
}

#[test]
fn networks_too() {
    let bench = bench();
    let mut landed = 0;
    // A network is made too fast to see its stages: kill at ever later moments until it was through.
    for moment in moments(Duration::from_micros(500)) {
        let mut child = Command::new(PROGRAM)
            .arg("--state")
            .arg(bench.state.path())
            .args(["--environment", "killed", "create-fabric", "private", "--gateway", "100.120.61.1/24"])
            .args(["--host", "100.120.61.2"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(moment);
        child.kill().unwrap();
        let was_through = child.wait().unwrap().signal().is_none();
        landed += u32::from(!was_through);
        let environment = bench.environment("killed");
        environment.delete_fabric(&name("private")).unwrap();
        bench.check();
        if was_through {
            break;
        }
    }
    assert!(landed > 0, "no kill landed in the middle of the work");
    bench.finish();
}

#[test]
fn a_killed_deleter_can_be_repeated() {
    let bench = bench();
    let environment = bench.environment("killed");
    let fabric = fabric(&environment, 61);
    let mut landed = 0;
    for moment in moments(Duration::from_millis(4)) {
        let machine = environment.create_machine(spec("w1", &fabric, 10)).unwrap();
        let mut child = Command::new(PROGRAM)
            .arg("--state")
            .arg(bench.state.path())
            .args(["--environment", "killed", "delete", "w1"])
            .spawn()
            .unwrap();
        std::thread::sleep(moment);
        child.kill().unwrap();
        let was_through = child.wait().unwrap().signal().is_none();
        landed += u32::from(!was_through);
        machine.delete().unwrap();
        assert_eq!(environment.machines().unwrap().len(), 0);
        if was_through {
            break;
        }
    }
    assert!(landed > 0, "no kill landed in the middle of the work");
    environment.delete_all().unwrap();
    bench.finish();
}
