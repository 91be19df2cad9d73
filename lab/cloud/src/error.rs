//! Errors that keep a cloud from starting. Refusals of single calls are answers, not errors.

use std::io;
use std::path::PathBuf;

/// The cloud cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address that clients would be told does not work for them.
    #[error("public URL {url}: {why}")]
    PublicUrl {
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A name in the configuration means nothing.
    #[error("configuration: {what} {name:?} does not exist")]
    Unknown { what: &'static str, name: String },
    /// The listener does not work.
    #[error("cannot listen")]
    Listen(#[source] io::Error),
    /// The state file cannot be read or written.
    #[error("cannot use the state file {path}")]
    StateFile {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The state file is not one of ours.
    #[error("cannot parse the state file {path}")]
    StateFormat {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
}
