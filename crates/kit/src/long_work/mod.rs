//! Runs work that is longer than a step: a snapshot, a restore, a defragmentation, the rendering of a chart.
//!
//! A pass ends within seconds, so such work runs beside the passes of its controller. A pass starts it, later passes
//! ask for its result, and its end wakes the key.
//!
//! Invariants
//! - Work is identified by its key, its name and its identity, which says what it was started from: a generation, a
//!   hash. Starting it again changes nothing, whether it waits, runs or is finished.
//! - There is one work per key and name at a time. Another identity aborts the present work, and begins when that has
//!   ended.
//! - Results here are in memory only. A result counts once a pass has written it, as a step; then the pass forgets it
//!   here. Losing leadership and shutdown abort all work, which is a crash: the next leader finds no result, and starts
//!   the work again from the progress that a pass wrote last. So work must tolerate being dropped at any await and
//!   repeating what was not recorded; the function that is given to [`LongWork::start`] knows where to resume.
//! - A limited number runs at once, at most a third of it for one share. Others wait, each share in its order.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::FutureExt as _;
use hangar_plan::flow::Failure;
use tokio::{sync::Semaphore, task::JoinHandle, time::Instant};

use crate::{
    ObjectKey,
    queue::{Limits, WorkQueue},
};

/// Progress is worth a write this often at most, and what would be done again after a crash is worth it this often.
const REPORT_WITHIN: Duration = Duration::from_secs(1);

/// What a pass learns about work.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkState<T> {
    /// Nothing was started under that identity, or it was aborted.
    None,
    /// It waits for its predecessor to end, or for room.
    Waiting,
    Running {
        since: Instant,
        /// What it last reported: where to resume, once a pass has recorded it.
        progress: Option<String>,
    },
    /// It ended by itself. A panic is a failure of the category `Panic`.
    Finished(Result<T, Failure>),
}

/// The long work of one controller. Cloning shares it.
pub struct LongWork<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Clone for LongWork<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

type Slot = (ObjectKey, String);

struct Shared<T> {
    queue: WorkQueue<ObjectKey>,
    registry: Mutex<Registry<T>>,
    room: Arc<Semaphore>,
    per_share: usize,
}

struct Registry<T> {
    started: u64,
    works: BTreeMap<Slot, Work<T>>,
    shares: BTreeMap<String, Arc<Semaphore>>,
}

struct Work<T> {
    /// None once its result is not wanted: it is only waited for.
    identity: Option<String>,
    number: u64,
    state: WorkState<T>,
    task: JoinHandle<()>,
}

/// Lets work tell how far it is.
pub struct Progress(Box<dyn Fn(String) + Send + Sync>);

impl Progress {
    /// Everything up to here is done: work that is started from this need not do it again. A pass is woken to record it.
    pub fn report(&self, progress: impl Into<String>) {
        (self.0)(progress.into());
    }
}

impl<T: Clone + Send + 'static> LongWork<T> {
    pub(crate) fn new(queue: WorkQueue<ObjectKey>, at_once: usize) -> Self {
        let limits = Limits::of_workers(at_once);
        let registry = Registry { started: 0, works: BTreeMap::new(), shares: BTreeMap::new() };
        let room = Arc::new(Semaphore::new(limits.at_once));
        let per_share = limits.per_share;
        Self { shared: Arc::new(Shared { queue, registry: Mutex::new(registry), room, per_share }) }
    }

    /// Starts work unless it is known already.
    pub fn start<F>(
        &self,
        key: &ObjectKey,
        name: &str,
        identity: &str,
        work: impl FnOnce(Progress) -> F + Send + 'static,
    ) where
        F: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let slot = (key.clone(), name.to_owned());
        let share_name = self.shared.queue.share(key);
        let mut registry = self.shared.registry();
        let identity = Some(identity.to_owned());
        if registry.works.get(&slot).is_some_and(|present| present.identity == identity) {
            return;
        }
        let before = registry.works.remove(&slot).map(|present| present.task);
        if let Some(task) = &before {
            task.abort();
        }
        registry.shares.retain(|_, share| Arc::strong_count(share) > 1);
        let new_share = || Arc::new(Semaphore::new(self.shared.per_share));
        let share = Arc::clone(registry.shares.entry(share_name).or_insert_with(new_share));
        registry.started += 1;
        let number = registry.started;
        let (shared, own) = (Arc::clone(&self.shared), slot.clone());
        let task = tokio::spawn(async move {
            if let Some(task) = before {
                let _ = task.await;
            }
            // Never closed. The share comes first: who waits for its share keeps no room from others.
            let _permits = (share.acquire_owned().await, Arc::clone(&shared.room).acquire_owned().await);
            shared.set(&own, number, WorkState::Running { since: Instant::now(), progress: None });
            let progress = shared.progress(own.clone(), number);
            let result = AssertUnwindSafe(async { work(progress).await }).catch_unwind().await;
            let result = result.unwrap_or_else(|_| {
                let message = format!("{} panicked", own.1);
                Err(Failure { category: "Panic", message, is_retryable: true, retry_after: None })
            });
            shared.set(&own, number, WorkState::Finished(result));
            shared.queue.add(own.0);
        });
        registry.works.insert(slot, Work { identity, number, state: WorkState::Waiting, task });
    }

    /// What became of work.
    pub fn state(&self, key: &ObjectKey, name: &str, identity: &str) -> WorkState<T> {
        let registry = self.shared.registry();
        match registry.works.get(&(key.clone(), name.to_owned())) {
            Some(work) if work.identity.as_deref() == Some(identity) => work.state.clone(),
            _ => WorkState::None,
        }
    }

    /// The result is recorded, or not wanted: work that still runs is aborted. It can be started again.
    pub fn forget(&self, key: &ObjectKey, name: &str) {
        let slot = (key.clone(), name.to_owned());
        let mut registry = self.shared.registry();
        if let Some(work) = registry.works.get_mut(&slot) {
            work.task.abort();
            work.identity = None;
            if matches!(work.state, WorkState::Finished(_)) {
                registry.works.remove(&slot);
            }
        }
    }
}

impl<T: Send + 'static> Shared<T> {
    fn registry(&self) -> MutexGuard<'_, Registry<T>> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, slot: &Slot, number: u64, state: WorkState<T>) {
        if let Some(work) = self.registry().works.get_mut(slot).filter(|work| work.number == number) {
            work.state = state;
        }
    }

    fn progress(self: &Arc<Self>, slot: Slot, number: u64) -> Progress {
        let shared = Arc::clone(self);
        Progress(Box::new(move |told| {
            if let Some(work) = shared.registry().works.get_mut(&slot).filter(|work| work.number == number)
                && let WorkState::Running { progress, .. } = &mut work.state
            {
                *progress = Some(told);
            }
            shared.queue.add_after(slot.0.clone(), REPORT_WITHIN);
        }))
    }
}

/// Long work as its controller's loop sees it.
pub(crate) trait Beside: Send + Sync {
    /// Aborts all of it. The tasks end at their next await.
    fn abort(&self) -> Vec<JoinHandle<()>>;
    /// Aborts and forgets the work of objects that are gone.
    fn retain(&self, exist: &BTreeSet<ObjectKey>);
    /// How much is not finished.
    fn unfinished(&self) -> usize;
}

impl<T: Send + 'static> Beside for LongWork<T> {
    fn abort(&self) -> Vec<JoinHandle<()>> {
        let works = std::mem::take(&mut self.shared.registry().works);
        let tasks = works.into_values().map(|work| work.task);
        tasks.inspect(JoinHandle::abort).collect()
    }

    fn retain(&self, exist: &BTreeSet<ObjectKey>) {
        self.shared.registry().works.retain(|(key, _), work| {
            let is_wanted = exist.contains(key);
            if !is_wanted {
                work.task.abort();
                work.identity = None;
            }
            is_wanted || !work.task.is_finished()
        });
    }

    fn unfinished(&self) -> usize {
        self.shared.registry().works.values().filter(|work| !work.task.is_finished()).count()
    }
}

#[cfg(test)]
mod tests;
