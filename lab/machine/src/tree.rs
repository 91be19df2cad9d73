//! Copies directory trees at almost no cost.
//!
//! A container runtime writes most of its files once and never changes them (blobs, unpacked files), except for its
//! databases. So a copy shares the former by hard links and copies the latter.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink},
    path::Path,
};

use crate::error::{Doing, Result, on};

/// A copy of a tree with hard links for files, except for databases (`*.db`). On another file system everything is
/// copied. What is at the target stays, unless it has the same name: then it is an error.
pub fn link_tree(from: &Path, to: &Path) -> Result<()> {
    let found = fs::symlink_metadata(from).doing(|| on("read", from))?;
    if found.is_dir() {
        fs::create_dir_all(to).doing(|| on("create", to))?;
        for entry in fs::read_dir(from).doing(|| on("list", from))? {
            let entry = entry.doing(|| on("list", from))?;
            link_tree(&entry.path(), &to.join(entry.file_name()))?;
        }
        chown(to, Some(found.uid()), Some(found.gid())).doing(|| on("set the owner of", to))?;
        return fs::set_permissions(to, fs::Permissions::from_mode(found.mode() & 0o7777))
            .doing(|| on("set the permissions of", to));
    }
    if found.is_symlink() {
        let target = fs::read_link(from).doing(|| on("read", from))?;
        return symlink(&target, to).doing(|| on("create", to));
    }
    if !found.is_file() {
        return Ok(());
    }
    let is_database = from.extension().is_some_and(|extension| extension == "db");
    if !is_database {
        match fs::hard_link(from, to) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {}
            linked => return linked.doing(|| on("create", to)),
        }
    }
    fs::copy(from, to).doing(|| on("copy", from))?;
    chown(to, Some(found.uid()), Some(found.gid())).doing(|| on("set the owner of", to))
}

/// Makes a directory such a copy of another. The directory itself stays: a machine may have it bound.
pub fn fill_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).doing(|| on("create", to))?;
    for entry in fs::read_dir(to).doing(|| on("list", to))? {
        let entry = entry.doing(|| on("list", to))?;
        let path = entry.path();
        let is_directory = entry.file_type().doing(|| on("read", &path))?.is_dir();
        let removed = if is_directory { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.doing(|| on("remove", &path))?;
    }
    link_tree(from, to)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn databases_are_copied_and_the_rest_is_shared() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("from"), directory.path().join("to"));
        fs::create_dir_all(from.join("snapshots/1/fs/tmp")).unwrap();
        fs::set_permissions(from.join("snapshots/1/fs/tmp"), fs::Permissions::from_mode(0o1777)).unwrap();
        fs::write(from.join("meta.db"), "database").unwrap();
        fs::write(from.join("snapshots/1/fs/program"), "program").unwrap();
        symlink("usr/lib", from.join("snapshots/1/fs/lib")).unwrap();
        // Half a copy that a killed process left.
        fs::create_dir_all(to.join("snapshots/1")).unwrap();
        fs::write(to.join("meta.db"), "hal").unwrap();
        fill_tree(&from, &to).unwrap();
        let inode = |path: PathBuf| fs::metadata(path).unwrap().ino();
        assert_eq!(inode(from.join("snapshots/1/fs/program")), inode(to.join("snapshots/1/fs/program")));
        assert_ne!(inode(from.join("meta.db")), inode(to.join("meta.db")));
        assert_eq!(fs::read_to_string(to.join("meta.db")).unwrap(), "database");
        assert_eq!(fs::read_link(to.join("snapshots/1/fs/lib")).unwrap(), Path::new("usr/lib"));
        assert_eq!(fs::metadata(to.join("snapshots/1/fs/tmp")).unwrap().mode() & 0o7777, 0o1777);
    }
}
