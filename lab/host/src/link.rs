//! Brings a file of the host or of the cache into an environment: as a link if both are on one file system, else as a
//! copy.

use std::fs;
use std::io;
use std::path::Path;

use crate::error::{At, Result};

/// Puts a file, with its time, in a place of its own, in one step. The directory is made.
pub(crate) fn place(source: &Path, target: &Path) -> Result<()> {
    let parent = target.parent().unwrap_or(target);
    fs::create_dir_all(parent).at("create", parent)?;
    let temporary = target.with_extension("new");
    // Of a killed process.
    let _ = fs::remove_file(&temporary);
    match fs::hard_link(source, &temporary) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => copy(source, &temporary)?,
        linked => linked.at("create", &temporary)?,
    }
    fs::rename(&temporary, target).at("create", target)
}

fn copy(source: &Path, target: &Path) -> Result<()> {
    fs::copy(source, target).at("copy", source)?;
    let time = fs::metadata(source).and_then(|found| found.modified()).at("read", source)?;
    let file = fs::File::options().write(true).open(target).at("open", target)?;
    file.set_modified(time).at("write", target)?;
    // Else a crash of the host could leave an empty file under the right name.
    file.sync_all().at("write", target)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_file_is_linked_or_copied_with_its_time() {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("source");
        fs::write(&source, "content").unwrap();
        let target = directory.path().join("a/b/target");
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::write(target.with_extension("new"), "left by a killed process").unwrap();
        place(&source, &target).unwrap();
        place(&source, &target).unwrap();
        assert_eq!(fs::metadata(&target).unwrap().ino(), fs::metadata(&source).unwrap().ino());
        let copied = directory.path().join("copied");
        copy(&source, &copied).unwrap();
        let modified = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
        assert_eq!(fs::read(&copied).unwrap(), b"content");
        assert_eq!(modified(&copied), modified(&source));
    }
}
