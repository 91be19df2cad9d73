//! An environment that a test starts, kills, inspects and removes.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use hangar_host::sample::Sample;
use hangar_machine::net::Netns;
use hangar_parts::{Parts, Set};
use serde_json::Value;

use crate::kubectl::Kubectl;
use crate::waiting::{eventually, is};

/// One environment of these tests. Dropping it removes what is left.
pub(crate) struct Environment {
    pub(crate) name: String,
    pub(crate) state: PathBuf,
    program: PathBuf,
    /// Whether `up` makes a first cluster too.
    has_cluster: bool,
    /// More for `up`.
    arguments: Vec<&'static str>,
}

impl Environment {
    pub(crate) fn new(name: &str) -> Self {
        Self::with_program(name, PathBuf::from(env!("CARGO_BIN_EXE_hangar")))
    }

    pub(crate) fn with_program(name: &str, program: PathBuf) -> Self {
        // One place for all of them, as on a real host.
        let state = PathBuf::from(format!("/var/lib/hangar-test-{}", std::process::id()));
        Self {
            state,
            program,
            name: format!("{name}{}", std::process::id()),
            has_cluster: false,
            arguments: Vec::new(),
        }
    }

    /// The same with a first cluster.
    pub(crate) fn with_cluster(mut self) -> Self {
        self.has_cluster = true;
        self
    }

    /// The same with more arguments for `up`.
    pub(crate) fn with_arguments(mut self, arguments: &[&'static str]) -> Self {
        self.arguments.extend(arguments);
        self
    }

    pub(crate) fn command(&self, verb: &str) -> Command {
        let mut command = self.words(&[verb]);
        if verb == "up" && !self.has_cluster {
            command.arg("--no-cluster");
        }
        if verb == "up" {
            command.args(&self.arguments);
        }
        command
    }

    fn words(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(words)
            .arg(format!("--name={}", self.name))
            .arg(format!("--state={}", self.state.display()));
        command
    }

    pub(crate) fn run(&self, verb: &str) -> Output {
        self.command(verb).output().unwrap()
    }

    #[track_caller]
    pub(crate) fn succeed(&self, verb: &str) -> String {
        let output = self.run(verb);
        let text =
            format!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
        assert!(output.status.success(), "{verb}: {text}\n{}", log_named_in(&text));
        text
    }

    /// `hangar node stop` or `start`.
    #[track_caller]
    pub(crate) fn node(&self, action: &str, node: &str) {
        let output = self.words(&["node", action, node]).output().unwrap();
        assert!(output.status.success(), "{action} {node}: {}", String::from_utf8_lossy(&output.stderr));
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.state.join(&self.name).join("management.kubeconfig")
    }

    /// The address of the management machine: its API server, the resolver.
    pub(crate) fn address(&self) -> Ipv4Addr {
        Kubectl::new(self.kubeconfig()).server().0.parse().unwrap()
    }

    /// The kubeconfig of a cluster that runs in this environment.
    pub(crate) fn cluster_kubeconfig(&self, cluster: &str) -> PathBuf {
        self.state.join(&self.name).join(format!("{cluster}.kubeconfig"))
    }

    /// What `hangar describe cluster` prints.
    pub(crate) fn describe(&self, cluster: &str) -> String {
        let output = Command::new(&self.program)
            .args(["describe", "cluster", cluster, "--kubeconfig"])
            .arg(self.kubeconfig())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// What a cluster in this environment is made from.
    pub(crate) fn sample(&self, name: &str, version: &str) -> Sample {
        let path = self.state.join(&self.name).join("cloud/config.json");
        let settings: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let text = |pointer: &str| settings["cloud"].pointer(pointer).unwrap().as_str().unwrap().to_owned();
        Sample {
            name: name.to_owned(),
            namespace: "default".to_owned(),
            version: version.to_owned(),
            auth_url: format!("{}/identity/v3", text("/public_url")),
            username: text("/users/0/name"),
            password: text("/users/0/password"),
            project: text("/users/0/projects/0"),
            region: text("/region"),
            external_network: text("/external_network/name"),
            flavor: text("/flavors/0/name"),
            image: format!("node-{version}"),
        }
    }

    /// Kills the manager's process.
    pub(crate) fn kill_manager(&self) {
        self.process(&["hangar", "manager"]).expect("one manager runs").kill();
    }

    /// The one process of this environment whose program has this name and whose first arguments are these.
    pub(crate) fn process(&self, words: &[&str]) -> Option<Process> {
        let found = self.processes().find(words);
        assert!(found.len() <= 1, "several run {words:?}: {found:?}");
        found.first().cloned()
    }

    pub(crate) fn processes(&self) -> Processes {
        Processes(self.name.clone())
    }

    /// The network namespace of this environment whose name begins so.
    pub(crate) fn network(&self, name: &str) -> Netns {
        let begins = |directory: &Path, name: &str| {
            let entries = fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path());
            let is_named =
                |path: &PathBuf| path.file_name().is_some_and(|own| own.to_string_lossy().starts_with(name));
            // The least: where there is one of this very name, it.
            entries.filter(is_named).min().unwrap_or_else(|| panic!("no {name} in {}", directory.display()))
        };
        let directory = begins(Path::new("/run/hangar"), &format!("{}-", self.name));
        Netns::at(begins(&directory.join("netns"), name))
    }

    /// The routes in one of this environment's network namespaces.
    pub(crate) fn routes(&self, namespace: &str) -> String {
        let mut command = Command::new("ip");
        command.args(["route", "show", "table", "all"]);
        let output = self.network(namespace).output(&mut command).unwrap();
        assert!(output.status.success(), "{namespace}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts `up` and kills it so much after it reported the step.
    pub(crate) fn kill_after(&self, step: &str, milliseconds: u64) {
        let mut child = self.command("up").stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        // Open until the kill: it must be the kill that ends it.
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut said = Vec::new();
        let reached = lines.any(|line| {
            said.push(line);
            said.last().is_some_and(|line| line.contains(&format!("s  {step}: ")))
        });
        assert!(reached, "up ended before {step}:\n{}", said.join("\n"));
        // Into the middle of a later step.
        std::thread::sleep(Duration::from_millis(milliseconds));
        assert!(child.try_wait().unwrap().is_none(), "up ended before the kill");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Processes, mounts, links, network namespaces and control groups that are this environment's.
    pub(crate) fn leftovers(&self) -> BTreeSet<String> {
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
        found.extend(abandoned_builders());
        let directory = self.state.join(&self.name);
        if directory.exists() {
            found.insert(format!("directory {}", directory.display()));
        }
        found
    }

    /// Leaves it to whoever looks into it, and says how it is removed.
    pub(crate) fn keep(self) {
        println!("kept: hangar down --name={} --state={}", self.name, self.state.display());
        std::mem::forget(self);
    }

    #[track_caller]
    pub(crate) fn assert_gone(&self) {
        assert_eq!(self.leftovers(), BTreeSet::new());
    }

    /// What runs may just have been started again: two environments share a host that is busy.
    #[track_caller]
    pub(crate) fn assert_healthy(&self) {
        let management = Kubectl::new(self.kubeconfig());
        eventually("all pods run", || {
            let pods = management.attempt(&["get", "pods", "--all-namespaces", "--no-headers"])?;
            let is_running = pods.lines().count() >= 9 && pods.lines().all(|pod| pod.contains(" Running "));
            is(is_running && pods.contains("hangar-manager"), || pods)
        });
        self.succeed("status");
    }
}

/// The processes of an environment, by its name.
pub(crate) struct Processes(String);

impl Processes {
    /// Those whose program has this name and whose first arguments are these.
    pub(crate) fn find(&self, words: &[&str]) -> Vec<Process> {
        let is_ours = |directory: &Path| {
            let groups = fs::read_to_string(directory.join("cgroup")).unwrap_or_default();
            let line = String::from_utf8(fs::read(directory.join("cmdline")).unwrap_or_default());
            let line = line.unwrap_or_default();
            let mut arguments = line.split('\0');
            let program = arguments.next().and_then(|program| program.rsplit('/').next());
            groups.contains(&self.0)
                && program == words.first().copied()
                && words.iter().skip(1).all(|word| arguments.next() == Some(word))
        };
        let directories = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let found: Vec<Process> =
            directories.filter(|path| is_ours(path)).filter_map(|path| Process::read(&path)).collect();
        // A child that is about to become another program still looks like its parent.
        let is_child = |process: &&Process| found.iter().any(|other| other.id == process.parent);
        found.iter().filter(|process| !is_child(process)).cloned().collect()
    }
}

/// A process, by the id it has on the host and by when it was started.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Process {
    id: String,
    parent: String,
    start: String,
}

impl Process {
    /// The number may be given to another one; together with its start it is not.
    fn read(directory: &Path) -> Option<Self> {
        let stat = fs::read_to_string(directory.join("stat")).ok()?;
        let mut words = stat.rsplit(')').next()?.split_whitespace();
        let (parent, start) = (words.nth(1)?.to_owned(), words.nth(17)?.to_owned());
        Some(Self { id: directory.file_name()?.to_string_lossy().into_owned(), parent, start })
    }

    /// The files as it sees them.
    pub(crate) fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.id))
    }

    /// The network as it sees it.
    pub(crate) fn network(&self) -> Netns {
        Netns::at(format!("/proc/{}/ns/net", self.id))
    }

    pub(crate) fn kill(&self) {
        assert!(Command::new("kill").args(["-9", &self.id]).status().unwrap().success());
    }
}

/// The pinned kubectl, which must succeed.
#[track_caller]
pub(crate) fn kubectl(kubeconfig: &Path, arguments: &[&str]) -> String {
    let program = Parts::from_env().unwrap().program(Set::Kubernetes134, "kubectl").unwrap();
    let output = Command::new(program).args(arguments).env("KUBECONFIG", kubeconfig).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Throw-away machines in which somebody made images and was killed. Nobody's while another process makes some.
fn abandoned_builders() -> Vec<String> {
    let images = Parts::from_env().unwrap().cache().root().join("images");
    let Ok(lock) = fs::File::open(images.join(".lock")) else { return Vec::new() };
    if lock.try_lock().is_err() {
        return Vec::new();
    }
    let names = fs::read_dir(&images).unwrap().flatten().map(|entry| entry.file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(".building-")).map(|name| format!("builder {name}")).collect()
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
