//! Objects that wait for newer lists of a project, and who is told when those are there.
//!
//! A list of a large project takes seconds, and lists are kept apart. If every pass waited for its list, a few passes
//! would occupy all workers, and a thousand servers would be looked at a few per list. Instead a pass that needs a newer
//! list ends; one task reads the lists and wakes all objects that had asked before.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hangar_kit::ObjectKey;
use tokio::time::Instant;

use super::project::STALE;

/// Who wants to know of lists.
#[derive(Default)]
pub(super) struct Listeners(Mutex<Vec<Listener>>);

type Listener = Box<dyn Fn(&ObjectKey) + Send + Sync>;

impl Listeners {
    pub(super) fn add(&self, listener: impl Fn(&ObjectKey) + Send + Sync + 'static) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(listener));
    }

    pub(super) fn tell(&self, keys: &[ObjectKey]) {
        for listener in &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            keys.iter().for_each(listener);
        }
    }
}

/// What objects of one project ask for.
#[derive(Default)]
pub(super) struct Demands(Mutex<State>);

#[derive(Default)]
struct State {
    /// By owner: since when it wants newer lists. It goes when it has them.
    since: BTreeMap<String, Instant>,
    waiting: BTreeMap<ObjectKey, Instant>,
    is_being_read: bool,
}

impl Demands {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Since when the owner wants newer lists.
    pub(super) fn since(&self, owner_id: &str) -> Instant {
        let mut state = self.state();
        // An owner that is gone does not come for its answer.
        state.since.retain(|_, at| at.elapsed() < STALE);
        *state.since.entry(owner_id.to_owned()).or_insert_with(Instant::now)
    }

    /// The owner has them: the next demand is a new one.
    pub(super) fn met(&self, owner_id: &str) {
        self.state().since.remove(owner_id);
    }

    /// The object is to be woken. Whether the caller must see that the lists are read.
    pub(super) fn wait(&self, key: &ObjectKey) -> bool {
        let mut state = self.state();
        state.waiting.insert(key.clone(), Instant::now());
        !std::mem::replace(&mut state.is_being_read, true)
    }

    /// Held by who reads the lists.
    pub(super) fn reading(&self) -> Reading<'_> {
        Reading(self)
    }

    /// Lists that were begun after this moment were read. Who is to be woken, and whether somebody still waits, for whom
    /// they are read once more.
    pub(super) fn read(&self, begun_after: Instant) -> (Vec<ObjectKey>, bool) {
        let mut state = self.state();
        let later = state.waiting.extract_if(.., |_, at| *at > begun_after).collect();
        let woken = std::mem::replace(&mut state.waiting, later).into_keys().collect();
        state.is_being_read = !state.waiting.is_empty();
        (woken, state.is_being_read)
    }
}

/// A reader that panics is followed by the next: otherwise all would wait for it for ever.
pub(super) struct Reading<'a>(&'a Demands);

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.state().is_being_read = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_reader_that_panics_is_followed_by_the_next() {
        let (demands, key) = (std::sync::Arc::new(Demands::default()), ObjectKey::namespaced("ns", "one"));
        assert!(demands.wait(&key), "nobody reads yet");
        assert!(!demands.wait(&key), "somebody does");
        let reader = std::sync::Arc::clone(&demands);
        let read = tokio::spawn(async move {
            let _reading = reader.reading();
            panic!("as a reader may");
        });
        assert!(read.await.is_err());
        assert!(demands.wait(&key));
        assert_eq!(demands.read(Instant::now()), (vec![key], false));
    }
}
