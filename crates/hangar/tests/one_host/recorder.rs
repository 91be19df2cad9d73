//! Clients of a tenant that never stop: one writes, and remembers what was acknowledged; one calls an aggregated API.
//!
//! Each keeps its connection until a request fails, and then asks again, as clients do. What they see is counted and told
//! for each chapter of a test. How long a gap was decides nothing: that something acknowledged is missing does, and that
//! nothing is answered any more.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::extension::GREETINGS;
use crate::kubectl::Kubectl;
use crate::waiting::{eventually, is};

/// Between two requests of a client: with more of them the host would be busy with nothing else.
const PAUSE: Duration = Duration::from_millis(50);
/// A client that gets no answer for so long asks again, over another connection.
const ATTEMPT: Duration = Duration::from_secs(5);
/// More than what was on its way when a chapter began.
const ENOUGH: u64 = 5;
const LABEL: &str = "hangar.test/recorded";

/// Stops with the test.
pub(crate) struct Recorder {
    writer: Arc<Track>,
    /// Where there is an aggregated API.
    caller: Option<Arc<Track>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// What one client has seen.
#[derive(Default)]
struct Track(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    /// Numbers of what succeeded: what was acknowledged.
    acknowledged: BTreeSet<u64>,
    chapter: Chapter,
    failures: u64,
    longest: Duration,
}

/// What one client has seen since the last step of the test.
#[derive(Default)]
struct Chapter {
    acknowledged: u64,
    failures: BTreeMap<String, u64>,
    /// The most attempts that one request needed.
    attempts: u64,
    longest: Duration,
}

impl Recorder {
    pub(crate) fn start(kubeconfig: &Path) -> Self {
        Self::of(kubeconfig, true)
    }

    /// Only writes.
    pub(crate) fn of_writes(kubeconfig: &Path) -> Self {
        Self::of(kubeconfig, false)
    }

    fn of(kubeconfig: &Path, calls: bool) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let spawn = |request: fn(u64) -> Request<Vec<u8>>| {
            let track = Arc::new(Track::default());
            let (stop, own, kubeconfig) = (stop.clone(), track.clone(), kubeconfig.to_owned());
            let thread = std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(own.fill(&kubeconfig, request, &stop));
            });
            (track, thread)
        };
        let (writer, writing) = spawn(write);
        let (caller, calling) = if calls { Some(spawn(call)).unzip() } else { (None, None) };
        Self { writer, caller, stop, threads: std::iter::once(writing).chain(calling).collect() }
    }

    /// The numbers of all writes that were acknowledged so far.
    pub(crate) fn written(&self) -> BTreeSet<u64> {
        self.writer.seen().acknowledged.clone()
    }

    /// Both clients are served after this moment.
    #[track_caller]
    pub(crate) fn goes_on(&self) {
        for (what, track) in self.tracks() {
            let before = track.seen().chapter.acknowledged;
            eventually("clients are served", || {
                let Chapter { acknowledged, failures, .. } = &track.seen().chapter;
                is(*acknowledged >= before + ENOUGH, || {
                    format!("{what}: {acknowledged} succeeded, {failures:?}")
                })
            });
        }
    }

    /// Tells what clients have seen since the last chapter.
    pub(crate) fn close(&self, chapter: &str) {
        for (what, track) in self.tracks() {
            let Chapter { acknowledged, failures, attempts, longest } =
                std::mem::take(&mut track.seen().chapter);
            let failed: u64 = failures.values().sum();
            let gap = longest.as_secs_f64();
            println!(
                "    {chapter}: {what}: {acknowledged} succeeded, {failed} attempts failed, {attempts} attempts at most, longest gap {gap:.2} s"
            );
            for (failure, count) in failures {
                println!("        {count} x {failure}");
            }
        }
    }

    /// Ends the clients. Everything that was acknowledged is there.
    pub(crate) fn finish(mut self, tenant: &Kubectl) {
        self.stop.store(true, Ordering::SeqCst);
        for thread in std::mem::take(&mut self.threads) {
            thread.join().unwrap();
        }
        for (what, track) in self.tracks() {
            let Seen { acknowledged, failures, longest, .. } = &*track.seen();
            let (count, gap) = (acknowledged.len(), longest.as_secs_f64());
            println!(
                "    in all: {what}: {count} succeeded, {failures} attempts failed, longest gap {gap:.2} s"
            );
        }
        let there = there(tenant);
        let missing: Vec<_> = self.writer.seen().acknowledged.difference(&there).copied().collect();
        assert!(missing.is_empty(), "acknowledged and lost: {missing:?}");
    }

    fn tracks(&self) -> impl Iterator<Item = (&'static str, &Track)> {
        let caller = self.caller.iter().map(|caller| ("calls of the aggregated API", &**caller));
        std::iter::once(("writes", &*self.writer)).chain(caller)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
    }
}

impl Track {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, failure: String) {
        let mut seen = self.seen();
        *seen.chapter.failures.entry(failure).or_default() += 1;
        seen.failures += 1;
    }

    fn acknowledged(&self, number: u64, attempts: u64, gap: Duration) {
        let mut seen = self.seen();
        seen.acknowledged.insert(number);
        seen.longest = seen.longest.max(gap);
        let chapter = &mut seen.chapter;
        chapter.acknowledged += 1;
        chapter.attempts = chapter.attempts.max(attempts);
        chapter.longest = chapter.longest.max(gap);
    }

    async fn fill(&self, kubeconfig: &Path, request: fn(u64) -> Request<Vec<u8>>, stop: &AtomicBool) {
        let text = Kubeconfig::read_from(kubeconfig).unwrap();
        let config = Config::from_custom_kubeconfig(text, &KubeConfigOptions::default()).await.unwrap();
        let client = Client::try_from(config).unwrap();
        let mut last = Instant::now();
        for number in 0.. {
            let mut attempts = 1;
            while let Err(failure) = attempt(&client, request(number), attempts > 1).await {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                attempts += 1;
                self.failed(failure);
                tokio::time::sleep(PAUSE).await;
            }
            let now = Instant::now();
            let gap = now - last;
            last = now;
            self.acknowledged(number, attempts, gap);
            if stop.load(Ordering::SeqCst) {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// The numbers of the writes that a cluster has.
pub(crate) fn there(tenant: &Kubectl) -> BTreeSet<u64> {
    let path = "jsonpath={range .items[*]}{.data.number} {end}";
    let there = tenant.succeed(&["get", "configmaps", "-l", LABEL, "-o", path]);
    there.split_whitespace().map(|number| number.parse().unwrap()).collect()
}

/// What a client is told when it fails.
async fn attempt(client: &Client, request: Request<Vec<u8>>, is_repeated: bool) -> Result<(), String> {
    match tokio::time::timeout(ATTEMPT, client.request::<Value>(request)).await {
        Err(_) => Err("no answer".to_owned()),
        Ok(Ok(_)) => Ok(()),
        // The answer to an earlier attempt was lost, and is given now.
        Ok(Err(kube::Error::Api(status))) if is_repeated && status.is_already_exists() => Ok(()),
        Ok(Err(kube::Error::Api(status))) => {
            // Names of objects and addresses would make each failure one of its own.
            let words: Vec<&str> =
                status.message.split_whitespace().filter(|word| !has_digit(word)).collect();
            Err(format!("{}: {}", status.code, words.join(" ")))
        }
        Ok(Err(error)) => Err(root(&error)),
    }
}

fn has_digit(word: &str) -> bool {
    word.contains(|letter: char| letter.is_ascii_digit())
}

fn root(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), root)
}

/// The API server must ask the webhook before it makes one.
fn write(number: u64) -> Request<Vec<u8>> {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("recorded-{number}"), "labels": {LABEL: "true"}},
        "data": {"number": number.to_string()},
    });
    Request::post("/api/v1/namespaces/default/configmaps")
        .header("Content-Type", "application/json")
        .body(object.to_string().into_bytes())
        .unwrap()
}

fn call(_: u64) -> Request<Vec<u8>> {
    Request::get(GREETINGS).body(Vec::new()).unwrap()
}
