//! /usr, /etc and /var: overlays with the host's directory at the bottom.
//!
//! Between the extra layers and the host's directory lies a mask: a tree of empty directories marked opaque, which hide
//! the host's directories of the same path. In the machine they are ordinary writable directories, kept over restarts.
//! The masks are on a tmpfs that only the machine sees: overlayfs refuses a lower directory inside another, and the
//! state directory usually is inside /var.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{XattrFlags, setxattr},
    io::Errno,
    mount::{MountFlags, mount as mount_at},
};

use super::make_directory;
use crate::{
    error::{Doing, Error, Result, on},
    record::{Files, Record},
    spec::overlay_path,
};

fn mount_one(files: &Files, record: &Record, name: &str, extra: &[PathBuf]) -> Result<()> {
    let host = Path::new("/").join(name);
    let (upper, work) = (files.overlay(name, "upper"), files.overlay(name, "work"));
    let mask = files.masks().join(name);
    for directory in [&upper, &work] {
        make_directory(directory, 0o755)?;
    }
    let hidden = hidden_below(record, &host);
    build_mask(&host, &mask, &hidden)?;
    let lower: Result<Vec<&str>> = extra
        .iter()
        .map(PathBuf::as_path)
        .chain([mask.as_path(), host.as_path()])
        .map(overlay_path)
        .collect();
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        lower?.join(":"),
        overlay_path(&upper)?,
        overlay_path(&work)?
    );
    let target = files.root().join(name);
    let options = std::ffi::CString::new(options)
        .map_err(|_| Error::Invalid(format!("a layer of /{name} has a zero byte in its path")))?;
    match mount_at("overlay", &target, "overlay", MountFlags::empty(), options.as_c_str()) {
        Err(Errno::NODEV) => Err(Error::NoOverlay),
        Err(error @ Errno::INVAL) => Err(error).doing(|| {
            let state = record.state.display();
            format!(
                "mount the overlay of /{name} ({state} must lie on a file system that overlayfs can write to, such as \
                 ext4, xfs or btrfs, not on another overlay)"
            )
        }),
        done => done.doing(|| format!("mount the overlay of /{name}")),
    }
}

/// Mounts all three.
pub(super) fn mount(files: &Files, record: &Record) -> Result<()> {
    let layers = &record.spec.layers;
    let masks = files.masks();
    make_directory(&masks, 0o755)?;
    mount_at("tmpfs", &masks, "tmpfs", MountFlags::empty(), c"mode=755,size=16m")
        .doing(|| on("mount", &masks))?;
    mount_one(files, record, "usr", &layers.usr)?;
    mount_one(files, record, "etc", &layers.etc)?;
    mount_one(files, record, "var", &layers.var)
}

/// Masked paths below `host`, relative to it, without those that a masked parent hides anyway.
fn hidden_below(record: &Record, host: &Path) -> BTreeSet<PathBuf> {
    let mut masks = record.spec.masks.clone();
    // The state of all machines is nobody's business inside one; and the overlay would meet itself there.
    masks.insert(record.state.clone());
    let masks: BTreeSet<PathBuf> =
        masks.iter().filter_map(|path| path.strip_prefix(host).ok()).map(Path::to_owned).collect();
    let outermost = |path: &&PathBuf| !path.ancestors().skip(1).any(|parent| masks.contains(parent));
    masks.iter().filter(outermost).cloned().collect()
}

fn build_mask(host: &Path, mask: &Path, hidden: &BTreeSet<PathBuf>) -> Result<()> {
    make_directory(mask, 0o755)?;
    copy_attributes(host, mask)?;
    for path in hidden {
        let is_directory = |path: PathBuf| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
        if path.as_os_str().is_empty() || !is_directory(host.join(path)) {
            continue;
        }
        let mut partial = PathBuf::new();
        for part in path.components() {
            partial.push(part);
            let directory = mask.join(&partial);
            if !directory.exists() {
                fs::create_dir(&directory).doing(|| on("create", &directory))?;
                // The topmost layer that has a directory decides its owner and permissions.
                copy_attributes(&host.join(&partial), &directory)?;
            }
        }
        let directory = mask.join(path);
        setxattr(&directory, "trusted.overlay.opaque", b"y", XattrFlags::empty())
            .doing(|| on("mark as opaque", &directory))?;
    }
    Ok(())
}

fn copy_attributes(from: &Path, to: &Path) -> Result<()> {
    let metadata = fs::metadata(from).doing(|| on("look at", from))?;
    chown(to, Some(metadata.uid()), Some(metadata.gid())).doing(|| on("set the owner of", to))?;
    let mode = fs::Permissions::from_mode(metadata.mode() & 0o7777);
    fs::set_permissions(to, mode).doing(|| on("set the permissions of", to))
}
