//! The loop around a controller: it takes keys from the queue and reconciles them.
//!
//! This is our own loop over [`WorkQueue`], not `kube::runtime::Controller::reconcile_on`, because that one
//! - reads the object from its own reflector before it reconciles: a second copy of every root object, without our
//!   read-your-writes overlay, and a key whose object is gone never reaches the reconciler;
//! - polls all reconciles inside one task: a panic ends the controller, and one busy reconcile delays the rest;
//! - has no per-object back-off and no way to pause for leadership without losing what it scheduled.
//!
//! Invariants
//! - There is one reconcile per key at a time, at most [`ControllerBuilder::concurrency`] in all, and at most a third
//!   of them for one share. One that hangs takes a worker from its share only.
//! - Whatever wakes a key, runs without progress come at growing distances: an endless wait or failure is retried more
//!   and more rarely, and an object that wakes itself does not run in a loop.
//! - A reconcile receives only the key; what it needs it reads from the stores.
//! - Nothing runs before every registered watch is synced, and nothing runs while we do not lead. Keys keep collecting
//!   meanwhile, except those of root objects that are gone, so a follower's memory does not grow. Losing leadership
//!   aborts running reconciles at their next await: that is a crash, and reconciles survive crashes. Gaining it
//!   reconciles every root object once.
//! - Every root object is reconciled now and then, changed or not, spread over time, so a lost wake costs only minutes.
//! - A panic or an overrun deadline is a failure of that key alone.
//! - Shutdown takes no new keys, lets running reconciles end within a grace period, then aborts them.

mod run;
mod stats;

use std::{future::Future, pin::Pin, sync::Arc};

use hangar_plan::flow::{NotYet, Read, Wake};
use kube::Resource;

pub use stats::{ControllerStats, Load, Observer, Verdict};

use crate::{
    ObjectKey,
    backoff::Patience,
    error::Failure,
    long_work::{Beside, LongWork},
    queue::WorkQueue,
    watch::{Change, Watch},
};

/// How a reconcile ended when nothing failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Whether it changed anything towards what is asked for.
    pub has_progressed: bool,
    /// What is waited for; none when all is as planned. Without progress each wait in a row is longer than the last.
    pub waits: Option<NotYet>,
    /// When to look again at the latest.
    pub wake: Wake,
    /// Nothing was decided: something has to be read first, and whoever reads it wakes the object. Such a run does not
    /// count as one without progress.
    pub is_put_off: bool,
}

impl Settled {
    /// All is as planned until something changes.
    pub fn done() -> Self {
        Self::default()
    }

    /// All is as planned until then, or until something changes.
    pub fn until(wake: Wake) -> Self {
        Self { wake, ..Self::default() }
    }

    /// Something is waited for.
    pub fn waits(wait: NotYet) -> Self {
        Self { waits: Some(wait), ..Self::default() }
    }

    /// Nothing was decided; somebody wakes the object, and if nobody does, the time comes.
    pub fn put_off(wake: Wake) -> Self {
        Self { is_put_off: true, ..Self::until(wake) }
    }

    /// The same, saying whether anything was changed.
    #[must_use]
    pub fn progressed(mut self, has_progressed: bool) -> Self {
        self.has_progressed = has_progressed;
        self
    }
}

/// A controller's own part: bring one object closer to what it asks for.
pub trait Reconcile: Send + Sync + 'static {
    /// What can go wrong.
    type Error: Failure;

    /// Observes, plans and applies for one key. The object may be gone. Must tolerate being dropped at any await.
    fn reconcile(&self, key: &ObjectKey) -> impl Future<Output = Result<Settled, Self::Error>> + Send;
}

type Synced = Pin<Box<dyn Future<Output = ()> + Send>>;
/// The keys of all root objects, none while they are unknown.
type Roots = Box<dyn Fn() -> Option<Vec<ObjectKey>> + Send + Sync>;
type Share = Box<dyn Fn(&ObjectKey) -> String + Send + Sync>;

/// A controller being put together; [`ControllerBuilder::run`] starts it.
///
/// ```ignore
/// ControllerBuilder::new("hosted-control-plane")
///     .roots(&control_planes, |_| true)
///     .watches(&deployments, |change| change.controllers::<HostedControlPlane>())
///     .concurrency(10)
///     .run(reconciler, leadership, stop)
///     .await;
/// ```
pub struct ControllerBuilder {
    name: &'static str,
    queue: WorkQueue<ObjectKey>,
    synced: Vec<(String, Synced)>,
    roots: Vec<Roots>,
    concurrency: usize,
    share: Share,
    patience: Patience<ObjectKey>,
    observer: Option<Arc<dyn Observer>>,
    beside: Vec<Box<dyn Beside>>,
}

impl ControllerBuilder {
    /// A controller without watches. The name is its label in logs and metrics.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            queue: WorkQueue::default(),
            synced: Vec::new(),
            roots: Vec::new(),
            concurrency: 10,
            share: Box::new(|key| key.namespace.clone().unwrap_or_else(|| key.name.clone())),
            patience: Patience::default(),
            observer: None,
            beside: Vec::new(),
        }
    }

    /// The kind this controller is about. Every change of an object is a key, unless `is_interesting` says otherwise;
    /// creation and disappearance always are.
    #[must_use]
    pub fn roots<K, F>(
        mut self,
        watch: &Watch<K, F>,
        is_interesting: impl Fn(&Change<F>) -> bool + Send + Sync + 'static,
    ) -> Self
    where
        K: Resource + 'static,
        F: Send + Sync + 'static,
    {
        let all = watch.clone();
        self.roots.push(Box::new(move || match all.all() {
            Read::Unknown(_) => None,
            read => {
                let unreadable = all.unreadable();
                let keys = read.iter().map(|kept| &kept.key).chain(unreadable.iter().map(|kept| &kept.key));
                Some(keys.cloned().collect())
            }
        }));
        self.watches(watch, move |change| {
            let exists_on_both_sides = change.before.is_some() && change.after.is_some();
            if exists_on_both_sides && !is_interesting(change) { Vec::new() } else { change.itself() }
        })
    }

    /// Another kind that matters, with the keys each change concerns.
    #[must_use]
    pub fn watches<K, F>(
        mut self,
        watch: &Watch<K, F>,
        mapper: impl Fn(&Change<F>) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self
    where
        K: Resource + 'static,
        F: Send + Sync + 'static,
    {
        let waiting = watch.clone();
        self.synced.push((watch.name().to_owned(), Box::pin(async move { waiting.synced().await })));
        watch.feed(&self.queue, mapper);
        self
    }

    /// At most this many reconciles at a time, not counting those that have run for longer than [`SLOW`](crate::queue::SLOW).
    #[must_use]
    pub fn concurrency(mut self, limit: usize) -> Self {
        self.concurrency = limit.max(1);
        self
    }

    /// Who is affected when the reconcile of a key hangs: a tenant, a cloud. Its namespace, unless said here; an object
    /// without one is on its own. At most a third of the reconciles at a time are of one share.
    #[must_use]
    pub fn share(mut self, share: impl Fn(&ObjectKey) -> String + Send + Sync + 'static) -> Self {
        self.share = Box::new(share);
        self
    }

    /// Who is told about each reconcile: metrics.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Room for work that is longer than a pass, this much at a time. It is aborted when the controller stops to lead.
    pub fn long_work<T: Clone + Send + 'static>(&mut self, at_once: usize) -> LongWork<T> {
        let work = LongWork::new(self.queue(), at_once);
        self.beside.push(Box::new(work.clone()));
        work
    }

    /// The queue, for sources that are not watches (a webhook, a cloud listing).
    pub fn queue(&self) -> WorkQueue<ObjectKey> {
        self.queue.clone()
    }
}

#[cfg(test)]
mod patience_tests;
#[cfg(test)]
mod share_tests;
#[cfg(test)]
mod tests;
