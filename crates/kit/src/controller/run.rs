//! The loop itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use tokio::{
    task::{Id, JoinError, JoinSet},
    time::Instant,
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::{ControllerBuilder, ControllerStats, Load, Reconcile, Settled, Verdict};
use crate::{
    ObjectKey,
    error::Failure,
    leadership::Leadership,
    queue::{Lane, Limits},
};

/// Short against every lease, long against a spinning processor.
const LEADERSHIP_PAUSE: Duration = Duration::from_millis(20);

/// Rare against the cost of a check of every key, often against what can be created and deleted meanwhile.
const COMPACT_EVERY: Duration = Duration::from_mins(10);

/// Nothing should need it: every wait has a change or a moment that ends it. It bounds the harm of one that has neither,
/// such as a read that failed and came back without a change.
const LOOK_AGAIN_EVERY: Duration = Duration::from_mins(10);

/// Every call has its own limit; this only catches what forgot one.
const DEADLINE: Duration = Duration::from_mins(10);

/// How long shutdown waits for running reconciles: longer than any call, shorter than a pod's grace period.
const GRACE: Duration = Duration::from_secs(20);

/// How a reconcile ended, reduced to what the loop acts on.
enum End {
    Settled(Settled),
    Failed {
        category: &'static str,
        is_retryable: bool,
        is_user_fault: bool,
        retry_after: Option<Duration>,
        text: String,
    },
}

struct Loop<R, L> {
    builder: ControllerBuilder,
    reconciler: Arc<R>,
    leadership: Arc<L>,
    running: JoinSet<End>,
    tasks: BTreeMap<Id, (ObjectKey, Instant)>,
    stats: ControllerStats,
}

impl ControllerBuilder {
    /// Runs until `stop`: waits for its watches and for leadership, reconciles, pauses when leadership is lost.
    pub async fn run<R: Reconcile, L: Leadership>(
        mut self,
        reconciler: R,
        leadership: L,
        stop: CancellationToken,
    ) -> ControllerStats {
        let watches = std::mem::take(&mut self.synced);
        let name = self.name;
        let share = std::mem::replace(&mut self.share, Box::new(|_| String::new()));
        self.queue.limit(Limits::of_workers(self.concurrency), move |key| Lane {
            share: share(key),
            namespace: key.namespace_or_empty().to_owned(),
        });
        let mut this = Loop {
            builder: self,
            reconciler: Arc::new(reconciler),
            leadership: Arc::new(leadership),
            running: JoinSet::new(),
            tasks: BTreeMap::new(),
            stats: ControllerStats::default(),
        };
        let ready = async {
            for (watch, synced) in watches {
                tracing::debug!(controller = name, watch, "waiting for the first list");
                synced.await;
            }
        };
        if stop.run_until_cancelled(ready).await.is_some() {
            while !stop.is_cancelled() {
                if this.leadership.is_leading() {
                    this.lead(&stop).await;
                    continue;
                }
                if stop.run_until_cancelled(this.follow()).await.is_none() {
                    break;
                }
            }
        }
        this.stats
    }
}

impl<R: Reconcile, L: Leadership> Loop<R, L> {
    /// Until leadership may have been gained.
    async fn follow(&mut self) {
        let leadership = Arc::clone(&self.leadership);
        let mut gained = leadership.changed(false);
        while tokio::time::timeout(COMPACT_EVERY, &mut gained).await.is_err() {
            self.compact();
        }
        // A lease about to end may be announced and not usable: ask again, but not in a tight loop.
        tokio::time::sleep(LEADERSHIP_PAUSE).await;
    }

    /// Forgets keys of objects that are gone. A follower takes nothing from its queue, and objects come and go for
    /// as long as it lives; those that exist are looked at when it leads, whether they are in the queue or not.
    fn compact(&self) {
        if let Some(exist) = self.existing() {
            self.builder.queue.retain(|key| exist.contains(key));
            self.report_load();
        }
    }

    /// The keys of all root objects, none when they are unknown or there are no roots.
    fn existing(&self) -> Option<BTreeSet<ObjectKey>> {
        let known: Option<Vec<Vec<ObjectKey>>> = self.builder.roots.iter().map(|roots| roots()).collect();
        Some(known.filter(|known| !known.is_empty())?.into_iter().flatten().collect())
    }

    /// One term of leadership.
    async fn lead(&mut self, stop: &CancellationToken) {
        let name = self.builder.name;
        tracing::info!(controller = name, "reconciling");
        // One future for the whole term: asked anew each time, a loss that is followed by a new term at once would
        // go unnoticed.
        let leadership = Arc::clone(&self.leadership);
        let mut lost = leadership.changed(true);
        self.builder.patience.begin_anew();
        for roots in &self.builder.roots {
            // Not known now means the watch will announce it.
            for key in roots().into_iter().flatten() {
                self.builder.queue.add(key);
            }
        }
        let queue = self.builder.queue.clone();
        let mut look_again = tokio::time::interval_at(Instant::now() + LOOK_AGAIN_EVERY, LOOK_AGAIN_EVERY);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => {
                    self.drain().await;
                    return;
                }
                () = &mut lost => {
                    tracing::warn!(controller = name, running = self.running.len(), "leadership lost");
                    self.abort().await;
                    return;
                }
                Some(ended) = self.running.join_next_with_id(), if !self.running.is_empty() => self.ended(ended),
                _ = look_again.tick() => self.spread_roots(),
                key = queue.next() => self.start(key),
            }
        }
    }

    /// Every root object is looked at within the next interval, at a moment of its own: all at once would be a burst of
    /// calls to clouds and tenants. Those that are due earlier stay as they are.
    fn spread_roots(&mut self) {
        for key in self.builder.roots.iter().filter_map(|roots| roots()).flatten() {
            self.builder.queue.add_after(key, LOOK_AGAIN_EVERY.mul_f64(rand::random()));
        }
        self.builder.patience.compact();
        if let Some(exist) = self.existing() {
            self.builder.beside.iter().for_each(|work| work.retain(&exist));
        }
    }

    fn start(&mut self, key: ObjectKey) {
        if let Some(length) = self.builder.patience.held(&key) {
            self.builder.queue.postpone(key, length);
            self.report_load();
            return;
        }
        let reconciler = Arc::clone(&self.reconciler);
        let span = tracing::info_span!("reconcile", controller = self.builder.name, %key);
        let task = {
            let key = key.clone();
            async move {
                match tokio::time::timeout(DEADLINE, reconciler.reconcile(&key)).await {
                    Ok(Ok(settled)) => End::Settled(settled),
                    Ok(Err(error)) => End::from_error(&error),
                    Err(_) => End::failed("Deadline", format!("no end after {} s", DEADLINE.as_secs())),
                }
            }
        };
        let handle = self.running.spawn(task.instrument(span));
        self.tasks.insert(handle.id(), (key, Instant::now()));
        self.report_load();
    }

    fn ended(&mut self, ended: Result<(Id, End), JoinError>) {
        let (id, end) = match ended {
            Ok((id, end)) => (id, end),
            Err(error) if error.is_panic() => (error.id(), End::failed("Panic", error.to_string())),
            Err(error) => {
                // Aborted: the key's reconcile did not happen.
                self.stats.aborted += 1;
                if let Some((key, _)) = self.tasks.remove(&error.id()) {
                    self.builder.queue.add(key.clone());
                    self.builder.queue.done(&key);
                }
                self.report_load();
                return;
            }
        };
        let Some((key, started)) = self.tasks.remove(&id) else {
            return;
        };
        let verdict = self.conclude(&key, end);
        if let Some(observer) = &self.builder.observer {
            observer.reconciled(self.builder.name, &key, verdict, started.elapsed());
        }
        self.builder.queue.done(&key);
        self.report_load();
    }

    /// Decides when the key is looked at again.
    fn conclude(&mut self, key: &ObjectKey, end: End) -> Verdict {
        let ControllerBuilder { name: controller, queue, patience, .. } = &mut self.builder;
        match end {
            End::Settled(Settled { has_progressed, waits, wake, is_put_off }) => {
                let wake = wake.remaining(Timestamp::now());
                if has_progressed {
                    patience.progressed(key);
                }
                let Some(wait) = waits else {
                    self.stats.done += 1;
                    if !has_progressed && !is_put_off {
                        patience.settled(key.clone());
                    }
                    if let Some(length) = wake {
                        queue.add_after(key.clone(), length);
                    }
                    return Verdict::Done;
                };
                self.stats.not_yet += 1;
                tracing::debug!(controller, %key, reason = %wait.reason, has_progressed, "not yet");
                let (after, wake) = if has_progressed {
                    (wait.after, wake)
                } else {
                    // A moment that is past was no reason to go on either.
                    let (_, after) = patience.tried(key.clone(), wait.after, false);
                    (after, wake.filter(|length| !length.is_zero()))
                };
                queue.add_after(key.clone(), wake.map_or(after, |wake| wake.min(after)));
                Verdict::NotYet
            }
            End::Failed { category, is_retryable, is_user_fault, retry_after, text } => {
                self.stats.failed += 1;
                let asked = retry_after.unwrap_or_default();
                let (attempts, delay) = patience.tried(key.clone(), asked, true);
                if is_user_fault {
                    tracing::info!(controller, %key, category, error = %text, "the object needs a change");
                } else {
                    tracing::warn!(controller, %key, category, attempts, error = %text, "reconcile failed");
                }
                if is_retryable {
                    queue.add_after(key.clone(), delay);
                }
                Verdict::Failed(category)
            }
        }
    }

    async fn drain(&mut self) {
        // Whoever leads next resumes it; it might not end for hours.
        self.abort_long_work().await;
        let running = self.running.len();
        let all_ended = async {
            while let Some(ended) = self.running.join_next_with_id().await {
                self.ended(ended);
            }
        };
        if tokio::time::timeout(GRACE, all_ended).await.is_err() {
            tracing::warn!(controller = self.builder.name, running, "aborting overdue reconciles");
            self.abort().await;
        }
    }

    async fn abort(&mut self) {
        self.running.abort_all();
        self.abort_long_work().await;
        while let Some(ended) = self.running.join_next_with_id().await {
            self.ended(ended);
        }
    }

    async fn abort_long_work(&mut self) {
        for task in self.builder.beside.iter().flat_map(|work| work.abort()) {
            let _ = task.await;
        }
    }

    fn report_load(&self) {
        if let Some(observer) = &self.builder.observer {
            let ControllerBuilder { name, queue, patience, beside, .. } = &self.builder;
            let load = Load {
                ready: queue.depth(),
                running: self.running.len(),
                slow: queue.slow(),
                failing: patience.failing(),
                beside: beside.iter().map(|work| work.unfinished()).sum(),
            };
            observer.load(name, load);
        }
    }
}

/// Long work does not outlive its controller, also when that is dropped instead of stopped.
impl Drop for ControllerBuilder {
    fn drop(&mut self) {
        self.beside.iter().for_each(|work| drop(work.abort()));
    }
}

impl End {
    fn failed(category: &'static str, text: String) -> Self {
        Self::Failed { category, is_retryable: true, is_user_fault: false, retry_after: None, text }
    }

    fn from_error(error: &impl Failure) -> Self {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        Self::Failed {
            category: error.category(),
            is_retryable: error.is_retryable(),
            is_user_fault: error.is_user_fault(),
            retry_after: error.retry_after(),
            text,
        }
    }
}
