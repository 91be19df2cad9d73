//! The real programs that Hangar tests against and runs on one host: Kubernetes, etcd and others.
//!
//! None of them is our code. A *set* is a group of programs (or plain files) that are pinned and built together, by
//! `tools/<set>/go.mod` and `go.sum`. The pins are embedded, so an installed binary builds the same bytes as a clone of
//! the repository.
//!
//! - [`sets`] lists the sets, [`cache`] knows where they are and when they count as done,
//! - [`packages`] unpacks what comes from the distribution, [`images`] makes container images of programs,
//! - [`build`] makes a set, [`locate`] finds a program (overrides first), [`process`] starts one.
//!
//! Invariants:
//! - A directory under `<cache>/tools` without a leading dot is complete: it is filled elsewhere and renamed.
//! - The directory's name carries a hash of pins and recipe; a changed pin never finds an old build.
//! - Looking up never builds. Only [`Parts::ensure`] and its relatives may take minutes.

pub mod build;
pub mod cache;
mod disk;
mod error;
#[cfg(test)]
mod fake_go;
mod go;
pub mod images;
pub mod locate;
pub mod packages;
pub mod process;
mod progress;
mod search_path;
pub mod sets;

pub use build::BuildResult;
pub use cache::{Cache, State};
pub use error::{Error, Result};
pub use locate::Parts;
pub use process::{Process, ProcessSpec};
pub use sets::Set;
