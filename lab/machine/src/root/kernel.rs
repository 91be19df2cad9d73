//! Mounts /proc, /sys, the control groups, /run and /tmp.

use std::{fs, os::unix::fs::symlink, path::Path};

use rustix::mount::{MountFlags, mount as mount_at, mount_bind, mount_remount};

use super::{CLEAN_PROC, binds::OpenBind, make_directory};
use crate::{
    cgroup::{Hierarchies, Version},
    error::{Doing, Result, on},
};

pub(crate) const CGROUP: &str = "/sys/fs/cgroup";

/// Mounts all of them. The hierarchies are read from the machine's own (still host-like) mount table before.
pub(super) fn mount() -> Result<()> {
    let safe = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    for (target, kind, flags, options) in [
        ("/proc", "proc", safe, c""),
        (CLEAN_PROC, "proc", safe, c""),
        ("/sys", "sysfs", safe, c""),
        ("/run", "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"mode=755"),
        ("/tmp", "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"mode=1777"),
    ] {
        mount_at(kind, target, kind, flags, options).doing(|| format!("mount {target}"))?;
    }
    make_directory(Path::new("/run/lock"), 0o1777)
}

/// Mounts the control groups. Inside the machine's control group namespace a mount shows its own part alone.
pub(crate) fn mount_cgroups(hierarchies: &Hierarchies) -> Result<()> {
    let safe = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    if hierarchies.is_unified() {
        return mount_at("cgroup2", CGROUP, "cgroup2", safe, c"").doing(|| on("mount", Path::new(CGROUP)));
    }
    mount_at("tmpfs", CGROUP, "tmpfs", safe, c"mode=755").doing(|| on("mount", Path::new(CGROUP)))?;
    for hierarchy in hierarchies.all.iter().filter(|one| one.version == Version::One) {
        let name = hierarchy.directory_name();
        let target = Path::new(CGROUP).join(&name);
        fs::create_dir(&target).doing(|| on("create", &target))?;
        let options = std::ffi::CString::new(hierarchy.mount_options()).unwrap_or_default();
        mount_at("cgroup", &target, "cgroup", safe, options.as_c_str()).doing(|| on("mount", &target))?;
        if hierarchy.controllers.len() > 1 {
            for controller in &hierarchy.controllers {
                let link = Path::new(CGROUP).join(controller);
                symlink(&name, &link).doing(|| on("create", &link))?;
            }
        }
    }
    Ok(())
}

/// Makes global kernel settings read-only inside, except those of the machine's network and the private files.
pub(super) fn protect_sysctls(private: Vec<OpenBind>) -> Result<()> {
    let all = Path::new("/proc/sys");
    mount_bind(all, all).doing(|| on("mount", all))?;
    let flags =
        MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount_remount(all, flags, c"").doing(|| on("make read-only", all))?;
    // From the clean proc: a bind from below the read-only mount would be read-only too.
    let network = Path::new("/proc/sys/net");
    mount_bind(Path::new(CLEAN_PROC).join("sys/net"), network).doing(|| on("mount", network))?;
    for bind in private {
        bind.attach()?;
    }
    Ok(())
}
