//! The work queue: a set of keys, never a list of events.
//!
//! Invariants
//! - A key is at most once in the queue and at most once in work. A key added while it is in work runs once more
//!   afterwards, however often it was added.
//! - Adding never blocks and never fails, so a watch can feed any number of queues, and a slow queue costs only memory
//!   for its distinct keys.
//! - A timer is the earliest time at which a key wants to run again. Work that starts for any other reason cancels it,
//!   because that work ends with a new timer.
//! - Ready keys wait in lanes, one per share, and lanes take turns: a thousand keys of one share delay the only key of
//!   another by one turn. Within a lane keys keep their order.
//! - A lane whose share or namespace has its limit in work waits aside until one of them ends, at no cost to the rest.

mod lanes;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use lanes::Lanes;
pub use lanes::{Lane, Limits, SLOW};

/// A queue shared by those who add and the one loop that takes. Cloning shares it.
pub struct WorkQueue<K> {
    shared: Arc<Shared<K>>,
}

impl<K> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

struct Shared<K> {
    state: Mutex<State<K>>,
    changed: Notify,
}

type LaneOf<K> = Box<dyn Fn(&K) -> Lane + Send>;

struct State<K> {
    lane_of: LaneOf<K>,
    lanes: Lanes<K>,
    queued: BTreeSet<K>,
    /// Keys in work that were added again meanwhile.
    again: BTreeSet<K>,
    /// Keys that were given back and have not come again.
    postponed: BTreeSet<K>,
    timers: BTreeSet<(Instant, K)>,
    due: BTreeMap<K, Instant>,
}

impl<K: Ord + Clone> Default for WorkQueue<K> {
    /// One lane without limits.
    fn default() -> Self {
        let state = State {
            lane_of: Box::new(|_| Lane::default()),
            lanes: Lanes::default(),
            queued: BTreeSet::new(),
            again: BTreeSet::new(),
            postponed: BTreeSet::new(),
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

    /// Sets what may be in work at a time, and the lane of each key. Keys that wait already are filed anew.
    pub fn limit(&self, limits: Limits, lane_of: impl Fn(&K) -> Lane + Send + 'static) {
        let mut state = self.state();
        state.lane_of = Box::new(lane_of);
        state.lanes.limits = limits;
        state.file_anew(|_| true);
    }

    /// The share a key belongs to.
    pub fn share(&self, key: &K) -> String {
        (self.state().lane_of)(key).share
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
                let now = Instant::now();
                state.fire(now);
                if let Some(key) = state.lanes.take(now) {
                    state.queued.remove(&key);
                    return key;
                }
                let timer = state.timers.first().map(|(at, _)| *at);
                timer.into_iter().chain(state.lanes.room_at()).min()
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
        state.lanes.end(key, Instant::now());
        if state.again.remove(key) {
            state.add(key.clone());
        }
        drop(state);
        self.shared.changed.notify_one();
    }

    /// Gives back a key that was taken too early. It comes again after a while, for all that was added meanwhile.
    pub fn postpone(&self, key: K, after: Duration) {
        let mut state = self.state();
        state.lanes.give_back(&key);
        state.again.remove(&key);
        state.postponed.insert(key.clone());
        drop(state);
        self.add_after(key, after);
    }

    /// Forgets keys that wait, for work or for a moment, unless the function wants them. Keys in work stay.
    pub fn retain(&self, is_wanted: impl Fn(&K) -> bool) {
        let mut state = self.state();
        state.file_anew(&is_wanted);
        state.postponed.retain(&is_wanted);
        state.timers.retain(|(_, key)| is_wanted(key));
        state.due.retain(|key, _| is_wanted(key));
    }

    /// Keys waiting for work now, those that were given back included; other timers are not.
    pub fn depth(&self) -> usize {
        let state = self.state();
        state.queued.len() + state.postponed.len()
    }

    /// Keys waiting for a moment.
    pub fn timers(&self) -> usize {
        self.state().timers.len()
    }

    /// Keys that have been in work for longer than [`SLOW`].
    pub fn slow(&self) -> usize {
        self.state().lanes.slow(Instant::now())
    }
}

impl<K: Ord + Clone> State<K> {
    fn add(&mut self, key: K) {
        if self.lanes.is_in_work(&key) {
            self.again.insert(key);
        } else if self.queued.insert(key.clone()) {
            self.cancel_timer(&key);
            self.postponed.remove(&key);
            self.lanes.push((self.lane_of)(&key), key);
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

    fn file_anew(&mut self, is_wanted: impl Fn(&K) -> bool) {
        self.queued.retain(&is_wanted);
        for key in self.lanes.clear() {
            if is_wanted(&key) {
                self.lanes.push((self.lane_of)(&key), key);
            }
        }
    }
}

#[cfg(test)]
mod tests;
