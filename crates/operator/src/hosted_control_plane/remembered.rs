//! What is remembered for each control plane, such as what was read of it until that is to be read again.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hangar_kit::ObjectKey;

/// By control plane, or by its Cluster.
pub(super) struct Remembered<T>(Mutex<BTreeMap<ObjectKey, T>>);

/// What is to be read again.
pub(super) trait Due {
    fn due_in(&self) -> Duration;
}

impl<T> Default for Remembered<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Remembered<T> {
    pub(super) fn all(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn forget(&self, key: &ObjectKey) {
        self.all().remove(key);
    }
}

impl<T: Due> Remembered<T> {
    /// When to come back, if something was read.
    pub(super) fn due_in(&self, key: &ObjectKey) -> Option<Duration> {
        self.all().get(key).map(T::due_in)
    }
}
