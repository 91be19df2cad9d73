//! A private /dev: only nodes that belong to no hardware, so that a machine cannot use a disk of the host.

use std::{fs, os::unix::fs::symlink, path::Path};

use rustix::{
    fs::{CWD, FileType, Mode, makedev, mknodat},
    mount::{MountFlags, mount as mount_at},
};

use super::make_directory;
use crate::error::{Doing, Result, on};

/// Name, major, minor, permissions. kubelet reads kmsg for out-of-memory kills; pods use fuse and tun.
const NODES: [(&str, u32, u32, u32); 9] = [
    ("null", 1, 3, 0o666),
    ("zero", 1, 5, 0o666),
    ("full", 1, 7, 0o666),
    ("random", 1, 8, 0o666),
    ("urandom", 1, 9, 0o666),
    ("kmsg", 1, 11, 0o644),
    ("tty", 5, 0, 0o666),
    ("fuse", 10, 229, 0o666),
    ("net/tun", 10, 200, 0o666),
];

const LINKS: [(&str, &str); 7] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
    ("core", "/proc/kcore"),
    // There is no console; programs that write to one must not fail.
    ("console", "null"),
];

pub(super) fn mount() -> Result<()> {
    let dev = Path::new("/dev");
    let safe = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount_at("tmpfs", dev, "tmpfs", MountFlags::NOSUID, c"mode=755,size=16m").doing(|| on("mount", dev))?;
    make_directory(&dev.join("net"), 0o755)?;
    for (name, major, minor, mode) in NODES {
        let path = dev.join(name);
        mknodat(CWD, &path, FileType::CharacterDevice, Mode::from_raw_mode(mode), makedev(major, minor))
            .doing(|| on("create", &path))?;
        // mknod obeys the umask.
        rustix::fs::chmod(&path, Mode::from_raw_mode(mode)).doing(|| on("set the permissions of", &path))?;
    }
    for (name, target) in LINKS {
        let path = dev.join(name);
        symlink(target, &path).doing(|| on("create", &path))?;
    }
    for (name, kind, options) in [
        ("pts", "devpts", c"newinstance,gid=5,mode=620,ptmxmode=666"),
        ("shm", "tmpfs", c"mode=1777"),
        ("mqueue", "mqueue", c""),
    ] {
        let path = dev.join(name);
        fs::create_dir(&path).doing(|| on("create", &path))?;
        mount_at(kind, &path, kind, safe, options).doing(|| on("mount", &path))?;
    }
    Ok(())
}
