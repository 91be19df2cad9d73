//! The state file: the whole model, replaced at once.
//!
//! A call is answered only when a file that contains its change is on disk. Calls that come while the file is being
//! written share the next write. The file is written beside the old one, synced and renamed, so a crash leaves either
//! the old or the new one; it contains tokens, so only its owner may read it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::model::Model;

/// Counted up when the format changes in a way that an older reader must not accept.
const FORMAT: u32 = 1;

#[derive(Serialize)]
struct Written<'a> {
    format: u32,
    model: &'a Model,
}

#[derive(Deserialize)]
struct Read {
    format: u32,
    model: Model,
}

/// The model as it is written.
pub(crate) fn encode(model: &Model) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&Written { format: FORMAT, model })
}

/// The model that a file holds, or an empty one where there is no file.
pub(crate) fn load(path: &Path) -> Result<Model, Error> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(Model::default()),
        Err(source) => return Err(Error::StateFile { path: path.into(), source }),
    };
    let refuse = |source| Error::StateFormat { path: path.into(), source };
    let read: Read = serde_json::from_slice(&bytes).map_err(refuse)?;
    if read.format != FORMAT {
        let words = format!("format {} is not {FORMAT}", read.format);
        return Err(refuse(serde::de::Error::custom(words)));
    }
    Ok(read.model)
}

/// Replaces a file by these bytes, or leaves it as it is.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut beside = PathBuf::from(path).into_os_string();
    beside.push(".new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    // The rename itself is only safe once its directory is.
    match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => File::open(directory)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::model::Draw;

    #[test]
    fn a_half_written_file_beside_does_not_matter() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json");
        let mut model = Model::default();
        let mut draw = Draw::counting(jiff::Timestamp::UNIX_EPOCH);
        model.seed(&Config::for_tests(), &mut draw).unwrap();
        replace(&path, &encode(&model).unwrap()).unwrap();
        fs::write(directory.path().join("state.json.new"), b"{\"format\":").unwrap();
        let loaded = load(&path).unwrap();
        assert_eq!(loaded.networks, model.networks);
        assert!(!fs::read_to_string(&path).unwrap().contains("secret"), "no password in the file");
    }

    #[test]
    fn another_format_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json");
        fs::write(&path, r#"{"format": 2, "model": {}}"#).unwrap();
        assert!(matches!(load(&path), Err(Error::StateFormat { .. })));
    }
}
