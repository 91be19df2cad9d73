//! Errors that keep a testbed from starting.

use std::path::{Path, PathBuf};

/// A testbed that did not come up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A pinned program is missing, could not be built, or ended before it was ready.
    #[error(transparent)]
    Parts(#[from] hangar_parts::Error),
    /// A certificate could not be made.
    #[error("the testbed's certificates could not be made: {0}")]
    Pki(#[from] hangar_pki::Error),
    /// The testbed's directory or one of its files could not be written.
    #[error("cannot write {}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    /// No loopback port could be had.
    #[error("no free loopback port: {0}")]
    Port(#[source] std::io::Error),
    /// The guardian, a small shell process, could not be started or reached.
    #[error("the guardian process: {0}")]
    Guardian(#[source] std::io::Error),
    /// The testbed's own runtime could not be started.
    #[error("the testbed's runtime: {0}")]
    Runtime(#[source] std::io::Error),
    /// A program did not become ready in time.
    #[error("{program} was not ready after {seconds} s and last said: {answer}; the end of {}:\n{tail}", log.display())]
    NotReady {
        program: String,
        /// How long we waited.
        seconds: u64,
        /// What it last answered.
        answer: String,
        log: PathBuf,
        /// The last lines of its log.
        tail: String,
    },
    /// A cluster on this host did not come up.
    #[error("{} up: {}", program.display(), output.trim())]
    Up {
        /// Who was to start it.
        program: PathBuf,
        output: String,
    },
    /// The API server refused or did not answer a call that the testbed itself made.
    #[error("the testbed's own call failed: {0}")]
    Api(#[source] Box<kube::Error>),
    /// A client configuration could not be built.
    #[error("client configuration: {0}")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        Self::Api(Box::new(error))
    }
}

/// Adds the path to an I/O error.
pub(crate) trait At<T> {
    fn at(self, path: &Path) -> Result<T, Error>;
}

impl<T> At<T> for std::io::Result<T> {
    fn at(self, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::File { path: path.to_owned(), source })
    }
}
