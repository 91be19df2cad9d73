//! Tests what long work guarantees, on tokio's paused clock.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    controller::{ControllerBuilder, Reconcile, Settled},
    leadership::Always,
    queue::Lane,
};

const SECOND: Duration = Duration::from_secs(1);

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("ns", name)
}

fn beside(at_once: usize) -> (LongWork<u32>, WorkQueue<ObjectKey>) {
    let queue = WorkQueue::default();
    let lane = |key: &ObjectKey| Lane { share: key.name[..1].to_owned(), namespace: String::new() };
    queue.limit(Limits::of_workers(10), lane);
    (LongWork::new(queue.clone(), at_once), queue)
}

/// Counts how many run now, and how many began.
#[derive(Clone, Default)]
struct Counts {
    now: Arc<AtomicUsize>,
    begun: Arc<AtomicUsize>,
}

struct Leave(Arc<AtomicUsize>);

impl Drop for Leave {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Counts {
    fn enter(&self) -> Leave {
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.now.fetch_add(1, Ordering::SeqCst);
        Leave(Arc::clone(&self.now))
    }

    fn start(&self, work: &LongWork<u32>, name: &str, identity: &str) {
        let counts = self.clone();
        work.start(&key(name), "copy", identity, async move |_| {
            let _leave = counts.enter();
            tokio::time::sleep(10 * SECOND).await;
            Ok(7)
        });
    }

    fn both(&self) -> (usize, usize) {
        (self.now.load(Ordering::SeqCst), self.begun.load(Ordering::SeqCst))
    }
}

#[tokio::test(start_paused = true)]
async fn work_runs_once_and_its_end_wakes_the_key() {
    let (work, queue) = beside(4);
    let counts = Counts::default();
    assert_eq!(work.state(&key("a"), "copy", "1"), WorkState::None);
    for _ in 0..3 {
        counts.start(&work, "a", "1");
    }
    assert_eq!(work.state(&key("a"), "copy", "1"), WorkState::Waiting);
    tokio::time::sleep(SECOND).await;
    assert!(matches!(work.state(&key("a"), "copy", "1"), WorkState::Running { progress: None, .. }));
    assert_eq!(work.state(&key("a"), "copy", "2"), WorkState::None);
    assert_eq!(queue.depth(), 0);
    assert_eq!(queue.next().await, key("a"));
    assert_eq!(work.state(&key("a"), "copy", "1"), WorkState::Finished(Ok(7)));
    counts.start(&work, "a", "1");
    assert_eq!(counts.both(), (0, 1));
    work.forget(&key("a"), "copy");
    assert_eq!(work.state(&key("a"), "copy", "1"), WorkState::None);
}

#[tokio::test(start_paused = true)]
async fn another_identity_begins_when_its_predecessor_has_ended() {
    let (work, _queue) = beside(4);
    let counts = Counts::default();
    counts.start(&work, "a", "1");
    tokio::time::sleep(SECOND).await;
    counts.start(&work, "a", "2");
    tokio::time::sleep(SECOND).await;
    assert_eq!(counts.both(), (1, 2));
    assert_eq!(work.state(&key("a"), "copy", "1"), WorkState::None);
    work.forget(&key("a"), "copy");
    counts.start(&work, "a", "2");
    tokio::time::sleep(SECOND).await;
    assert_eq!(counts.both(), (1, 3));
}

#[tokio::test(start_paused = true)]
async fn a_share_has_a_third_of_the_room() {
    let (work, _queue) = beside(6);
    let (many, other) = (Counts::default(), Counts::default());
    for number in 0..20 {
        many.start(&work, &format!("a{number}"), "1");
    }
    other.start(&work, "b", "1");
    tokio::time::sleep(SECOND).await;
    assert_eq!((many.both(), other.both()), ((2, 2), (1, 1)));
    for share in ["c", "d", "e", "f"] {
        other.start(&work, share, "1");
    }
    tokio::time::sleep(SECOND).await;
    assert_eq!(many.both().0 + other.both().0, 6);
    tokio::time::sleep(120 * SECOND).await;
    assert_eq!((many.both(), other.both()), ((0, 20), (0, 5)));
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failure_and_progress_wakes_the_key() {
    let (work, queue) = beside(4);
    work.start(&key("a"), "copy", "1", async |progress: Progress| {
        progress.report("3");
        tokio::time::sleep(5 * SECOND).await;
        panic!("on purpose")
    });
    assert_eq!(queue.next().await, key("a"));
    let state = work.state(&key("a"), "copy", "1");
    assert!(matches!(state, WorkState::Running { progress: Some(told), .. } if told == "3"));
    queue.done(&key("a"));
    assert_eq!(queue.next().await, key("a"));
    let WorkState::Finished(Err(failure)) = work.state(&key("a"), "copy", "1") else { panic!("not failed") };
    assert_eq!((failure.category, failure.is_retryable), ("Panic", true));
}

/// Starts work of its key and waits for it.
struct Starter {
    work: LongWork<u32>,
    counts: Counts,
}

impl Reconcile for Starter {
    type Error = crate::Error;

    async fn reconcile(&self, key: &ObjectKey) -> crate::Result<Settled> {
        self.counts.start(&self.work, &key.name, "1");
        Ok(Settled::done())
    }
}

#[tokio::test(start_paused = true)]
async fn who_no_longer_leads_stops_or_is_dropped_works_no_more() {
    let counts = Counts::default();
    let controller = || {
        let mut builder = ControllerBuilder::new("test");
        builder.queue().add(key("a"));
        let work = builder.long_work(4);
        (builder, Starter { work, counts: counts.clone() })
    };
    let stop = CancellationToken::new();
    let (lead, leadership) = tokio::sync::watch::channel(true);
    let (builder, starter) = controller();
    let queue = builder.queue();
    let running = tokio::spawn(builder.run(starter, leadership, stop.clone()));
    tokio::time::sleep(SECOND).await;
    assert_eq!(counts.both(), (1, 1));
    lead.send(false).unwrap();
    tokio::time::sleep(SECOND).await;
    assert_eq!(counts.both(), (0, 1), "leadership lost");
    lead.send(true).unwrap();
    queue.add(key("a"));
    tokio::time::sleep(SECOND).await;
    assert_eq!(counts.both(), (1, 2));
    stop.cancel();
    running.await.unwrap();
    assert_eq!(counts.both(), (0, 2), "stopped");

    let (builder, starter) = controller();
    let running = tokio::spawn(builder.run(starter, Always, CancellationToken::new()));
    tokio::time::sleep(SECOND).await;
    assert_eq!(counts.both(), (1, 3));
    running.abort();
    tokio::time::sleep(SECOND).await;
    assert_eq!(counts.both(), (0, 3), "dropped");
}
