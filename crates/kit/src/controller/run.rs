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

use super::{ControllerBuilder, ControllerStats, Reconcile, Settled, Verdict};
use crate::{ObjectKey, backoff::Attempts, error::Failure, leadership::Leadership};

/// Short against every lease, long against a spinning processor.
const LEADERSHIP_PAUSE: Duration = Duration::from_millis(20);

/// Rare against the cost of a look at every key, often against what can be created and deleted meanwhile.
const COMPACT_EVERY: Duration = Duration::from_mins(10);

/// Nothing should need it: every wait has a change or a moment that ends it. It bounds the harm of one that has neither,
/// such as a read that failed and came back without a change.
const LOOK_AGAIN_EVERY: Duration = Duration::from_mins(10);

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
    attempts: Attempts<ObjectKey>,
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
        let mut this = Loop {
            builder: self,
            reconciler: Arc::new(reconciler),
            leadership: Arc::new(leadership),
            running: JoinSet::new(),
            tasks: BTreeMap::new(),
            attempts: Attempts::default(),
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
        let known: Option<Vec<Vec<ObjectKey>>> = self.builder.roots.iter().map(|roots| roots()).collect();
        let Some(known) = known.filter(|known| !known.is_empty()) else {
            return;
        };
        let exist: BTreeSet<ObjectKey> = known.into_iter().flatten().collect();
        self.builder.queue.retain(|key| exist.contains(key));
        self.report_load();
    }

    /// One term of leadership.
    async fn lead(&mut self, stop: &CancellationToken) {
        let name = self.builder.name;
        tracing::info!(controller = name, "reconciling");
        // One future for the whole term: asked anew each time, a loss that is followed by a new term at once would
        // go unnoticed.
        let leadership = Arc::clone(&self.leadership);
        let mut lost = leadership.changed(true);
        for roots in &self.builder.roots {
            // Not known now means the watch will announce it.
            for key in roots().into_iter().flatten() {
                self.builder.queue.add(key);
            }
        }
        let queue = self.builder.queue.clone();
        let mut look_again = tokio::time::interval_at(Instant::now() + LOOK_AGAIN_EVERY, LOOK_AGAIN_EVERY);
        loop {
            let has_room = self.running.len() < self.builder.concurrency;
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
                key = queue.next(), if has_room => self.start(key),
            }
        }
    }

    /// Every root object is looked at within the next interval, at a moment of its own: all at once would be a burst of
    /// calls to clouds and tenants. Those that are due earlier stay as they are.
    fn spread_roots(&self) {
        for key in self.builder.roots.iter().filter_map(|roots| roots()).flatten() {
            self.builder.queue.add_after(key, LOOK_AGAIN_EVERY.mul_f64(rand::random()));
        }
    }

    fn start(&mut self, key: ObjectKey) {
        let reconciler = Arc::clone(&self.reconciler);
        let deadline = self.builder.deadline;
        let span = tracing::info_span!("reconcile", controller = self.builder.name, %key);
        let task = {
            let key = key.clone();
            async move {
                match tokio::time::timeout(deadline, reconciler.reconcile(&key)).await {
                    Ok(Ok(settled)) => End::Settled(settled),
                    Ok(Err(error)) => End::from_error(&error),
                    Err(_) => End::failed("Deadline", format!("no end after {} s", deadline.as_secs())),
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
        let queue = &self.builder.queue;
        match end {
            End::Settled(Settled::Done(wake)) => {
                self.stats.done += 1;
                self.attempts.forget(key);
                if let Some(length) = wake.remaining(Timestamp::now()) {
                    queue.add_after(key.clone(), length);
                }
                Verdict::Done
            }
            End::Settled(Settled::NotYet(wait)) => {
                self.stats.not_yet += 1;
                self.attempts.forget(key);
                tracing::debug!(controller = self.builder.name, %key, reason = %wait.reason, "not yet");
                queue.add_after(key.clone(), wait.after);
                Verdict::NotYet
            }
            End::Failed { category, is_retryable, is_user_fault, retry_after, text } => {
                self.stats.failed += 1;
                let failures = self.attempts.failed(key.clone());
                let name = self.builder.name;
                if is_user_fault {
                    tracing::info!(controller = name, %key, category, error = %text, "the object needs a change");
                } else {
                    tracing::warn!(controller = name, %key, category, failures, error = %text, "reconcile failed");
                }
                if is_retryable {
                    let delay = self.builder.backoff.delay(failures);
                    queue.add_after(key.clone(), retry_after.map_or(delay, |asked| asked.max(delay)));
                }
                Verdict::Failed(category)
            }
        }
    }

    async fn drain(&mut self) {
        let running = self.running.len();
        let grace = self.builder.grace;
        let all_ended = async {
            while let Some(ended) = self.running.join_next_with_id().await {
                self.ended(ended);
            }
        };
        if tokio::time::timeout(grace, all_ended).await.is_err() {
            tracing::warn!(controller = self.builder.name, running, "aborting what did not end in time");
            self.abort().await;
        }
    }

    async fn abort(&mut self) {
        self.running.abort_all();
        while let Some(ended) = self.running.join_next_with_id().await {
            self.ended(ended);
        }
    }

    fn report_load(&self) {
        if let Some(observer) = &self.builder.observer {
            let ready = self.builder.queue.depth();
            observer.load(self.builder.name, ready, self.running.len(), self.attempts.failing());
        }
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
