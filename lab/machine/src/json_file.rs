//! JSON files of the state directory.
//!
//! A process that is killed never leaves half a file. A host that loses its power may: files that cannot be made again
//! are written durably, and readers of all others treat an unreadable file as missing ([`read_if_whole`]).

use std::{
    fs::{self, File},
    io::{self, Write},
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

/// The same for a file that is written anew when it is missing: half of one counts as missing. One that cannot be read
/// (no descriptor left, say) does not: who takes unknown for missing makes things twice or removes what is in use.
pub(crate) fn read_if_whole<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    match read(path) {
        Err(Error::Record { .. }) => Ok(None),
        found => found,
    }
}

/// Writes a JSON file so that a reader sees the old or the new one, never a part.
pub(crate) fn write<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    put(path, value, false)
}

/// The same, and it outlives a sudden end of the host.
pub(crate) fn write_durably<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    put(path, value, true)
}

fn put<T: Serialize>(path: &Path, value: &T, durably: bool) -> Result<()> {
    let bytes = serde_json::to_vec_pretty(value)
        .map_err(|error| Error::Record { path: path.to_owned(), message: error.to_string() })?;
    let temporary = PathBuf::from(format!("{}.new", path.display()));
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(&bytes)?;
        if durably { file.sync_all() } else { Ok(()) }
    });
    written.doing(|| on("write", &temporary))?;
    fs::rename(&temporary, path).doing(|| on("replace", path))?;
    match path.parent() {
        // The new name is in the directory, not in the file.
        Some(parent) if durably => {
            File::open(parent).and_then(|directory| directory.sync_all()).doing(|| on("write", parent))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_file_is_an_error_or_missing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("numbers.json");
        assert_eq!(read_if_whole::<Vec<u32>>(&path).unwrap(), None);
        for put in [write::<Vec<u32>>, write_durably::<Vec<u32>>] {
            put(&path, &vec![1, 2]).unwrap();
            assert_eq!(read::<Vec<u32>>(&path).unwrap(), Some(vec![1, 2]));
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "a temporary file is left");
        }
        for half in ["", "[1,"] {
            fs::write(&path, half).unwrap();
            assert!(matches!(read::<Vec<u32>>(&path), Err(Error::Record { .. })));
            assert_eq!(read_if_whole::<Vec<u32>>(&path).unwrap(), None);
        }
        // A directory is there and cannot be read: that is not the same as missing.
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(matches!(read_if_whole::<Vec<u32>>(&path), Err(Error::System { .. })));
    }
}
