//! Runs work on threads of its own, with a limit on their number.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

/// A number of places for threads.
pub(super) struct Threads {
    most: usize,
    taken: AtomicUsize,
}

/// One place, free again when it is dropped: also when its work panics or its thread could not be started.
struct Place(&'static Threads);

impl Threads {
    pub(super) const fn new(most: usize) -> Self {
        Self { most, taken: AtomicUsize::new(0) }
    }

    /// Does `work` on a thread of its own. `false` when there is no place or no thread for it: then it is dropped, and
    /// who asked for it tries again. Never a panic, which would end a server for good.
    pub(super) fn start(&'static self, work: impl FnOnce() + Send + 'static) -> bool {
        let place = Place(self);
        if self.taken.fetch_add(1, Ordering::Relaxed) >= self.most {
            return false;
        }
        let run = move || {
            let _place = place;
            work();
        };
        thread::Builder::new().spawn(run).is_ok()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn places_are_free_again_whatever_happens() {
        static THREADS: Threads = Threads::new(1);
        for _ in 0..3 {
            let (release, wait) = mpsc::channel::<()>();
            assert!(THREADS.start(move || {
                let _ = wait.recv();
            }));
            assert!(!THREADS.start(|| {}), "there is one place");
            drop(release);
            while THREADS.taken.load(Ordering::Relaxed) > 0 {
                thread::yield_now();
            }
            assert!(THREADS.start(|| panic!("work that fails")));
            while THREADS.taken.load(Ordering::Relaxed) > 0 {
                thread::yield_now();
            }
        }
    }
}
