//! One part of a watch: a namespace, or everything. It has a store, and whoever drives it.

use std::{
    ops::Deref,
    sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use super::{Watch, store::Store};

/// A part of what is watched.
pub(super) struct Place<F> {
    /// None: every namespace, and what has none.
    namespace: Option<String>,
    store: RwLock<Store<F>>,
}

impl<F> Place<F> {
    pub(super) fn new(namespace: Option<&str>) -> Self {
        Self { namespace: namespace.map(str::to_owned), store: RwLock::new(Store::default()) }
    }

    /// Whether objects of a namespace are kept here.
    pub(super) fn has(&self, namespace: Option<&str>) -> bool {
        self.namespace.is_none() || self.namespace.as_deref() == namespace
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, Store<F>> {
        self.store.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Store<F>> {
        self.store.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A watch as the one who drives one of its places sees it.
pub(super) struct Driven<K, F> {
    watch: Watch<K, F>,
    place: usize,
}

impl<K, F> Clone for Driven<K, F> {
    fn clone(&self) -> Self {
        Self { watch: self.watch.clone(), place: self.place }
    }
}

impl<K, F> Deref for Driven<K, F> {
    type Target = Watch<K, F>;

    fn deref(&self) -> &Watch<K, F> {
        &self.watch
    }
}

impl<K, F> Driven<K, F> {
    pub(super) fn place(&self) -> &Place<F> {
        // Proved by `Watch::at`, which is called with the number of a place.
        &self.watch.shared.places[self.place]
    }
}

impl<K, F> Watch<K, F> {
    pub(super) fn at(&self, place: usize) -> Driven<K, F> {
        Driven { watch: self.clone(), place }
    }
}
