//! `hangar up` as people run it, and what is left when it is killed. Needs root.
//!
//! A binary of its own, one test after the other: two clusters beside everything else are too much for two cores.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hangar_parts::{Parts, Set};

/// One at a time.
static TURN: Mutex<()> = Mutex::new(());

/// One environment of these tests. Dropping it removes what is left.
struct Environment {
    name: String,
    state: PathBuf,
}

impl Environment {
    fn new(name: &str) -> Self {
        // One place for all of them, as on a real host: that is where they agree on address ranges.
        let state = PathBuf::from(format!("/var/lib/hangar-test-{}", std::process::id()));
        Self { state, name: format!("{name}{}", std::process::id()) }
    }

    fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hangar"));
        command
            .arg(verb)
            .arg(format!("--name={}", self.name))
            .arg(format!("--state={}", self.state.display()));
        command
    }

    fn run(&self, verb: &str) -> Output {
        self.command(verb).output().unwrap()
    }

    #[track_caller]
    fn succeed(&self, verb: &str) -> String {
        let output = self.run(verb);
        let text =
            format!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
        assert!(output.status.success(), "{verb}: {text}\n{}", log_named_in(&text));
        text
    }

    fn kubeconfig(&self) -> PathBuf {
        self.state.join(&self.name).join("management.kubeconfig")
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        let kubectl = Parts::from_env().unwrap().program(Set::Kubernetes134, "kubectl").unwrap();
        let output =
            Command::new(kubectl).args(arguments).env("KUBECONFIG", self.kubeconfig()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts `up` and kills it a moment after it reported the step.
    fn kill_after(&self, step: &str) {
        let mut child = self.command("up").stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let reached = lines.map_while(Result::ok).any(|line| line.contains(&format!("s  {step}: ")));
        assert!(reached, "up ended before {step}");
        // Into the middle of the next step.
        std::thread::sleep(Duration::from_millis(120));
        assert!(child.try_wait().unwrap().is_none(), "up ended before the kill");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Processes, mounts, links, network namespaces and control groups that are this environment's.
    fn leftovers(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let arguments = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            if String::from_utf8_lossy(&arguments).contains(&self.name) {
                found.insert(format!("process {}", String::from_utf8_lossy(&arguments).replace('\0', " ")));
            }
        }
        for line in
            fs::read_to_string("/proc/mounts").unwrap().lines().filter(|line| line.contains(&self.name))
        {
            found.insert(format!("mount {line}"));
        }
        for entry in fs::read_dir("/sys/class/net").unwrap().flatten() {
            let alias = fs::read_to_string(entry.path().join("ifalias")).unwrap_or_default();
            if alias.contains(&self.name) {
                found.insert(format!("link {}: {alias}", entry.file_name().to_string_lossy()));
            }
        }
        let mut directories = vec![PathBuf::from("/sys/fs/cgroup"), PathBuf::from("/run/hangar")];
        directories.extend(fs::read_dir("/sys/fs/cgroup").unwrap().flatten().map(|entry| entry.path()));
        for directory in directories {
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                if entry.file_name().to_string_lossy().contains(&self.name) {
                    found.insert(format!("directory {}", entry.path().display()));
                }
            }
        }
        let directory = self.state.join(&self.name);
        if directory.exists() {
            found.insert(format!("directory {}", directory.display()));
        }
        found
    }

    #[track_caller]
    fn assert_gone(&self) {
        assert_eq!(self.leftovers(), BTreeSet::new());
    }

    #[track_caller]
    fn assert_healthy(&self) {
        let pods = self.kubectl(&["get", "pods", "--all-namespaces", "--no-headers"]);
        assert!(pods.lines().count() >= 9, "{pods}");
        for pod in pods.lines() {
            assert!(pod.contains(" Running "), "{pods}");
        }
        assert!(pods.contains("hangar-manager"), "{pods}");
        self.succeed("status");
    }
}

/// The end of the log that an error names: the environment is removed when the test ends.
fn log_named_in(text: &str) -> String {
    let path = text.split("log: ").nth(1).and_then(|rest| rest.split([';', '\n']).next()).unwrap_or_default();
    let log = fs::read_to_string(path.trim()).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}

impl Drop for Environment {
    fn drop(&mut self) {
        let _ = self.run("down");
    }
}

#[test]
fn two_environments_live_side_by_side_and_leave_nothing() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (one, two) = (Environment::new("one"), Environment::new("two"));
    let output = one.succeed("up");
    assert_eq!(output.lines().last().map(Path::new), Some(one.kubeconfig().as_path()), "{output}");
    two.succeed("up");
    assert_ne!(fs::read_to_string(one.kubeconfig()).unwrap(), fs::read_to_string(two.kubeconfig()).unwrap());
    one.assert_healthy();
    two.assert_healthy();

    let again = one.succeed("up");
    assert!(again.contains("add-ons: all there") && again.contains("hangar: unchanged"), "{again}");

    one.succeed("down");
    one.assert_gone();
    two.assert_healthy();
    two.succeed("down");
    two.assert_gone();
    let nothing = one.succeed("status");
    assert!(nothing.contains("nothing runs"), "{nothing}");
    one.succeed("down");
}

/// Killed in the step after each of these; two of them in CI, all with `cargo xtask sweep up`.
const STEPS: [&str; 10] = [
    "checking this host",
    "programs",
    "packages",
    "images",
    "private network",
    "certificates and manifests",
    "machine",
    "control plane",
    "add-ons",
    "pods",
];
const SAMPLE: [&str; 2] = ["certificates and manifests", "machine"];

#[test]
fn a_killed_up_is_repaired_or_removed() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let is_whole = std::env::var_os("HANGAR_SWEEP").is_some_and(|value| value == "all");
    let steps: &[&str] = if is_whole { &STEPS } else { &SAMPLE };
    for (index, step) in steps.iter().enumerate() {
        let environment = Environment::new(&format!("kill{index}"));
        println!("killed after {step}, then {}", if index % 2 == 0 { "up" } else { "down" });
        environment.kill_after(step);
        if index % 2 == 0 {
            environment.succeed("up");
            environment.assert_healthy();
        }
        environment.succeed("down");
        environment.assert_gone();
    }
}
