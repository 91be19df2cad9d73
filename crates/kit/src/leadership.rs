//! Decides whether this manager may compute and write.
//!
//! Only the leader may; followers keep their stores filled. The controller loop starts and stops by [`Leadership`], and
//! every write is fenced by it ([`Leadership::remaining`]): a call is sent only if it ends, at the latest, while the
//! lease is still ours. The lease itself is in `lease`; this is the interface that the rest needs.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use tokio::sync::watch;

/// A future that is ready when leadership may have changed.
pub type Changed<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Whether we lead, and for how much longer at least.
pub trait Leadership: Send + Sync + 'static {
    /// How long we are certain to lead from now, without renewing. None when we do not lead.
    fn remaining(&self) -> Option<Duration>;

    /// True while we lead.
    fn is_leading(&self) -> bool {
        self.remaining().is_some()
    }

    /// Ready when [`Leadership::is_leading`] differs from what the caller saw.
    fn changed(&self, was_leading: bool) -> Changed<'_>;
}

/// Leads always: a single process without election, and tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Always;

impl Leadership for Always {
    fn remaining(&self) -> Option<Duration> {
        Some(Duration::MAX)
    }

    fn changed(&self, _was_leading: bool) -> Changed<'_> {
        Box::pin(std::future::pending())
    }
}

/// One leadership for many controllers, whatever it rests on.
impl<L: Leadership + ?Sized> Leadership for Arc<L> {
    fn remaining(&self) -> Option<Duration> {
        self.as_ref().remaining()
    }

    fn changed(&self, was_leading: bool) -> Changed<'_> {
        self.as_ref().changed(was_leading)
    }
}

/// Leads while the channel says so. When the sender is gone the lease is not renewed: then we do not lead.
impl Leadership for watch::Receiver<bool> {
    fn remaining(&self) -> Option<Duration> {
        (*self.borrow() && self.has_changed().is_ok()).then_some(Duration::MAX)
    }

    fn changed(&self, was_leading: bool) -> Changed<'_> {
        let mut receiver = self.clone();
        Box::pin(async move {
            if receiver.wait_for(|leads| *leads != was_leading).await.is_err() && !was_leading {
                std::future::pending::<()>().await;
            }
        })
    }
}
