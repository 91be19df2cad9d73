//! Tests what the controller loop guarantees, on tokio's paused clock.

use std::{
    collections::BTreeMap,
    sync::Mutex,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::leadership::Always;

#[derive(Debug, thiserror::Error)]
#[error("{category}")]
pub(super) struct Broken {
    category: &'static str,
    is_retryable: bool,
    retry_after: Option<Duration>,
}

impl Failure for Broken {
    fn category(&self) -> &'static str {
        self.category
    }
    fn is_retryable(&self) -> bool {
        self.is_retryable
    }
    fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

/// Runs a script by key name and notes when each reconcile began, in milliseconds.
pub(super) struct Scripted {
    pub(super) begun: Arc<Mutex<BTreeMap<String, Vec<u64>>>>,
    origin: Instant,
    pub(super) running: Arc<AtomicUsize>,
    pub(super) most: Arc<AtomicUsize>,
}

impl Scripted {
    pub(super) fn new() -> Self {
        Self { begun: Arc::default(), origin: Instant::now(), running: Arc::default(), most: Arc::default() }
    }
}

struct Leave(Arc<AtomicUsize>);

impl Drop for Leave {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Without what is random.
pub(super) fn exact(name: &'static str) -> ControllerBuilder {
    let mut builder = ControllerBuilder::new(name);
    builder.patience.failures.jitter = 0.0;
    builder.patience.waits.jitter = 0.0;
    builder
}

fn wait(seconds: u64) -> Settled {
    Settled::waits(NotYet::new("a friend", Duration::from_secs(seconds)))
}

impl Reconcile for Scripted {
    type Error = Broken;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Settled, Broken> {
        let now = u64::try_from(self.origin.elapsed().as_millis()).unwrap();
        let attempt = {
            let mut begun = self.begun.lock().unwrap();
            let times = begun.entry(key.name.clone()).or_default();
            times.push(now);
            times.len()
        };
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        let _leave = Leave(Arc::clone(&self.running));
        self.most.fetch_max(running, Ordering::SeqCst);
        let failure = Broken { category: "Flaky", is_retryable: true, retry_after: None };
        let after = |seconds| Wake::At(Timestamp::now() + SignedDuration::from_secs(seconds));
        match key.name.split('-').next().unwrap_or_default() {
            "fails" if attempt <= 3 => Err(failure),
            "overloaded" if attempt <= 2 => {
                Err(Broken { retry_after: Some(Duration::from_secs(7)), ..failure })
            }
            "hopeless" => Err(Broken { category: "Hopeless", is_retryable: false, retry_after: None }),
            "panics" if attempt == 1 => panic!("on purpose"),
            "hangs" => std::future::pending().await,
            "hangs10s" => {
                tokio::time::sleep(Duration::from_secs(10)).await;
                Err(failure)
            }
            "overruns" if attempt == 1 => std::future::pending().await,
            "waits" => Ok(wait(0)),
            "waits7s" => Ok(wait(7)),
            "steps" => Ok(wait(if attempt == 4 { 2 } else { 0 }).progressed(attempt == 4)),
            "ticks" => Ok(wait(1).progressed(true)),
            "wakes" if attempt == 1 => Ok(Settled::until(after(100))),
            "expects" if attempt == 1 => Ok(Settled { wake: after(100), ..wait(600) }),
            "missed" => Ok(Settled { wake: Wake::At(Timestamp::UNIX_EPOCH), ..wait(0) }),
            "moves" => Ok(Settled::done().progressed(true)),
            "slow" => {
                tokio::time::sleep(Duration::from_secs(10)).await;
                Ok(Settled::done())
            }
            "brief" => {
                tokio::time::sleep(Duration::from_millis(500)).await;
                Ok(Settled::done())
            }
            _ => Ok(Settled::done()),
        }
    }
}

/// Runs keys for a while of paused time and returns when each key's reconciles began, and how many ran at once at most.
pub(super) async fn run(
    builder: ControllerBuilder,
    keys: impl IntoIterator<Item = ObjectKey>,
    seconds: u64,
) -> (BTreeMap<String, Vec<u64>>, usize) {
    let reconciler = Scripted::new();
    let (begun, most) = (Arc::clone(&reconciler.begun), Arc::clone(&reconciler.most));
    let queue = builder.queue();
    for key in keys {
        queue.add(key);
    }
    let stop = CancellationToken::new();
    let running = tokio::spawn(builder.run(reconciler, Always, stop.clone()));
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    stop.cancel();
    running.await.unwrap();
    (Arc::try_unwrap(begun).unwrap().into_inner().unwrap(), most.load(Ordering::SeqCst))
}

/// The same for objects without a namespace, each of which is a share.
pub(super) async fn begun(
    builder: ControllerBuilder,
    keys: &[&str],
    seconds: u64,
) -> BTreeMap<String, Vec<u64>> {
    run(builder, keys.iter().map(|key| ObjectKey::cluster(*key)), seconds).await.0
}

#[tokio::test(start_paused = true)]
async fn a_panic_or_a_hang_is_a_failure_of_its_key_alone() {
    let times = begun(exact("test"), &["panics", "overruns", "fine"], 700).await;
    assert_eq!(times["panics"], [0, 500]);
    assert_eq!(times["overruns"], [0, 600_500]);
    assert_eq!(times["fine"], [0]);
}

#[tokio::test(start_paused = true)]
async fn no_more_than_the_limit_run_at_once() {
    let keys = ["brief-a", "brief-b", "brief-c"].map(ObjectKey::cluster);
    let (times, most) = run(exact("test").concurrency(2), keys, 600).await;
    assert_eq!(
        (&times["brief-a"][..], &times["brief-b"][..], &times["brief-c"][..]),
        (&[0][..], &[0][..], &[500][..])
    );
    assert_eq!(most, 2);
}

#[tokio::test(start_paused = true)]
async fn followers_collect_keys_and_losing_leadership_aborts() {
    let reconciler = Scripted::new();
    let (begun, running) = (Arc::clone(&reconciler.begun), Arc::clone(&reconciler.running));
    let builder = exact("test");
    builder.queue().add(ObjectKey::cluster("slow"));
    let (lead, leadership) = watch::channel(false);
    let stop = CancellationToken::new();
    let controller = tokio::spawn(builder.run(reconciler, leadership, stop.clone()));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(begun.lock().unwrap().is_empty());
    lead.send(true).unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(running.load(Ordering::SeqCst), 1);
    lead.send(false).unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(running.load(Ordering::SeqCst), 0);
    lead.send(true).unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    stop.cancel();
    let stats = controller.await.unwrap();
    assert_eq!(begun.lock().unwrap()["slow"], [5_020, 67_020]);
    assert_eq!((stats.aborted, stats.done), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn shutdown_lets_work_end_and_aborts_what_does_not() {
    let reconciler = Scripted::new();
    let builder = exact("test");
    let queue = builder.queue();
    queue.add(ObjectKey::cluster("slow"));
    queue.add(ObjectKey::cluster("hangs"));
    let stop = CancellationToken::new();
    let start = Instant::now();
    let controller = tokio::spawn(builder.run(reconciler, Always, stop.clone()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    stop.cancel();
    let stats = controller.await.unwrap();
    assert_eq!((stats.done, stats.aborted, start.elapsed().as_secs()), (1, 1, 21));
}

#[tokio::test(start_paused = true)]
async fn a_follower_forgets_what_is_gone_and_only_that() {
    let mut builder = exact("test");
    let known = Arc::new(Mutex::new(None));
    let roots = Arc::clone(&known);
    builder.roots.push(Box::new(move || roots.lock().unwrap().clone()));
    let queue = builder.queue();
    queue.add(ObjectKey::cluster("here"));
    queue.add(ObjectKey::cluster("gone"));
    queue.add_after(ObjectKey::cluster("gone-later"), Duration::from_hours(9));
    let (lead, leadership) = watch::channel(false);
    let stop = CancellationToken::new();
    let reconciler = Scripted::new();
    let begun = Arc::clone(&reconciler.begun);
    let controller = tokio::spawn(builder.run(reconciler, leadership, stop.clone()));
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!((queue.depth(), queue.timers()), (2, 1), "nothing is decided from what is unknown");
    *known.lock().unwrap() = Some(vec![ObjectKey::cluster("here")]);
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!((queue.depth(), queue.timers()), (1, 0));
    lead.send(true).unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    stop.cancel();
    controller.await.unwrap();
    assert_eq!(begun.lock().unwrap().keys().collect::<Vec<_>>(), ["here"]);
}

#[tokio::test(start_paused = true)]
async fn what_nothing_wakes_is_looked_at_now_and_then_and_not_all_at_once() {
    let mut builder = exact("test");
    let keys: Vec<ObjectKey> = (0..50).map(|number| ObjectKey::cluster(format!("idle-{number}"))).collect();
    builder.roots.push(Box::new(move || Some(keys.clone())));
    let times = begun(builder, &["gone"], 3600).await;
    assert_eq!(times["gone"], [0], "what does not exist is not looked for");
    let idle: Vec<&Vec<u64>> =
        times.iter().filter(|(name, _)| name.starts_with("idle")).map(|(_, times)| times).collect();
    assert_eq!(idle.len(), 50);
    for times in &idle {
        assert!(times.len() >= 3 && times.windows(2).all(|pair| pair[1] - pair[0] <= 1_200_000), "{times:?}");
    }
    let second: std::collections::BTreeSet<u64> = idle.iter().map(|times| times[1] / 1_000).collect();
    assert!(second.len() > 10, "{second:?}");
}

/// Notes the loads it was told: ready, running, slow.
#[derive(Default)]
struct Loads(Mutex<Vec<(usize, usize, usize)>>);

impl Observer for Loads {
    fn reconciled(&self, _: &'static str, _: &ObjectKey, _: Verdict, _: Duration) {}
    fn load(&self, _: &'static str, load: Load) {
        self.0.lock().unwrap().push((load.ready, load.running, load.slow));
    }
}

#[tokio::test(start_paused = true)]
async fn an_aborted_reconcile_is_not_reported_as_running() {
    let load = Arc::new(Loads::default());
    let builder = exact("test").observer(load.clone());
    builder.queue().add(ObjectKey::cluster("slow"));
    let (lead, leadership) = watch::channel(true);
    let stop = CancellationToken::new();
    let controller = tokio::spawn(builder.run(Scripted::new(), leadership, stop.clone()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(load.0.lock().unwrap().last(), Some(&(0, 1, 0)));
    lead.send(false).unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(load.0.lock().unwrap().last(), Some(&(1, 0, 0)));
    stop.cancel();
    controller.await.unwrap();
}
