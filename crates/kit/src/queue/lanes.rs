//! Decides which lane may start its next key, and how many keys of each share may be in work.
//!
//! A worker that waits for a hanging tenant or cloud does nothing, so after [`SLOW`] it no longer counts as a worker;
//! it still counts against its share and its namespace. Until then all others have one worker less. So a share that is
//! known to be slow waits in a second row: it gets only every second turn, and some workers never. A share that hangs
//! again and again then costs others nothing, and one that is only slow still makes progress.
//!
//! A lane with ready keys is at exactly one place: in `turn`, in `late`, or in `parked` under the limit it waits for.
//! When a work ends, the lanes that waited for its share or namespace come back; they are judged again when their turn
//! comes. So taking costs a few map lookups, however many keys wait.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use tokio::time::Instant;

/// Work that takes longer waits for another system: no pass computes that long, and a healthy one's calls take less.
pub const SLOW: Duration = Duration::from_secs(1);

/// How many keys may be in work at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// In all, not counting slow ones.
    pub at_once: usize,
    pub per_share: usize,
    pub per_namespace: usize,
}

impl Limits {
    /// The limits of a controller with that many workers: a third for one share, and, slow ones included, twice as many
    /// as there are for one namespace.
    pub fn of_workers(workers: usize) -> Self {
        let at_once = workers.max(1);
        Self { at_once, per_share: (at_once / 3).max(1), per_namespace: at_once.saturating_mul(2) }
    }

    /// Workers that shares known to be slow may have. The others stay free for those that are not.
    fn for_slow_shares(&self) -> usize {
        self.at_once - self.at_once / 3
    }
}

/// Where a key waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lane {
    /// Who is affected when it hangs: a tenant, a cloud.
    pub share: String,
    /// The namespace, empty for none; those without one are not limited together.
    pub namespace: String,
}

/// Why a lane is parked.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Full {
    Share(String),
    Namespace(String),
}

struct Work {
    lane: Lane,
    since: Instant,
    /// Whether its share was known to be slow when it began.
    is_late: bool,
}

#[derive(Default)]
struct Share {
    in_work: usize,
    /// A work of it became slow, and none has ended in time since.
    is_slow: bool,
}

pub(super) struct Lanes<K> {
    pub(super) limits: Limits,
    ready: BTreeMap<Lane, VecDeque<K>>,
    turn: VecDeque<Lane>,
    late: VecDeque<Lane>,
    is_late_next: bool,
    parked: BTreeMap<Full, Vec<Lane>>,
    in_work: BTreeMap<K, Work>,
    /// Work that still counts as a worker, oldest first.
    quick: BTreeSet<(Instant, K)>,
    quick_of_slow_shares: usize,
    shares: BTreeMap<String, Share>,
    namespaces: BTreeMap<String, usize>,
}

impl<K> Default for Lanes<K> {
    fn default() -> Self {
        Self {
            limits: Limits { at_once: usize::MAX, per_share: usize::MAX, per_namespace: usize::MAX },
            ready: BTreeMap::new(),
            turn: VecDeque::new(),
            late: VecDeque::new(),
            is_late_next: false,
            parked: BTreeMap::new(),
            in_work: BTreeMap::new(),
            quick: BTreeSet::new(),
            quick_of_slow_shares: 0,
            shares: BTreeMap::new(),
            namespaces: BTreeMap::new(),
        }
    }
}

impl<K: Ord + Clone> Lanes<K> {
    pub(super) fn is_in_work(&self, key: &K) -> bool {
        self.in_work.contains_key(key)
    }

    pub(super) fn push(&mut self, lane: Lane, key: K) {
        let keys = self.ready.entry(lane.clone()).or_default();
        if keys.is_empty() {
            self.turn.push_back(lane);
        }
        keys.push_back(key);
    }

    /// All ready keys, which are no longer here.
    pub(super) fn clear(&mut self) -> Vec<K> {
        self.turn.clear();
        self.late.clear();
        self.parked.clear();
        std::mem::take(&mut self.ready).into_values().flatten().collect()
    }

    /// The next key, which is in work from now on. None when nothing may start.
    pub(super) fn take(&mut self, now: Instant) -> Option<K> {
        self.mark_slow(now);
        if self.quick.len() >= self.limits.at_once {
            return None;
        }
        while let Some((lane, is_late)) = self.next_lane() {
            let is_slow = self.shares.get(&lane.share).is_some_and(|share| share.is_slow);
            if let Some(full) = self.full(&lane) {
                self.parked.entry(full).or_default().push(lane);
            } else if is_slow && !is_late {
                self.late.push_back(lane);
            } else if let Some(key) = self.pop(&lane) {
                self.begin(key.clone(), Work { lane, since: now, is_late: is_slow });
                return Some(key);
            }
        }
        None
    }

    /// When there is room at the latest, if keys wait for it.
    pub(super) fn room_at(&self) -> Option<Instant> {
        let (oldest, _) = self.quick.first().filter(|_| !self.ready.is_empty())?;
        Some(*oldest + SLOW)
    }

    pub(super) fn slow(&mut self, now: Instant) -> usize {
        self.mark_slow(now);
        self.in_work.len() - self.quick.len()
    }

    /// The work on a key is over.
    pub(super) fn end(&mut self, key: &K, now: Instant) {
        self.mark_slow(now);
        let Some(work) = self.in_work.remove(key) else {
            return;
        };
        let is_in_time = self.leave_quick(key, &work);
        if let Some(share) = self.shares.get_mut(&work.lane.share) {
            share.is_slow = !is_in_time;
        }
        self.leave(work.lane);
    }

    /// A key is not worked on after all, which says nothing about its share.
    pub(super) fn give_back(&mut self, key: &K) {
        if let Some(work) = self.in_work.remove(key) {
            self.leave_quick(key, &work);
            self.leave(work.lane);
        }
    }

    fn next_lane(&mut self) -> Option<(Lane, bool)> {
        self.is_late_next = !self.is_late_next;
        let has_room_for_slow = self.quick_of_slow_shares < self.limits.for_slow_shares();
        if has_room_for_slow && (self.is_late_next || self.turn.is_empty()) && !self.late.is_empty() {
            return self.late.pop_front().map(|lane| (lane, true));
        }
        self.turn.pop_front().map(|lane| (lane, false))
    }

    fn full(&self, lane: &Lane) -> Option<Full> {
        let in_share = self.shares.get(&lane.share).map_or(0, |share| share.in_work);
        let in_namespace = self.namespaces.get(&lane.namespace).copied().unwrap_or_default();
        if in_share >= self.limits.per_share {
            Some(Full::Share(lane.share.clone()))
        } else if !lane.namespace.is_empty() && in_namespace >= self.limits.per_namespace {
            Some(Full::Namespace(lane.namespace.clone()))
        } else {
            None
        }
    }

    fn pop(&mut self, lane: &Lane) -> Option<K> {
        let keys = self.ready.get_mut(lane)?;
        let key = keys.pop_front();
        if keys.is_empty() {
            self.ready.remove(lane);
        } else {
            self.turn.push_back(lane.clone());
        }
        key
    }

    fn begin(&mut self, key: K, work: Work) {
        self.quick.insert((work.since, key.clone()));
        self.quick_of_slow_shares += usize::from(work.is_late);
        self.shares.entry(work.lane.share.clone()).or_default().in_work += 1;
        *self.namespaces.entry(work.lane.namespace.clone()).or_default() += 1;
        self.in_work.insert(key, work);
    }

    fn mark_slow(&mut self, now: Instant) {
        while self.quick.first().is_some_and(|(since, _)| *since + SLOW <= now) {
            let Some(work) = self.quick.pop_first().and_then(|(_, key)| self.in_work.get(&key)) else {
                continue;
            };
            self.quick_of_slow_shares -= usize::from(work.is_late);
            if let Some(share) = self.shares.get_mut(&work.lane.share) {
                share.is_slow = true;
            }
        }
    }

    fn leave_quick(&mut self, key: &K, work: &Work) -> bool {
        let was_quick = self.quick.remove(&(work.since, key.clone()));
        self.quick_of_slow_shares -= usize::from(was_quick && work.is_late);
        was_quick
    }

    /// Makes room in a share and a namespace, and lets those try that waited for it.
    fn leave(&mut self, Lane { share, namespace }: Lane) {
        if let Some(present) = self.shares.get_mut(&share) {
            present.in_work -= 1;
            if present.in_work == 0 && !present.is_slow {
                self.shares.remove(&share);
            }
        }
        if let Some(in_work) = self.namespaces.get_mut(&namespace) {
            *in_work -= 1;
            if *in_work == 0 {
                self.namespaces.remove(&namespace);
            }
        }
        for full in [Full::Share(share), Full::Namespace(namespace)] {
            self.turn.extend(self.parked.remove(&full).into_iter().flatten());
        }
    }
}
