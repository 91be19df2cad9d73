//! A subscriber's view of a watch: the set of keys that changed since it last looked.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use tokio::sync::Notify;

use crate::ObjectKey;

/// Changed keys, each once, in key order. Dropping it ends the subscription.
#[derive(Debug, Default)]
pub struct Subscription {
    pending: Arc<Pending>,
}

#[derive(Debug, Default)]
struct Pending {
    keys: Mutex<BTreeSet<ObjectKey>>,
    changed: Notify,
}

/// The watch's end: holds nothing alive.
pub(super) struct Sender {
    pending: Weak<Pending>,
}

impl Sender {
    pub(super) fn offer(&self, key: ObjectKey) -> bool {
        let Some(pending) = self.pending.upgrade() else {
            return false;
        };
        pending.keys.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
        pending.changed.notify_one();
        true
    }
}

impl Subscription {
    pub(super) fn sender(&self) -> Sender {
        Sender { pending: Arc::downgrade(&self.pending) }
    }

    /// All keys that changed since the last call; waits for at least one. Cancel-safe.
    pub async fn changed(&mut self) -> BTreeSet<ObjectKey> {
        loop {
            let keys = self.drain();
            if !keys.is_empty() {
                return keys;
            }
            self.pending.changed.notified().await;
        }
    }

    /// All keys that changed since the last call, without waiting.
    pub fn drain(&mut self) -> BTreeSet<ObjectKey> {
        std::mem::take(&mut *self.pending.keys.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
