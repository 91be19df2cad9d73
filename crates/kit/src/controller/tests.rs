//! The loop's promises, on tokio's paused clock.

use std::{
    collections::BTreeMap,
    sync::Mutex,
    sync::atomic::{AtomicUsize, Ordering},
};

use jiff::{SignedDuration, Timestamp};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::leadership::Always;

#[derive(Debug, thiserror::Error)]
#[error("{category}")]
struct Broken {
    category: &'static str,
    is_retryable: bool,
}

impl Failure for Broken {
    fn category(&self) -> &'static str {
        self.category
    }
    fn is_retryable(&self) -> bool {
        self.is_retryable
    }
}

/// Runs a script by key name and notes when each reconcile began.
struct Scripted {
    begun: Arc<Mutex<BTreeMap<String, Vec<u64>>>>,
    origin: Instant,
    running: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Scripted {
    fn new() -> Self {
        Self { begun: Arc::default(), origin: Instant::now(), running: Arc::default(), most: Arc::default() }
    }
}

struct Leave(Arc<AtomicUsize>);

impl Drop for Leave {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Reconcile for Scripted {
    type Error = Broken;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Settled, Broken> {
        let now = self.origin.elapsed().as_secs();
        let attempt = {
            let mut begun = self.begun.lock().unwrap();
            let times = begun.entry(key.name.clone()).or_default();
            times.push(now);
            times.len()
        };
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        let _leave = Leave(Arc::clone(&self.running));
        self.most.fetch_max(running, Ordering::SeqCst);
        match key.name.as_str() {
            "fails-thrice" if attempt <= 3 => Err(Broken { category: "Flaky", is_retryable: true }),
            "hopeless" => Err(Broken { category: "Hopeless", is_retryable: false }),
            "panics" if attempt == 1 => panic!("on purpose"),
            "hangs" if attempt == 1 => std::future::pending().await,
            "waits" if attempt == 1 => Ok(Settled::NotYet(NotYet::new("a friend", Duration::from_secs(7)))),
            "wakes" if attempt == 1 => {
                Ok(Settled::Done(Wake::At(Timestamp::now() + SignedDuration::from_secs(100))))
            }
            name if name.starts_with("slow") => {
                tokio::time::sleep(Duration::from_secs(10)).await;
                Ok(Settled::done())
            }
            _ => Ok(Settled::done()),
        }
    }
}

fn exact() -> ControllerBuilder {
    let backoff = Backoff { first: Duration::from_secs(1), jitter: 0.0, ..Backoff::default() };
    ControllerBuilder::new("test").backoff(backoff).deadline(Duration::from_secs(30))
}

/// Runs keys for a while of paused time and returns when each key's reconciles began.
async fn begun(builder: ControllerBuilder, keys: &[&str], seconds: u64) -> BTreeMap<String, Vec<u64>> {
    let reconciler = Scripted::new();
    let (begun, most) = (Arc::clone(&reconciler.begun), Arc::clone(&reconciler.most));
    let limit = builder.concurrency;
    let queue = builder.queue();
    for key in keys {
        queue.add(ObjectKey::cluster(*key));
    }
    let stop = CancellationToken::new();
    let running = tokio::spawn(builder.run(reconciler, Always, stop.clone()));
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    stop.cancel();
    running.await.unwrap();
    assert!(most.load(Ordering::SeqCst) <= limit);
    Arc::try_unwrap(begun).unwrap().into_inner().unwrap()
}

#[tokio::test(start_paused = true)]
async fn failures_back_off_per_key_and_success_ends_it() {
    let times = begun(exact(), &["fails-thrice", "fine"], 600).await;
    assert_eq!(times["fails-thrice"], [0, 1, 3, 7]);
    assert_eq!(times["fine"], [0]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_help_itself_waits_for_a_change() {
    let times = begun(exact(), &["hopeless"], 3600).await;
    assert_eq!(times["hopeless"], [0]);
}

#[tokio::test(start_paused = true)]
async fn waits_and_wakes_come_at_their_time() {
    let times = begun(exact(), &["waits", "wakes"], 600).await;
    assert_eq!(times["waits"], [0, 7]);
    // The wall clock is real here: what passes of it until the loop asks is missing.
    assert!(matches!(times["wakes"][..], [0, 50..=100]), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn a_panic_or_a_hang_is_a_failure_of_its_key_alone() {
    let times = begun(exact(), &["panics", "hangs", "fine"], 600).await;
    assert_eq!(times["panics"], [0, 1]);
    assert_eq!(times["hangs"], [0, 31]);
    assert_eq!(times["fine"], [0]);
}

#[tokio::test(start_paused = true)]
async fn no_more_than_the_limit_run_at_once() {
    let times = begun(exact().concurrency(2), &["slow-a", "slow-b", "slow-c"], 600).await;
    assert_eq!((&times["slow-a"][..], &times["slow-c"][..]), (&[0][..], &[10][..]));
}

#[tokio::test(start_paused = true)]
async fn followers_collect_keys_and_losing_leadership_aborts() {
    let reconciler = Scripted::new();
    let (begun, running) = (Arc::clone(&reconciler.begun), Arc::clone(&reconciler.running));
    let builder = exact();
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
    assert_eq!(begun.lock().unwrap()["slow"], [5, 67]);
    assert_eq!((stats.aborted, stats.done), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn shutdown_lets_work_end_and_aborts_what_does_not() {
    let reconciler = Scripted::new();
    let builder = exact().grace(Duration::from_secs(15)).deadline(Duration::from_hours(1));
    let queue = builder.queue();
    queue.add(ObjectKey::cluster("slow"));
    queue.add(ObjectKey::cluster("hangs"));
    let stop = CancellationToken::new();
    let start = Instant::now();
    let controller = tokio::spawn(builder.run(reconciler, Always, stop.clone()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    stop.cancel();
    let stats = controller.await.unwrap();
    assert_eq!((stats.done, stats.aborted, start.elapsed().as_secs()), (1, 1, 16));
}

#[tokio::test(start_paused = true)]
async fn a_follower_forgets_what_is_gone_and_only_that() {
    let mut builder = exact();
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
    let mut builder = exact();
    let keys: Vec<ObjectKey> = (0..50).map(|number| ObjectKey::cluster(format!("idle-{number}"))).collect();
    builder.roots.push(Box::new(move || Some(keys.clone())));
    let times = begun(builder, &["gone"], 3600).await;
    assert_eq!(times["gone"], [0], "what does not exist is not looked for");
    let idle: Vec<&Vec<u64>> =
        times.iter().filter(|(name, _)| name.starts_with("idle")).map(|(_, times)| times).collect();
    assert_eq!(idle.len(), 50);
    for times in &idle {
        assert!(times.len() >= 3 && times.windows(2).all(|pair| pair[1] - pair[0] <= 1200), "{times:?}");
    }
    let second: std::collections::BTreeSet<u64> = idle.iter().map(|times| times[1]).collect();
    assert!(second.len() > 10, "{second:?}");
}

/// Notes the last load it was told.
#[derive(Default)]
struct Load(Mutex<Vec<(usize, usize)>>);

impl Observer for Load {
    fn reconciled(&self, _: &'static str, _: &ObjectKey, _: Verdict, _: Duration) {}
    fn load(&self, _: &'static str, ready: usize, running: usize, _: usize) {
        self.0.lock().unwrap().push((ready, running));
    }
}

#[tokio::test(start_paused = true)]
async fn an_aborted_reconcile_is_not_reported_as_running() {
    let load = Arc::new(Load::default());
    let builder = exact().observer(load.clone());
    builder.queue().add(ObjectKey::cluster("slow"));
    let (lead, leadership) = watch::channel(true);
    let stop = CancellationToken::new();
    let controller = tokio::spawn(builder.run(Scripted::new(), leadership, stop.clone()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(load.0.lock().unwrap().last(), Some(&(0, 1)));
    lead.send(false).unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(load.0.lock().unwrap().last(), Some(&(1, 0)));
    stop.cancel();
    controller.await.unwrap();
}
