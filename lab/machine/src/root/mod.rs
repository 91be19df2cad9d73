//! The root directory of a machine, built by its first process inside its own mount namespace.
//!
//! ```text
//! /usr /etc /var      overlays: the machine's own changes, extra layers, masks, the host's directory
//! /home /opt /root …  directories of the machine, kept over restarts
//! /run /tmp           tmpfs, fresh at each start
//! /dev                tmpfs with the standard nodes; nothing of the host's
//! /proc /sys          of the machine's own process, network and control group namespaces
//! ```
//!
//! Nothing is mounted in the host's mount namespace, so nothing has to be unmounted there: when the last process of the
//! machine is gone, so are its mounts. After `pivot_root` symbolic links resolve inside the machine; therefore what is
//! needed from the host is opened before and mounted after.

mod binds;
mod devices;
mod identity;
mod kernel;
mod layers;

use std::{
    fs,
    os::unix::fs::{DirBuilderExt, PermissionsExt, symlink},
    path::Path,
};

use rustix::{
    mount::{MountPropagationFlags, UnmountFlags, mount_bind, mount_change, unmount},
    thread::{UnshareFlags, unshare_unsafe},
};

use self::binds::OpenBind;
pub(crate) use self::kernel::CGROUP;
use crate::{
    cgroup::Hierarchies,
    error::{Doing, Result, on},
    record::{Files, Record},
};

/// Where the logs are inside.
pub(crate) const LOGS: &str = "/var/log/hangar";
/// A proc with nothing mounted over parts of it: the kernel lets user-namespaced pods mount theirs only if the
/// machine has one.
pub(crate) const CLEAN_PROC: &str = "/mnt/proc";

/// Builds the root in a mount namespace of its own and moves into it. Must run as the first process of a machine, before
/// it has threads.
pub(crate) fn enter(files: &Files, record: &Record) -> Result<()> {
    leave_mounts()?;
    let everything = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", everything).doing(|| "make the mounts private")?;
    let root = files.root();
    skeleton(&root)?;
    // pivot_root wants a mount point.
    mount_bind(&root, &root).doing(|| on("mount", &root))?;
    let hierarchies = Hierarchies::discover()?;
    // An empty one is what a host that crashed may have left of the last file.
    let machine_id = files.overlay("etc", "upper").join("machine-id");
    let is_first_start = !fs::metadata(machine_id).is_ok_and(|found| found.len() > 0);
    layers::mount(files, record)?;
    let binds = open_binds(files, record)?;
    let sysctls = open_sysctls(files, record)?;

    rustix::process::chdir(&root).doing(|| on("enter", &root))?;
    rustix::process::pivot_root(".", ".").doing(|| "change the root directory")?;
    unmount(".", UnmountFlags::DETACH).doing(|| "unmount the host's root directory")?;
    rustix::process::chdir("/").doing(|| "enter the new root directory")?;

    kernel::mount()?;
    kernel::mount_cgroups(&hierarchies)?;
    devices::mount()?;
    for bind in binds {
        bind.attach()?;
    }
    kernel::protect_sysctls(sysctls)?;
    if is_first_start {
        identity::write(record)?;
    }
    identity::write_files(&record.spec.files)?;
    let hostname = record.spec.hostname();
    rustix::system::sethostname(hostname.as_bytes()).doing(|| "set the host name")?;
    // kubelet and containers pass mounts on to each other.
    let everything = MountPropagationFlags::SHARED | MountPropagationFlags::REC;
    mount_change("/", everything).doing(|| "share the mounts")
}

fn leave_mounts() -> Result<()> {
    // SAFETY: no other thread exists yet, so none can hold a view of the file system that this would silently change;
    // neither descriptors nor memory are unshared.
    #[allow(unsafe_code)]
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.doing(|| "make a mount namespace")
}

/// Plain directories and the links of a merged /usr.
fn skeleton(root: &Path) -> Result<()> {
    make_directory(root, 0o755)?;
    for (name, mode) in [
        ("dev", 0o755),
        ("etc", 0o755),
        ("home", 0o755),
        ("media", 0o755),
        ("mnt", 0o755),
        ("opt", 0o755),
        ("proc", 0o555),
        ("root", 0o700),
        ("run", 0o755),
        ("srv", 0o755),
        ("sys", 0o555),
        ("tmp", 0o1777),
        ("usr", 0o755),
        ("var", 0o755),
    ] {
        make_directory(&root.join(name), mode)?;
    }
    make_directory(&root.join(CLEAN_PROC.trim_start_matches('/')), 0o555)?;
    for entry in fs::read_dir("/").doing(|| "list /")?.flatten() {
        let Ok(target) = fs::read_link(entry.path()) else {
            continue;
        };
        // Only links such as `bin -> usr/bin`; others may point anywhere.
        if target.strip_prefix("/").unwrap_or(&target).starts_with("usr") {
            let link = root.join(entry.file_name());
            if fs::symlink_metadata(&link).is_err() {
                symlink(&target, &link).doing(|| on("create", &link))?;
            }
        }
    }
    Ok(())
}

fn open_binds(files: &Files, record: &Record) -> Result<Vec<OpenBind>> {
    let mut binds = Vec::new();
    for (name, target) in [("containerd", "/var/lib/containerd"), ("kubelet", "/var/lib/kubelet")] {
        let source = files.data(name);
        make_directory(&source, 0o755)?;
        binds.push(OpenBind::open(&source, Path::new(target), false)?);
    }
    binds.push(OpenBind::open(&files.logs(), Path::new(LOGS), false)?);
    for bind in &record.spec.binds {
        binds.push(OpenBind::open(&bind.source, &bind.target, bind.read_only)?);
    }
    Ok(binds)
}

fn open_sysctls(files: &Files, record: &Record) -> Result<Vec<OpenBind>> {
    let mut opened = Vec::new();
    for (name, value) in &record.spec.private_sysctls {
        let target = Path::new("/proc/sys").join(name);
        // The host's proc shows the same settings as the machine's will.
        if !target.exists() {
            continue;
        }
        let file = files.sysctl(name);
        if let Some(parent) = file.parent() {
            make_directory(parent, 0o755)?;
        }
        fs::write(&file, format!("{value}\n")).doing(|| on("write", &file))?;
        opened.push(OpenBind::open(&file, &target, false)?);
    }
    Ok(opened)
}

/// Makes a directory with exactly these permissions, whatever the umask.
pub(crate) fn make_directory(path: &Path, mode: u32) -> Result<()> {
    fs::DirBuilder::new().recursive(true).mode(mode).create(path).doing(|| on("create", path))?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).doing(|| on("set the permissions of", path))
}
