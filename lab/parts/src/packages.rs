//! Unpacks programs of the distribution into the cache.
//!
//! They must not be installed on the host: containerd would conflict with Docker's, and the host's owner decides even
//! about harmless tools. `apt-get` downloads them and checks them against the distribution's signatures:
//!
//! ```text
//! <cache>/packages/<hash>/usr/…            a layer for a machine's /usr
//!                         complete.json    written last: what was unpacked, and what was found on the host
//! ```
//!
//! Invariants:
//! - Nothing is installed, and no maintainer script runs.
//! - A package that the host has installed is not unpacked: machines see the host's /usr below the layer. When it is
//!   removed from the host later, the layer no longer counts as complete and is made again.
//! - Looking up a complete layer starts no process and needs no network.

mod apt;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use apt::Apt;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::cache::{Cache, remove_directory, write_through};
use crate::error::{Context, Error, Result};
use crate::search_path;

/// What a machine needs to run containers and a kubelet.
pub const FOR_MACHINES: &[&str] = &[
    "busybox-static",
    "conntrack",
    "containerd",
    "ethtool",
    "iproute2",
    "iptables",
    "nftables",
    "runc",
    "socat",
];

/// What a machine needs to follow user data: cloud-init, which on the host itself would run at the next boot.
pub const FOR_CLOUD_INIT: &[&str] = &["cloud-init"];

const STAMP: &str = "complete.json";
/// Raised when the same packages are unpacked differently.
const LAYOUT: &str = "1";
/// Names that a maintainer script would have made.
const ALTERNATIVES: &[(&str, &str)] = &[
    ("usr/sbin/iptables", "xtables-nft-multi"),
    ("usr/sbin/iptables-save", "xtables-nft-multi"),
    ("usr/sbin/iptables-restore", "xtables-nft-multi"),
    ("usr/sbin/ip6tables", "xtables-nft-multi"),
    ("usr/sbin/ip6tables-save", "xtables-nft-multi"),
    ("usr/sbin/ip6tables-restore", "xtables-nft-multi"),
];

#[derive(Debug, Serialize, Deserialize)]
struct Stamp {
    unpacked: Vec<String>,
    on_host: BTreeSet<String>,
}

#[derive(Debug, Clone)]
pub struct Packages {
    root: PathBuf,
}

impl Packages {
    /// The tree to lay over a machine's /usr.
    pub fn usr(&self) -> PathBuf {
        self.root.join("usr")
    }

    /// A program, unpacked or the host's.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        let directories = ["usr/sbin", "usr/bin"];
        let roots = [self.root.as_path(), Path::new("/")];
        roots
            .iter()
            .flat_map(|root| directories.map(|directory| root.join(directory).join(name)))
            .find(|path| path.exists())
    }

    /// Value of `LD_LIBRARY_PATH` for running an unpacked program outside of a machine.
    pub fn library_path(&self) -> OsString {
        let directories: Vec<PathBuf> = self.library_directories();
        std::env::join_paths(directories).unwrap_or_default()
    }

    /// Where unpacked libraries lie.
    pub fn library_directories(&self) -> Vec<PathBuf> {
        let lib = self.root.join("usr/lib");
        let multiarch = format!("{}-linux-gnu", std::env::consts::ARCH);
        vec![lib.join(multiarch), lib]
    }

    /// The directory that stands for `/` of the unpacked files.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

/// Finds the packages unpacked, or downloads and unpacks them. `announce` hears what takes time.
pub fn ensure(cache: &Cache, names: &[&str], announce: &mut dyn FnMut(&str)) -> Result<Packages> {
    let root = cache.root().join("packages").join(directory_name(names));
    let packages = Packages { root };
    if is_complete(&packages.root) {
        return Ok(packages);
    }
    let parent = cache.root().join("packages");
    fs::create_dir_all(&parent).context("create", &parent)?;
    let lock_path = parent.join(".lock");
    let lock = fs::File::options().create(true).append(true).open(&lock_path).context("open", &lock_path)?;
    if lock.try_lock().is_err() {
        announce("waiting for another process that gets packages");
        lock.lock().context("lock", &lock_path)?;
    }
    // Another process may just have done it.
    if !is_complete(&packages.root) {
        unpack(&packages.root, names, announce)?;
    }
    Ok(packages)
}

/// Refuses what [`ensure`] cannot do on this host at all. Nothing is written, and the network is not asked.
pub fn check(cache: &Cache, names: &[&str]) -> Result<()> {
    if is_complete(&cache.root().join("packages").join(directory_name(names))) {
        return Ok(());
    }
    match ["apt-get", "apt-cache", "dpkg-deb"].into_iter().find(|name| search_path::find(name).is_none()) {
        None => Ok(()),
        Some(missing) => Err(Error::Packages { packages: names.join(", "), reason: needs_debian(missing) }),
    }
}

fn needs_debian(program: &str) -> String {
    format!("{program} is missing: this needs a Debian-like host")
}

/// Twelve hex digits over what decides the content: the names, the distribution, the machine's kind.
fn directory_name(names: &[&str]) -> String {
    let mut hasher = Sha256::new();
    let release = fs::read("/etc/os-release").unwrap_or_default();
    for part in [LAYOUT.as_bytes(), std::env::consts::ARCH.as_bytes(), &release] {
        hasher.update(part);
        hasher.update([0]);
    }
    for name in names {
        hasher.update(name.as_bytes());
        hasher.update([0]);
    }
    let number = hasher.finalize().iter().take(6).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    format!("{number:012x}")
}

fn is_complete(root: &Path) -> bool {
    let stamp = fs::read(root.join(STAMP)).ok().and_then(|text| serde_json::from_slice::<Stamp>(&text).ok());
    stamp.is_some_and(|stamp| stamp.on_host.is_empty() || stamp.on_host.is_subset(&apt::installed()))
}

fn unpack(root: &Path, names: &[&str], announce: &mut dyn FnMut(&str)) -> Result<()> {
    let apt = Apt::default();
    let parent = root.parent().unwrap_or(root);
    let staging = parent.join(".staging");
    remove_directory(&staging)?;
    let archives = staging.join("archives");
    let needed = apt.obtain(names, &apt::installed(), &archives, announce)?;
    announce("unpacking");
    let mut unpacked = Vec::new();
    for entry in fs::read_dir(&archives).context("read", &archives)? {
        let path = entry.context("read", &archives)?.path();
        apt.unpack(names, &path, &staging)?;
        unpacked.push(path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
    }
    unpacked.sort();
    remove_directory(&archives)?;
    merge_usr(&staging)?;
    for (link, target) in ALTERNATIVES {
        let link = staging.join(link);
        let is_wanted = link.parent().is_some_and(|parent| parent.join(target).exists());
        if is_wanted && fs::symlink_metadata(&link).is_err() {
            symlink(target, &link).context("create", &link)?;
        }
    }
    let stamp_path = staging.join(STAMP);
    let stamp = serde_json::to_vec_pretty(&Stamp { unpacked, on_host: needed.on_host });
    let stamp = stamp.map_err(io::Error::from).context("write", &stamp_path)?;
    fs::write(&stamp_path, stamp).context("write", &stamp_path)?;
    write_through(&staging)?;
    // Only there if a package of the host that it leans on is gone.
    remove_directory(root)?;
    fs::rename(&staging, root).context("rename", &staging)
}

/// Moves what packages still ship outside of /usr into it.
fn merge_usr(root: &Path) -> Result<()> {
    for name in ["bin", "sbin", "lib", "lib64"] {
        let directory = root.join(name);
        if fs::symlink_metadata(&directory).is_ok_and(|found| found.is_dir()) {
            merge(&directory, &root.join("usr").join(name))?;
            remove_directory(&directory)?;
        }
    }
    let usr = root.join("usr");
    fs::create_dir_all(&usr).context("create", &usr)
}

fn merge(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).context("create", to)?;
    for entry in fs::read_dir(from).context("read", from)? {
        let entry = entry.context("read", from)?;
        let target = to.join(entry.file_name());
        if entry.file_type().context("read", from)?.is_dir() {
            merge(&entry.path(), &target)?;
        } else {
            fs::rename(entry.path(), &target).context("move", &target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_outside_usr_move_into_it() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::create_dir_all(root.join("lib/x/y")).unwrap();
        fs::create_dir_all(root.join("usr/lib/x")).unwrap();
        fs::write(root.join("lib/x/y/new"), "1").unwrap();
        fs::write(root.join("usr/lib/x/old"), "2").unwrap();
        merge_usr(root).unwrap();
        assert!(!root.join("lib").exists());
        assert_eq!(fs::read_to_string(root.join("usr/lib/x/y/new")).unwrap(), "1");
        assert_eq!(fs::read_to_string(root.join("usr/lib/x/old")).unwrap(), "2");
    }

    #[test]
    fn a_layer_that_leans_on_a_removed_package_is_not_complete() {
        let directory = tempfile::tempdir().unwrap();
        assert!(!is_complete(directory.path()));
        let write = |on_host: &[&str]| {
            let on_host = on_host.iter().map(|name| (*name).to_owned()).collect();
            let text = serde_json::to_vec(&Stamp { unpacked: Vec::new(), on_host }).unwrap();
            fs::write(directory.path().join(STAMP), text).unwrap();
        };
        write(&[]);
        assert!(is_complete(directory.path()));
        write(&["no-such-package-anywhere"]);
        assert!(!is_complete(directory.path()));
    }
}
