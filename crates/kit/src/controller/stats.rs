//! The statistics of a controller.

use std::time::Duration;

use crate::ObjectKey;

/// How one reconcile ended, as a metric sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Done,
    NotYet,
    /// Failed, by category. Panics are `Panic`, overrun deadlines `Deadline`.
    Failed(&'static str),
}

/// Told about each reconcile. Must not block.
pub trait Observer: Send + Sync + 'static {
    /// A reconcile ended.
    fn reconciled(&self, controller: &'static str, key: &ObjectKey, verdict: Verdict, took: Duration);
    /// The controller's load after that.
    fn load(&self, controller: &'static str, load: Load) {
        let _ = (controller, load);
    }
}

/// A controller's keys by what they do now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Those that wait for a worker.
    pub ready: usize,
    pub running: usize,
    /// Those of them that are in work for so long that they no longer count as workers.
    pub slow: usize,
    /// Those whose last reconcile failed.
    pub failing: usize,
    /// Long work that is not finished.
    pub beside: usize,
}

/// Counts of a controller's life, returned when it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControllerStats {
    /// Reconciles that ended as planned.
    pub done: u64,
    /// Reconciles that wait for something.
    pub not_yet: u64,
    /// Reconciles that failed, panics and deadlines included.
    pub failed: u64,
    /// Reconciles aborted by loss of leadership or at the end of the grace period.
    pub aborted: u64,
}
