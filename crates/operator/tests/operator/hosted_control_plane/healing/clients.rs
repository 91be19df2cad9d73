//! Clients of etcd: `etcdctl`, and somebody who writes and remembers what was acknowledged.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hangar_parts::{Parts, Set};

use super::super::world::eventually;
use super::members::MOST;

/// Members find each other by the names of Services, which nothing serves here.
pub(super) fn with_hosts(directory: &Path, command: &str) -> Vec<String> {
    let hosts = directory.join("hosts");
    let script = format!("mount --bind {} /etc/hosts && {command}", hosts.display());
    vec!["--mount".to_owned(), "sh".to_owned(), "-c".to_owned(), script]
}

/// Calls the members by their names, with a certificate of theirs.
#[derive(Clone)]
pub(crate) struct Etcdctl {
    directory: PathBuf,
    namespace: String,
}

impl Etcdctl {
    pub(super) fn new(directory: PathBuf, namespace: &str) -> Self {
        Self { directory, namespace: namespace.to_owned() }
    }

    pub(crate) fn run(&self, command: &str) -> Result<String, String> {
        self.call(0..MOST, command, b"")
    }

    /// At one member alone.
    pub(crate) fn one(&self, ordinal: u8, command: &str) -> Result<String, String> {
        self.call(ordinal..ordinal + 1, command, b"")
    }

    /// With a value that is too long for a command line.
    pub(crate) fn put(&self, key: &str, value: &[u8]) -> Result<String, String> {
        self.call(0..MOST, &format!("put {key}"), value)
    }

    fn call(&self, members: Range<u8>, command: &str, input: &[u8]) -> Result<String, String> {
        let program = Parts::from_env().unwrap().program(Set::Etcd36, "etcdctl").unwrap();
        let endpoints: Vec<String> = members
            .map(|ordinal| format!("https://etcd{ordinal}-demo.{}.svc:2379", self.namespace))
            .collect();
        let place = self.directory.display();
        let command = format!(
            "exec {} --endpoints={} --cacert={place}/etcd.crt --cert={place}/etcd-server.crt \
             --key={place}/etcd-server.key --dial-timeout=3s --command-timeout=5s {command}",
            program.display(),
            endpoints.join(",")
        );
        let mut running = Command::new("unshare")
            .args(with_hosts(&self.directory, &command))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Who has ended already does not read it.
        let _ = running.stdin.take().unwrap().write_all(input);
        let ended = running.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        if ended.status.success() { Ok(text(ended.stdout)) } else { Err(text(ended.stderr)) }
    }

    /// Lets a pod's member lead, of three.
    pub(crate) async fn lead(&self, pod: &str) {
        eventually("another member leads", async || {
            let list = self.call(0..3, "member list", b"").unwrap_or_default();
            let entry = list.lines().find(|line| line.contains(&format!(", {pod}, ")));
            let id = entry.and_then(|line| line.split(',').next());
            id.is_some_and(|id| self.call(0..3, &format!("move-leader {id}"), b"").is_ok())
        })
        .await;
    }
}

/// What became of writes.
#[derive(Default)]
struct Written {
    acknowledged: BTreeSet<String>,
    failed: usize,
    longest: Duration,
}

/// Writes keys, one after the other, and remembers which were acknowledged.
pub(super) struct Writer {
    stop: Arc<AtomicBool>,
    written: Arc<Mutex<Written>>,
    thread: std::thread::JoinHandle<()>,
}

/// What there is to say in the end.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) acknowledged: usize,
    /// Of these nobody knows whether they are there.
    pub(super) failed: usize,
    /// The longest time from one that was acknowledged to the next.
    pub(super) longest: Duration,
    /// What was acknowledged and is not there.
    pub(super) missing: Vec<String>,
}

impl Writer {
    pub(super) fn start(etcdctl: &Etcdctl) -> Self {
        let (stop, written) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Written>>::default());
        let (etcdctl, ended, told) = (etcdctl.clone(), Arc::clone(&stop), Arc::clone(&written));
        let thread = std::thread::spawn(move || {
            let mut last = Instant::now();
            for number in 0.. {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let key = format!("/written/{number:06}");
                let answer = etcdctl.run(&format!("put {key} value"));
                let mut written = told.lock().unwrap();
                match answer {
                    Ok(_) => {
                        written.acknowledged.insert(key);
                        written.longest = written.longest.max(last.elapsed());
                        last = Instant::now();
                    }
                    Err(_) => written.failed += 1,
                }
            }
        });
        Self { stop, written, thread }
    }

    pub(super) fn end(self, etcdctl: &Etcdctl) -> Report {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        let there = etcdctl.run("get --prefix --keys-only /written/").unwrap();
        let there: BTreeSet<&str> = there.lines().collect();
        let written = self.written.lock().unwrap();
        let missing = written.acknowledged.iter().filter(|key| !there.contains(key.as_str()));
        let (acknowledged, failed) = (written.acknowledged.len(), written.failed);
        Report { acknowledged, failed, longest: written.longest, missing: missing.cloned().collect() }
    }
}
