//! Copies files into a running machine.
//!
//! Paths are resolved by the kernel with the machine's root as their root, so that no link inside can lead a copy to
//! the host's files.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::fs::PermissionsExt,
    },
    path::{Component, Path},
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, renameat, unlinkat},
    io::Errno,
};

use super::Machine;
use crate::error::{Doing, Error, Result, on};

impl Machine {
    fn root(&self) -> Result<OwnedFd> {
        let first = self.first_process()?;
        let path = format!("/proc/{}/root", first.pid);
        let root =
            openat(CWD, path.as_str(), OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let root = root.doing(|| format!("open {path}"))?;
        // The number could have been reused between the check and the open.
        if first.is_alive() { Ok(root) } else { Err(Error::NotRunning(self.name.to_string())) }
    }

    pub(super) fn has_file(&self, path: &Path) -> Result<bool> {
        let root = self.root()?;
        match resolve(root.as_fd(), path, OFlags::PATH) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(error) => Err(error).doing(|| on("look for", path)),
        }
    }

    /// Writes bytes to a file inside.
    pub fn write_file(&self, target: &Path, content: &[u8], mode: u32) -> Result<()> {
        let root = self.root()?;
        let (parent, name) = parent_and_name(root.as_fd(), target)?;
        write(parent.as_fd(), name, target, content, mode)
    }

    /// Reads a file inside.
    pub fn read_file(&self, path: &Path) -> Result<Vec<u8>> {
        let root = self.root()?;
        let file = resolve(root.as_fd(), path, OFlags::RDONLY).doing(|| on("open", path))?;
        let mut content = Vec::new();
        File::from(file).read_to_end(&mut content).doing(|| on("read", path))?;
        Ok(content)
    }
}

fn resolve(root: BorrowedFd<'_>, path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    loop {
        match openat2(root, path, flags | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::IN_ROOT) {
            // A rename elsewhere disturbed the look-up.
            Err(Errno::AGAIN) => {}
            done => return done,
        }
    }
}

/// Opens the parent directory of `target`, making what is missing.
fn parent_and_name<'a>(root: BorrowedFd<'_>, target: &'a Path) -> Result<(OwnedFd, &'a OsStr)> {
    let plain = target.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let (Some(parent), Some(name), true) =
        (target.parent(), target.file_name(), plain && target.is_absolute())
    else {
        return Err(Error::Invalid(format!("{} is not an absolute path of a file", target.display())));
    };
    Ok((directory(root, parent)?, name))
}

fn directory(root: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    match resolve(root, path, flags) {
        Err(Errno::NOENT) => {}
        done => return done.doing(|| on("open", path)),
    }
    let (parent, name) = parent_and_name(root, path)?;
    match mkdirat(&parent, name, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error).doing(|| on("create", path)),
    }
    resolve(root, path, flags).doing(|| on("open", path))
}

fn write(parent: BorrowedFd<'_>, name: &OsStr, target: &Path, content: &[u8], mode: u32) -> Result<()> {
    let temporary = format!(".{}.{}", name.to_string_lossy(), uuid::Uuid::new_v4().simple());
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = openat(parent, temporary.as_str(), flags, Mode::from_raw_mode(0o600));
    let mut file = File::from(file.doing(|| on("create", target))?);
    let written = file
        .write_all(content)
        .and_then(|()| file.set_permissions(fs::Permissions::from_mode(mode)))
        .and_then(|()| renameat(parent, temporary.as_str(), parent, name).map_err(io::Error::from));
    if written.is_err() {
        let _ = unlinkat(parent, temporary.as_str(), AtFlags::empty());
    }
    written.doing(|| on("write", target))
}
