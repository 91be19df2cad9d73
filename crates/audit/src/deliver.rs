//! Brings batches of records to all receivers.
//!
//! Either the API server does not wait: then each receiver has a queue and a worker of its own, so that one that is slow
//! or away delays no other. Or the API server waits: then it is answered when every receiver has the batch, and is told
//! to come again otherwise. It does, with the same bytes, which then go only to those that have not had them.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use hyper::body::Bytes;
use sha2::{Digest as _, Sha256};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::receiver::{Failure, Receiver};

/// Bytes of all queues together.
const QUEUES: usize = 48 << 20;
/// Waits between tries of one batch: the first, and the longest.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Batches that some receivers have and others have not.
const REMEMBERED: usize = 256;

/// All receivers.
pub(crate) struct Delivery {
    lines: Vec<Arc<Line>>,
    waits: bool,
    halves: Mutex<VecDeque<(Hash, BTreeSet<usize>)>>,
}

type Hash = [u8; 32];

/// One receiver with what it has still to get.
struct Line {
    receiver: Receiver,
    queue: Mutex<Queue>,
    /// Bytes that may wait.
    room: usize,
    filled: Notify,
}

#[derive(Default)]
struct Queue {
    batches: VecDeque<Bytes>,
    bytes: usize,
    lost: u64,
}

impl Delivery {
    pub(crate) fn new(receivers: Vec<Receiver>, waits: bool) -> Self {
        let room = QUEUES / receivers.len().max(1);
        let line =
            |receiver| Arc::new(Line { receiver, queue: Mutex::default(), room, filled: Notify::new() });
        Self { lines: receivers.into_iter().map(line).collect(), waits, halves: Mutex::default() }
    }

    /// Starts the workers of the queues. When they are stopped, they try once more what is left, and end.
    pub(crate) fn work(&self, stop: &CancellationToken) -> JoinSet<()> {
        let mut workers = JoinSet::new();
        for line in &self.lines {
            workers.spawn(Arc::clone(line).work(stop.clone()));
        }
        workers
    }

    /// Takes a batch. An error where the API server should come again with it.
    pub(crate) async fn take(&self, batch: Bytes) -> Result<(), ()> {
        if self.waits {
            return self.send(batch).await;
        }
        for line in &self.lines {
            line.add(batch.clone());
        }
        Ok(())
    }

    async fn send(&self, batch: Bytes) -> Result<(), ()> {
        let hash: Hash = Sha256::digest(&batch).into();
        let had = self.forget(&hash);
        let sends = self.lines.iter().enumerate().filter(|(index, _)| !had.contains(index));
        let sends = sends.map(|(index, line)| {
            let batch = batch.clone();
            async move { (index, line.receiver.send(batch).await) }
        });
        let (mut has, mut is_whole) = (had.clone(), true);
        for (index, sent) in join_all(sends).await {
            match sent {
                Ok(()) => {
                    has.insert(index);
                }
                Err(failure) => {
                    is_whole = false;
                    self.lines[index].told(&failure);
                }
            }
        }
        if is_whole {
            return Ok(());
        }
        let mut halves = self.halves();
        halves.push_back((hash, has));
        if halves.len() > REMEMBERED {
            halves.pop_front();
        }
        Err(())
    }

    fn halves(&self) -> MutexGuard<'_, VecDeque<(Hash, BTreeSet<usize>)>> {
        self.halves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who has had this batch before.
    fn forget(&self, hash: &Hash) -> BTreeSet<usize> {
        let mut halves = self.halves();
        let at = halves.iter().position(|(known, _)| known == hash);
        at.and_then(|at| halves.remove(at)).map(|(_, had)| had).unwrap_or_default()
    }
}

impl Line {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn told(&self, failure: &Failure) {
        let (Failure::Later(why) | Failure::Refused(why)) = failure;
        let is_refused = matches!(failure, Failure::Refused(_));
        tracing::warn!(receiver = self.receiver.name, why, is_refused, "records were not taken");
    }

    fn add(&self, batch: Bytes) {
        let mut queue = self.queue();
        if queue.bytes + batch.len() > self.room {
            queue.lost += 1;
            let lost = queue.lost;
            tracing::warn!(
                receiver = self.receiver.name,
                lost,
                "the queue is full: a batch of records is lost"
            );
            return;
        }
        queue.bytes += batch.len();
        queue.batches.push_back(batch);
        drop(queue);
        self.filled.notify_one();
    }

    fn first(&self) -> Option<Bytes> {
        self.queue().batches.front().cloned()
    }

    fn remove_first(&self) {
        let mut queue = self.queue();
        if let Some(batch) = queue.batches.pop_front() {
            queue.bytes -= batch.len();
        }
    }

    async fn work(self: Arc<Self>, stop: CancellationToken) {
        let mut pause = PAUSE;
        loop {
            let Some(batch) = self.first() else {
                if stop.is_cancelled() {
                    return;
                }
                tokio::select! {
                    () = self.filled.notified() => {}
                    () = stop.cancelled() => {}
                }
                continue;
            };
            match self.receiver.send(batch).await {
                Ok(()) => {
                    pause = PAUSE;
                    self.remove_first();
                }
                Err(failure) => {
                    self.told(&failure);
                    if matches!(failure, Failure::Refused(_)) || stop.is_cancelled() {
                        self.remove_first();
                        continue;
                    }
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = stop.cancelled() => {}
                    }
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }
}
