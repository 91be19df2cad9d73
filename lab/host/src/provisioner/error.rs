//! Errors of the provisioner.

use std::io;
use std::path::PathBuf;

use hangar_kit::Failure;

/// A failure of the provisioner. All of them are tried again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The API server refused, did not answer, or cannot be believed now.
    #[error(transparent)]
    Kit(#[from] hangar_kit::Error),
    /// A directory could not be made, read or removed.
    #[error("cannot {action} {}", path.display())]
    Directory { action: &'static str, path: PathBuf, source: io::Error },
    /// The claim asks for a class that is not there (yet).
    #[error("storage class {name} is not known")]
    NoClass { name: String },
}

impl Failure for Error {
    fn category(&self) -> &'static str {
        match self {
            Self::Kit(error) => error.category(),
            Self::Directory { .. } => "DirectoryFailed",
            Self::NoClass { .. } => "NoStorageClass",
        }
    }

    fn is_retryable(&self) -> bool {
        match self {
            Self::Kit(error) => error.is_retryable(),
            Self::Directory { .. } | Self::NoClass { .. } => true,
        }
    }

    fn retry_after(&self) -> Option<std::time::Duration> {
        match self {
            Self::Kit(error) => error.retry_after(),
            Self::Directory { .. } | Self::NoClass { .. } => None,
        }
    }
}
