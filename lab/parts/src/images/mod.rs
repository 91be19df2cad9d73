//! Container images made of programs on this machine, so that upstream image references resolve with no registry.
//!
//! * [`Image`] is one image: a name, files, a command. [`write_archive`] writes several as one OCI archive, which
//!   `ctr images import` reads.
//! * [`Upstream`] are the images of the pinned programs, under their upstream names and tags.
//! * [`conformance()`] makes those that Kubernetes' own tests run.
//! * `pause` is our own program for the sandbox of a pod; `libraries` finds what a dynamic program needs.
//!
//! Invariants:
//! * The same files give the same digests: entries are sorted, owners are root, times are zero.
//! * An archive is streamed: no image is held in memory or written to disk twice.

mod archive;
mod conformance;
mod layer;
mod libraries;
mod pause;
#[cfg(test)]
mod tests;
mod upstream;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::{Context, Error, Result};
use crate::packages::Packages;

pub use archive::write_archive;
pub use conformance::{PACKAGES as PACKAGES_FOR_CONFORMANCE, conformance};
pub use pause::program as pause_program;
pub use upstream::{PAUSE_TAG, Upstream};

/// Where a file's bytes come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file of this machine; links are followed.
    Path(PathBuf),
    Bytes(Vec<u8>),
}

/// Something in an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A directory with these permissions.
    Directory(u32),
    /// A file with these permissions.
    File(Source, u32),
    /// A symbolic link to this.
    Link(String),
}

/// An image to be made: one layer, no base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    reference: String,
    entries: BTreeMap<String, Entry>,
    entrypoint: Vec<String>,
    command: Vec<String>,
    user: Option<String>,
}

impl Image {
    /// An image with a /tmp and nothing else.
    pub fn new(
        reference: impl Into<String>,
        entrypoint: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let image = Self {
            reference: reference.into(),
            entries: BTreeMap::new(),
            entrypoint: entrypoint.into_iter().map(Into::into).collect(),
            command: Vec::new(),
            user: None,
        };
        image.with("/tmp", Entry::Directory(0o1777))
    }

    /// Its name and tag.
    pub fn reference(&self) -> &str {
        &self.reference
    }

    #[must_use]
    fn with_entrypoint(self, entrypoint: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { entrypoint: entrypoint.into_iter().map(Into::into).collect(), ..self }
    }

    /// What the entrypoint is given where a pod names no arguments.
    #[must_use]
    pub fn with_command(self, command: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { command: command.into_iter().map(Into::into).collect(), ..self }
    }

    /// Who its processes run as where a pod names nobody; otherwise root.
    #[must_use]
    pub fn with_user(self, user: impl Into<String>) -> Self {
        Self { user: Some(user.into()), ..self }
    }

    /// Adds something at an absolute path; missing directories above it are added.
    #[must_use]
    pub fn with(mut self, path: &str, entry: Entry) -> Self {
        let path = path.trim_matches('/');
        let mut above = Path::new(path).parent();
        while let Some(directory) = above.and_then(Path::to_str).filter(|text| !text.is_empty()) {
            self.entries.entry(directory.to_owned()).or_insert(Entry::Directory(0o755));
            above = Path::new(directory).parent();
        }
        self.entries.insert(path.to_owned(), entry);
        self
    }

    /// Adds a program of this machine.
    #[must_use]
    pub fn with_program(self, path: &str, source: impl Into<PathBuf>) -> Self {
        self.with(path, Entry::File(Source::Path(source.into()), 0o755))
    }

    /// Adds a program of this machine that may be linked dynamically, with the libraries it needs.
    pub fn with_dynamic_program(
        self,
        path: &str,
        source: &Path,
        packages: Option<&Packages>,
    ) -> Result<Self> {
        libraries::add(self.with_program(path, source), &[source], packages)
    }

    /// A hash that changes when the image would. It reads names, sizes and times of files, not their content, so it
    /// costs nothing; the same content written again changes it.
    pub fn fingerprint(&self) -> Result<String> {
        let mut hasher = Sha256::new();
        hasher.update(format!("{} {:?}\0", self.reference, self.entrypoint));
        if !self.command.is_empty() || self.user.is_some() {
            hasher.update(format!("{:?} {:?}\0", self.command, self.user));
        }
        for (path, entry) in &self.entries {
            let text = match entry {
                Entry::File(Source::Path(source), mode) => {
                    let found = fs::metadata(source).context("read", source)?;
                    let (seconds, nanoseconds) = (found.mtime(), found.mtime_nsec());
                    format!("{path} {} {mode} {} {seconds} {nanoseconds}\0", source.display(), found.len())
                }
                other => format!("{path} {other:?}\0"),
            };
            hasher.update(text);
        }
        Ok(hexadecimal(&hasher.finalize()))
    }

    /// The digest under which a container runtime that imported the image knows it. It reads every file.
    pub fn digest(&self) -> Result<String> {
        let failed =
            |error: std::io::Error| Error::Image { image: self.reference.clone(), reason: error.to_string() };
        archive::digest(self).map_err(failed)
    }
}

pub(crate) fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = std::fmt::Write::write_fmt(&mut text, format_args!("{byte:02x}"));
        text
    })
}
