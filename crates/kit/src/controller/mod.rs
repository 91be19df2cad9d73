//! The loop around a controller: keys in, reconciles out.
//!
//! This is an own loop over [`WorkQueue`], not `kube::runtime::Controller::reconcile_on`, because that one
//! - reads the object from its own reflector before it reconciles: a second copy of every root object, without our
//!   read-your-writes overlay, and a key whose object is gone never reaches the reconciler;
//! - polls all reconciles inside one task: a panic ends the controller, and one busy reconcile delays the rest;
//! - has no per-object back-off and no way to pause for leadership without losing what it scheduled.
//!
//! Invariants
//! - One reconcile per key at a time, at most [`ControllerBuilder::concurrency`] in all.
//! - A reconcile receives only the key; what it needs it reads from the stores.
//! - Nothing runs before every registered watch is synced, and nothing runs while we do not lead. Keys keep
//!   collecting meanwhile, except those of root objects that are gone: a follower does not grow. Losing leadership
//!   aborts running reconciles at their next await: that is a crash, and reconciles survive crashes. Gaining it looks at
//!   every root object once.
//! - Every root object is looked at now and then, changed or not, spread over time: a wake that was lost costs minutes,
//!   not for ever.
//! - A panic or an overrun deadline is a failure of that key alone.
//! - Shutdown takes no new keys, lets running reconciles end within a grace period, then aborts them.

mod run;
mod stats;

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use hangar_plan::flow::{NotYet, Read, Wake};
use kube::Resource;

pub use stats::{ControllerStats, Observer, Verdict};

use crate::{
    ObjectKey,
    backoff::Backoff,
    error::Failure,
    queue::WorkQueue,
    watch::{Change, Watch},
};

/// How a reconcile ended when nothing failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// All is as planned. Look again when something changes, or when the plan asked for it.
    Done(Wake),
    /// Something is waited for.
    NotYet(NotYet),
}

impl Settled {
    /// All is as planned until something changes.
    pub fn done() -> Self {
        Self::Done(Wake::OnChange)
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

/// A controller being put together; [`ControllerBuilder::run`] starts it.
///
/// ```ignore
/// ControllerBuilder::new("hosted-control-plane")
///     .roots(&control_planes, |_| true)
///     .watches(&deployments, |change| change.controllers("HostedControlPlane"))
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
    backoff: Backoff,
    deadline: Duration,
    grace: Duration,
    observer: Option<Arc<dyn Observer>>,
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
            backoff: Backoff::default(),
            // Every call has its own timeout; this only catches what forgot one.
            deadline: Duration::from_mins(10),
            grace: Duration::from_secs(20),
            observer: None,
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
            read => Some(read.iter().map(|kept| kept.key.clone()).collect()),
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
        self.watches_optional(watch, mapper)
    }

    /// Like [`ControllerBuilder::watches`] for a kind whose API may not be installed: the start does not wait for it,
    /// reads of it stay unknown until it is there.
    #[must_use]
    pub fn watches_optional<K, F>(
        self,
        watch: &Watch<K, F>,
        mapper: impl Fn(&Change<F>) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self
    where
        K: Resource + 'static,
        F: Send + Sync + 'static,
    {
        watch.feed(&self.queue, mapper);
        self
    }

    /// At most this many reconciles at a time.
    #[must_use]
    pub fn concurrency(mut self, limit: usize) -> Self {
        self.concurrency = limit.max(1);
        self
    }

    /// Delays after failures.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// A reconcile that takes longer has failed.
    #[must_use]
    pub fn deadline(mut self, length: Duration) -> Self {
        self.deadline = length;
        self
    }

    /// How long shutdown waits for running reconciles.
    #[must_use]
    pub fn grace(mut self, length: Duration) -> Self {
        self.grace = length;
        self
    }

    /// Who is told about each reconcile: metrics.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// The queue, for sources that are not watches (a webhook, a cloud listing).
    pub fn queue(&self) -> WorkQueue<ObjectKey> {
        self.queue.clone()
    }
}

#[cfg(test)]
mod tests;
