//! JSON files of the state directory.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Serialize, de::DeserializeOwned};

use crate::error::{Doing, Error, Result, on};

/// Reads a JSON file; `None` when it is not there.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).doing(|| on("read", path)),
    };
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| Error::Record { path: path.to_owned(), message: error.to_string() })
}

/// Writes a JSON file so that a reader sees the old or the new one, never a part.
pub(crate) fn write<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let bytes = serde_json::to_vec_pretty(value)
        .map_err(|error| Error::Record { path: path.to_owned(), message: error.to_string() })?;
    let temporary = PathBuf::from(format!("{}.new", path.display()));
    fs::write(&temporary, bytes).doing(|| on("write", &temporary))?;
    fs::rename(&temporary, path).doing(|| on("replace", path))
}
