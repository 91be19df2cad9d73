//! A backup on the volume of a member: fetched beside the data, and put in its place as a whole.
//!
//! ```text
//! <into>/snapshot.db      fetched and checked; between the two, `etcdutl snapshot restore` makes
//! <into>/data             of it, which gets
//! <to>                    its name in one step
//! ```
//!
//! The data of a member that has survived can take the place of what is fetched: [`inspect`] finds out whether it can be
//! copied, and `etcdutl` reads it where it is.
//!
//! Everything below `into` is ours, and is thrown away at the beginning: what a try that died left there is of no use. `to`
//! is written once. If it is there it is complete, and nothing touches it again. The data of before has another name.

use std::fs;
use std::io;
use std::path::Path;

use rustix::fs::FlockOperation;

use crate::text::clean;
use crate::{BackupId, BackupKey, BackupStore, Error, Manifest};

const VOLUME: &str = "the volume";
const SNAPSHOT: &str = "snapshot.db";
const DATA: &str = "data";
/// Where etcd has its database.
const DATABASE: &str = "member/snap/db";

/// What file systems and logs need besides.
const MARGIN: u64 = 64 << 20;

/// Fetches a backup. The directory is empty after a failure: a volume that is full has at least what it had.
pub async fn fetch(
    store: &BackupStore,
    id: &BackupId,
    key: Option<&BackupKey>,
    into: &Path,
) -> Result<Manifest, Error> {
    clear(into)?;
    let fetched = fetch_into(store, id, key, into).await;
    if fetched.is_err() {
        // What failed is what people have to know.
        let _ = clear(into);
    }
    fetched
}

async fn fetch_into(
    store: &BackupStore,
    id: &BackupId,
    key: Option<&BackupKey>,
    into: &Path,
) -> Result<Manifest, Error> {
    // Nothing of the manifest is believed but how much room there should be; the object itself is checked as it comes.
    let manifest = store.manifest(id).await?;
    // The object as it comes, and the database that is made of it.
    has_room(into, manifest.size.saturating_mul(2))?;
    let backup = store.read(id, key).await?;
    let path = into.join(SNAPSHOT);
    let file = fs::File::create(&path).map_err(|error| failed("create", &path, &error))?;
    let mut file = tokio::fs::File::from_std(file);
    let manifest = backup.copy_to(&mut file).await?;
    file.sync_all().await.map_err(|error| failed("write", &path, &error))?;
    Ok(manifest)
}

/// Whether the data of a member can be copied: it is there, nobody uses it, and there is room. Says how large it is. Makes
/// the directory for the copy.
pub fn inspect(data: &Path, into: &Path) -> Result<u64, Error> {
    clear(into)?;
    let path = data.join(DATABASE);
    let file = fs::File::open(&path).map_err(|error| failed("open", &path, &error))?;
    // etcd holds the other kind of lock for as long as it runs.
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared)
        .map_err(|error| failed("lock (does a member run?)", &path, &error.into()))?;
    let size = file.metadata().map_err(|error| failed("read", &path, &error))?.len();
    has_room(into, size)?;
    Ok(size)
}

/// Gives the data its name. Says whether it was there already.
pub fn place(from: &Path, to: &Path) -> Result<bool, Error> {
    let is_there = fs::symlink_metadata(to).is_ok();
    if !is_there {
        let data = from.join(DATA);
        sync(&data)?;
        fs::rename(&data, to).map_err(|error| failed("rename", &data, &error))?;
        sync_directory(to.parent().unwrap_or(to))?;
    }
    fs::remove_dir_all(from).or_else(absent_is_fine).map_err(|error| failed("remove", from, &error))?;
    Ok(is_there)
}

fn has_room(directory: &Path, size: u64) -> Result<(), Error> {
    let space = rustix::fs::statvfs(directory)
        .map_err(|error| failed("ask for the space of", directory, &error.into()))?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    let needed = size.saturating_add(MARGIN);
    if free < needed {
        let mebibytes = |bytes: u64| bytes.div_ceil(1 << 20);
        let why = format!(
            "it has {} MiB left, and the restore needs {} MiB; nothing was changed",
            free >> 20,
            mebibytes(needed)
        );
        return Err(Error::unusable(VOLUME, why));
    }
    Ok(())
}

fn clear(directory: &Path) -> Result<(), Error> {
    fs::remove_dir_all(directory)
        .or_else(absent_is_fine)
        .map_err(|error| failed("remove", directory, &error))?;
    fs::create_dir(directory).map_err(|error| failed("create", directory, &error))
}

fn absent_is_fine(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// All of it is on the disk before it gets its name.
fn sync(directory: &Path) -> Result<(), Error> {
    let entries = fs::read_dir(directory).map_err(|error| failed("read", directory, &error))?;
    for entry in entries {
        let path = entry.map_err(|error| failed("read", directory, &error))?.path();
        let kind = fs::symlink_metadata(&path).map_err(|error| failed("read", &path, &error))?;
        if kind.is_dir() {
            sync(&path)?;
        } else {
            let written = fs::File::open(&path).and_then(|file| file.sync_all());
            written.map_err(|error| failed("write", &path, &error))?;
        }
    }
    sync_directory(directory)
}

fn sync_directory(directory: &Path) -> Result<(), Error> {
    let written = fs::File::open(directory).and_then(|file| file.sync_all());
    written.map_err(|error| failed("write", directory, &error))
}

fn failed(what: &str, path: &Path, error: &io::Error) -> Error {
    Error::unusable(VOLUME, clean(&format!("cannot {what} {}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(path: &Path) -> String {
        fs::read_to_string(path.join("member/db")).unwrap_or_default()
    }

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.join("member")).unwrap();
        fs::write(path.join("member/db"), text).unwrap();
    }

    #[test]
    fn data_gets_its_name_once_and_is_not_touched_again() {
        let volume = tempfile::tempdir().unwrap();
        let (from, to) = (volume.path().join("restoring"), volume.path().join("data-2"));
        write(&volume.path().join("data"), "of before");
        write(&from.join("data"), "restored");
        assert_eq!(place(&from, &to), Ok(false));
        assert!(!from.exists());
        // The pod began anew: another directory was made, and another one is in use by then.
        write(&to, "written since");
        write(&from.join("data"), "restored");
        assert_eq!(place(&from, &to), Ok(true));
        assert_eq!(place(&from, &to), Ok(true), "nothing is left to do");
        assert_eq!((content(&to).as_str(), from.exists()), ("written since", false));
        assert_eq!(content(&volume.path().join("data")), "of before");
    }

    #[test]
    fn without_data_nothing_gets_the_name() {
        let volume = tempfile::tempdir().unwrap();
        let (from, to) = (volume.path().join("restoring"), volume.path().join("data-2"));
        fs::create_dir(&from).unwrap();
        let error = place(&from, &to).unwrap_err().to_string();
        assert!(error.contains("restoring/data") && !to.exists(), "{error}");
    }

    #[test]
    fn what_does_not_fit_is_refused_before_anything_is_fetched() {
        let volume = tempfile::tempdir().unwrap();
        let error = has_room(volume.path(), 1 << 60).unwrap_err().to_string();
        assert!(error.contains("MiB left") && error.contains("nothing was changed"), "{error}");
        assert_eq!(has_room(volume.path(), 1), Ok(()));
    }

    #[test]
    fn data_is_copied_only_while_nobody_uses_it() {
        let volume = tempfile::tempdir().unwrap();
        let (data, into) = (volume.path().join("data"), volume.path().join("restoring"));
        let error = inspect(&data, &into).unwrap_err().to_string();
        assert!(error.contains("data/member/snap/db"), "{error}");
        fs::create_dir_all(data.join("member/snap")).unwrap();
        let file = fs::File::create(data.join(DATABASE)).unwrap();
        fs::write(data.join(DATABASE), "all of it").unwrap();
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        let error = inspect(&data, &into).unwrap_err().to_string();
        assert!(error.contains("does a member run?"), "{error}");
        drop(file);
        write(&into.join("data"), "of an earlier try");
        assert_eq!(inspect(&data, &into), Ok(9));
        assert_eq!(fs::read_dir(&into).unwrap().count(), 0);
        assert_eq!(fs::read_to_string(data.join(DATABASE)).unwrap(), "all of it");
    }

    #[test]
    fn what_an_earlier_try_left_is_thrown_away() {
        let volume = tempfile::tempdir().unwrap();
        let into = volume.path().join("restoring");
        write(&into.join("data"), "half of it");
        clear(&into).unwrap();
        assert_eq!(fs::read_dir(&into).unwrap().count(), 0);
    }
}
