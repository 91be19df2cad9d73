//! The work queue: a set of keys, never a list of events.
//!
//! Invariants
//! - A key is at most once in the queue and at most once in work. A key added while it is in work runs once more
//!   afterwards, however often it was added.
//! - Adding never blocks and never fails, so a watch can feed any number of queues and a slow one costs only memory
//!   for its distinct keys.
//! - A timer is a key's earliest wish to be looked at again; work started for any other reason cancels it, because
//!   the work itself ends with a new wish.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

/// A queue shared by those who add and the one loop that takes. Cloning shares it.
#[derive(Debug)]
pub struct WorkQueue<K> {
    shared: Arc<Shared<K>>,
}

impl<K> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

#[derive(Debug)]
struct Shared<K> {
    state: Mutex<State<K>>,
    changed: Notify,
}

#[derive(Debug)]
struct State<K> {
    ready: VecDeque<K>,
    queued: BTreeSet<K>,
    /// Keys in work, and whether they were added again meanwhile.
    running: BTreeMap<K, bool>,
    timers: BTreeSet<(Instant, K)>,
    due: BTreeMap<K, Instant>,
}

impl<K> Default for WorkQueue<K> {
    fn default() -> Self {
        let state = State {
            ready: VecDeque::new(),
            queued: BTreeSet::new(),
            running: BTreeMap::new(),
            timers: BTreeSet::new(),
            due: BTreeMap::new(),
        };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), changed: Notify::new() }) }
    }
}

impl<K: Ord + Clone> WorkQueue<K> {
    /// A panic elsewhere must not stop the queue: its state is consistent between statements.
    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for work on a key, now or as soon as its current work is over.
    pub fn add(&self, key: K) {
        self.state().add(key);
        self.shared.changed.notify_one();
    }

    /// Asks for work on a key after a while, unless it is asked for earlier.
    pub fn add_after(&self, key: K, after: Duration) {
        // A moment that cannot be expressed is never reached.
        if let Some(at) = Instant::now().checked_add(after) {
            self.state().add_at(key, at);
            self.shared.changed.notify_one();
        }
    }

    /// The next key to work on; waits for one. Exactly one loop may take from a queue. Cancel-safe: a key is marked as
    /// in work in the same moment it is returned.
    pub async fn next(&self) -> K {
        loop {
            let changed = self.shared.changed.notified();
            let wait = {
                let mut state = self.state();
                state.fire(Instant::now());
                if let Some(key) = state.take() {
                    return key;
                }
                state.timers.first().map(|(at, _)| *at)
            };
            match wait {
                Some(at) => {
                    let _ = tokio::time::timeout_at(at, changed).await;
                }
                None => changed.await,
            }
        }
    }

    /// The work on a key is over. It is queued again if it was added meanwhile.
    pub fn done(&self, key: &K) {
        let mut state = self.state();
        if state.running.remove(key) == Some(true) {
            state.add(key.clone());
        }
        drop(state);
        self.shared.changed.notify_one();
    }

    /// Forgets keys that wait, for work or for a moment, unless the function wants them. Keys in work stay.
    pub fn retain(&self, is_wanted: impl Fn(&K) -> bool) {
        let mut state = self.state();
        state.ready.retain(&is_wanted);
        state.queued.retain(&is_wanted);
        state.timers.retain(|(_, key)| is_wanted(key));
        state.due.retain(|key, _| is_wanted(key));
    }

    /// Keys waiting for work now (timers not counted).
    pub fn depth(&self) -> usize {
        self.state().ready.len()
    }

    /// Keys waiting for a moment.
    pub fn timers(&self) -> usize {
        self.state().timers.len()
    }
}

impl<K: Ord + Clone> State<K> {
    fn add(&mut self, key: K) {
        if let Some(again) = self.running.get_mut(&key) {
            *again = true;
        } else if self.queued.insert(key.clone()) {
            self.cancel_timer(&key);
            self.ready.push_back(key);
        }
    }

    fn add_at(&mut self, key: K, at: Instant) {
        if self.queued.contains(&key) || self.due.get(&key).is_some_and(|present| *present <= at) {
            return;
        }
        self.cancel_timer(&key);
        self.due.insert(key.clone(), at);
        self.timers.insert((at, key));
    }

    fn cancel_timer(&mut self, key: &K) {
        if let Some(at) = self.due.remove(key) {
            self.timers.remove(&(at, key.clone()));
        }
    }

    fn fire(&mut self, now: Instant) {
        while self.timers.first().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, key)) = self.timers.pop_first() {
                self.due.remove(&key);
                self.add(key);
            }
        }
    }

    fn take(&mut self) -> Option<K> {
        let key = self.ready.pop_front()?;
        self.queued.remove(&key);
        self.running.insert(key.clone(), false);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn idle(queue: &WorkQueue<&'static str>) -> bool {
        tokio::time::timeout(Duration::from_millis(1), queue.next()).await.is_err()
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_runs_once_however_often_it_is_added() {
        let queue = WorkQueue::default();
        queue.add("a");
        queue.add("a");
        queue.add("b");
        assert_eq!((queue.next().await, queue.next().await), ("a", "b"));
        assert!(idle(&queue).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_in_work_waits_for_its_end_and_runs_once_more() {
        let queue = WorkQueue::default();
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        queue.add("a");
        queue.add("a");
        assert!(idle(&queue).await);
        queue.done(&"a");
        assert_eq!(queue.next().await, "a");
        queue.done(&"a");
        assert!(idle(&queue).await);
    }

    #[tokio::test(start_paused = true)]
    async fn the_earliest_timer_wins_and_work_cancels_it() {
        let queue = WorkQueue::default();
        let start = Instant::now();
        queue.add_after("a", Duration::from_mins(1));
        queue.add_after("a", Duration::from_secs(5));
        queue.add_after("a", Duration::from_secs(30));
        assert_eq!(queue.next().await, "a");
        assert_eq!(start.elapsed().as_secs(), 5);
        queue.done(&"a");
        assert_eq!(queue.timers(), 0);
        queue.add_after("a", Duration::from_secs(5));
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        assert_eq!((start.elapsed().as_secs(), queue.timers()), (5, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiting_taker_is_woken_by_an_earlier_wish() {
        let queue = WorkQueue::default();
        let start = Instant::now();
        queue.add_after("late", Duration::from_mins(1));
        let taker = tokio::spawn({
            let queue = queue.clone();
            async move { queue.next().await }
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        queue.add_after("early", Duration::from_secs(2));
        assert_eq!(taker.await.unwrap(), "early");
        assert_eq!(start.elapsed().as_secs(), 3);
    }
}
