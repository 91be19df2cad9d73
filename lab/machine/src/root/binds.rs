//! Host directories and files that are mounted inside a machine.

use std::{
    fs,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::CWD,
    mount::{MountFlags, MoveMountFlags, OpenTreeFlags, mount_remount, move_mount, open_tree},
};

use crate::error::{Doing, Result, on};

/// A copy of a mount that is not attached anywhere yet.
pub(super) struct OpenBind {
    tree: OwnedFd,
    is_directory: bool,
    target: PathBuf,
    read_only: bool,
}

impl OpenBind {
    /// Takes hold of a host path, while it still can be reached.
    pub(super) fn open(source: &Path, target: &Path, read_only: bool) -> Result<Self> {
        let metadata = fs::metadata(source).doing(|| on("open", source))?;
        let mut flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        if !read_only {
            // A read-only bind takes the one mount alone: those below it would stay writable.
            flags |= OpenTreeFlags::AT_RECURSIVE;
        }
        let tree = open_tree(CWD, source, flags).doing(|| on("open", source))?;
        Ok(Self { tree, is_directory: metadata.is_dir(), target: target.to_owned(), read_only })
    }

    /// Attaches it, with links of the target's path followed inside the machine.
    pub(super) fn attach(self) -> Result<()> {
        let target = &self.target;
        if self.is_directory {
            fs::create_dir_all(target).doing(|| on("create", target))?;
        } else if !target.exists() {
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent).doing(|| on("create", parent))?;
            }
            fs::write(target, "").doing(|| on("create", target))?;
        }
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_SYMLINKS;
        move_mount(&self.tree, "", CWD, target, flags).doing(|| on("mount", target))?;
        if self.read_only {
            let flags = MountFlags::BIND | MountFlags::RDONLY;
            mount_remount(target, flags, "").doing(|| on("make read-only", target))?;
        }
        Ok(())
    }
}
