//! Files into a running machine.
//!
//! Paths are resolved by the kernel with the machine's root as their root, so that no link inside can lead a copy
//! to the host's files.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::fs::{MetadataExt, PermissionsExt},
    },
    path::{Component, Path},
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, renameat, symlinkat, unlinkat},
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

    /// Copies a file, or a directory with everything in it, from the host to `target` inside. Missing directories
    /// are made; files are replaced in one step; permissions are kept, owners become root.
    pub fn copy_in(&self, source: &Path, target: &Path) -> Result<()> {
        let root = self.root()?;
        copy(root.as_fd(), source, target)
    }

    /// Writes bytes to a file inside.
    pub fn write_file(&self, target: &Path, content: &[u8], mode: u32) -> Result<()> {
        let root = self.root()?;
        let (parent, name) = parent_and_name(root.as_fd(), target)?;
        write(parent.as_fd(), name, target, &mut io::Cursor::new(content), mode)
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

fn copy(root: BorrowedFd<'_>, source: &Path, target: &Path) -> Result<()> {
    let metadata = fs::symlink_metadata(source).doing(|| on("read", source))?;
    if metadata.is_dir() {
        let made = directory(root, target)?;
        let mode = fs::Permissions::from_mode(metadata.mode() & 0o7777);
        // Through the descriptor's name in /proc: a path descriptor takes no fchmod.
        let own = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&made));
        fs::set_permissions(&own, mode).doing(|| on("set the permissions of", target))?;
        for entry in fs::read_dir(source).doing(|| on("list", source))? {
            let entry = entry.doing(|| on("list", source))?;
            copy(root, &entry.path(), &target.join(entry.file_name()))?;
        }
        return Ok(());
    }
    let (parent, name) = parent_and_name(root, target)?;
    if metadata.is_symlink() {
        let link = fs::read_link(source).doing(|| on("read", source))?;
        match unlinkat(&parent, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error).doing(|| on("replace", target)),
        }
        return symlinkat(&link, &parent, name).doing(|| on("create", target));
    }
    if !metadata.is_file() {
        return Err(Error::Invalid(format!("{} is neither file, directory nor link", source.display())));
    }
    let mut content = File::open(source).doing(|| on("open", source))?;
    write(parent.as_fd(), name, target, &mut content, metadata.mode() & 0o7777)
}

fn write(
    parent: BorrowedFd<'_>,
    name: &OsStr,
    target: &Path,
    content: &mut dyn Read,
    mode: u32,
) -> Result<()> {
    let temporary = format!(".{}.{}", name.to_string_lossy(), uuid::Uuid::new_v4().simple());
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = openat(parent, temporary.as_str(), flags, Mode::from_raw_mode(0o600));
    let mut file = File::from(file.doing(|| on("create", target))?);
    let written = io::copy(content, &mut file)
        .and_then(|_| file.set_permissions(fs::Permissions::from_mode(mode)))
        .and_then(|()| renameat(parent, temporary.as_str(), parent, name).map_err(io::Error::from));
    if written.is_err() {
        let _ = unlinkat(parent, temporary.as_str(), AtFlags::empty());
    }
    written.doing(|| on("write", target))
}
