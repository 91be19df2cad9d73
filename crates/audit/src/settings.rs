//! What the proxy is told: a file that is written with the API server's other files.

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Why the proxy does not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {path}")]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{path} cannot be understood: {why}")]
    Misread { path: PathBuf, why: String },
    #[error("the receiver {server} cannot be called: {why}")]
    Receiver { server: String, why: String },
    #[error("cannot listen at {path}")]
    Listen { path: PathBuf, source: std::io::Error },
}

/// The file.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// The socket that the API server connects to.
    pub listen: PathBuf,
    /// The socket of the tunnel's server.
    pub tunnel: PathBuf,
    /// Host and port by which the API server means the proxy itself.
    pub authority: String,
    /// The path at which records come. Whoever knows it may send some.
    pub path: String,
    /// Whether the API server is answered only when every receiver has the records.
    #[serde(default)]
    pub waits: bool,
    pub targets: Vec<Target>,
}

/// One receiver.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Target {
    /// Its URL.
    pub server: String,
    /// Whom to trust, in PEM; the system's authorities when empty.
    #[serde(default)]
    pub certificate_authority: Option<String>,
    /// A file with the token to send along.
    #[serde(default)]
    pub token_file: Option<PathBuf>,
}

impl Settings {
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| Error::Unreadable { path: path.to_owned(), source })?;
        Self::parse(&text).map_err(|why| Error::Misread { path: path.to_owned(), why })
    }

    fn parse(text: &str) -> Result<Self, String> {
        serde_saphyr::from_str(text).map_err(|error| error.to_string())
    }
}
