//! What one watch of many may keep, where the servers are not trusted.
//!
//! Each has a little for itself, which the others cannot take. What it needs beyond that comes from what all have in
//! common, up to a limit for each.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The unit, in bytes.
const UNIT: usize = 64;

/// What all watches have in common. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Common {
    places: Arc<Semaphore>,
    own: usize,
    most: usize,
}

/// What one watch may keep.
#[derive(Debug)]
pub(super) struct Share {
    own: Arc<Semaphore>,
    most: Arc<Semaphore>,
    common: Common,
}

/// What a kept object holds until it is dropped.
pub(super) type Held = (OwnedSemaphorePermit, OwnedSemaphorePermit);

impl Common {
    /// So many bytes in common, so many for each watch alone, and so many at most for one watch.
    pub fn new(common: usize, own: usize, most: usize) -> Self {
        Self { places: places(common), own, most }
    }

    pub(super) fn share(&self) -> Share {
        Share { own: places(self.own), most: places(self.most), common: self.clone() }
    }
}

fn places(bytes: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(bytes / UNIT))
}

impl Share {
    /// Room for so many bytes, or why there is none.
    pub(super) fn take(&self, bytes: usize) -> Result<Held, String> {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
        let of = |places: &Arc<Semaphore>| Arc::clone(places).try_acquire_many_owned(units);
        let Ok(most) = of(&self.most) else {
            return Err(format!("the objects take more than {} MiB", self.common.most >> 20));
        };
        match of(&self.own).or_else(|_| of(&self.common.places)) {
            Ok(place) => Ok((most, place)),
            Err(_) => Err(format!(
                "the objects take more than {} MiB, and those of other tenants take all that is shared",
                self.common.own >> 20
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_takes_all_leaves_the_others_what_is_theirs() {
        let common = Common::new(4 << 20, 1 << 20, 3 << 20);
        let (greedy, second, modest) = (common.share(), common.share(), common.share());
        let half = 512 << 10;
        let all: Vec<Held> = std::iter::from_fn(|| greedy.take(half).ok()).collect();
        assert_eq!(all.len(), 6);
        assert_eq!(greedy.take(half).unwrap_err(), "the objects take more than 3 MiB");
        let rest: Vec<Held> = std::iter::from_fn(|| second.take(half).ok()).collect();
        assert_eq!(rest.len(), 6);
        let own: Vec<Held> = std::iter::from_fn(|| modest.take(half).ok()).collect();
        assert_eq!(own.len(), 2);
        let why = modest.take(half).unwrap_err();
        assert!(why.starts_with("the objects take more than 1 MiB, and those of other tenants"), "{why}");
        drop(all);
        assert!(modest.take(half).is_ok());
    }
}
