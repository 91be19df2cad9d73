//! Images that all machines of the host share.
//!
//! A *store* is containerd's directory after it has imported a list of images, made once in a throw-away machine and
//! kept in the cache under the list's fingerprint. A machine gets a copy of hard links: what containerd never changes
//! (blobs, unpacked files) is shared by all, its databases are copied. So a further machine costs seconds and megabytes,
//! and deleting images in one leaves the others alone.
//!
//! ```text
//! <cache>/images/<fingerprint>/content/       containerd's directory
//!                              complete       written last
//! <cache>/images/.building-<fingerprint>/     state directory of the throw-away machine
//! ```

use std::fs::{self, File};
use std::io::{self, BufWriter, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use hangar_machine::{
    Environment, FileContent, Machine, MachineSpec, Name, Service, SupervisorCommand, containerd_config, host,
};
use hangar_parts::images::{Image, Upstream, write_archive};
use hangar_parts::packages::Packages;
use hangar_parts::{Cache, Parts};
use sha2::{Digest, Sha256};

use crate::error::{At, Error, Result};
use crate::management::kubelet::RUNTIME_SOCKET;

/// Raised when stores are made differently.
const LAYOUT: &str = "1";
const PATIENCE: Duration = Duration::from_mins(1);
/// Beginning of the names of directories that stores are made in.
const WORK: &str = ".building-";
/// The file that is written last.
const COMPLETE: &str = "complete";
/// Stores beyond these are removed, least recently used first: one for each common choice of options.
const KEPT: usize = 3;
/// Room for a store while it is made.
const NEEDED_MEBIBYTES: u64 = 4096;

/// Images, imported once.
#[derive(Debug, Clone)]
pub struct Store {
    directory: PathBuf,
}

impl Store {
    /// Finds the store of these images, or makes it.
    pub fn ensure(
        parts: &Parts,
        packages: &Packages,
        images: &[Upstream],
        supervisor: &SupervisorCommand,
        detail: &mut dyn FnMut(&str),
    ) -> Result<Self> {
        let parent = parts.cache().root().join("images");
        let fingerprint = fingerprint(parts, packages, images)?;
        let store = Self { directory: parent.join(&fingerprint) };
        if store.is_complete() {
            store.touch();
            return Ok(store);
        }
        fs::create_dir_all(&parent).at("create", &parent)?;
        let lock = open_lock(&parent)?;
        if lock.try_lock().is_err() {
            detail("waiting for another process that makes images");
            lock.lock().at("lock", &parent)?;
        }
        sweep_locked(&parent, supervisor)?;
        // Another process may just have made it.
        if !store.is_complete() {
            detail(&format!("importing {} images", images.len()));
            let images = images.iter().map(|image| image.image(parts, packages));
            let images = images.collect::<hangar_parts::Result<Vec<Image>>>()?;
            check_disk(&parent)?;
            store.build(&parent.join(format!("{WORK}{fingerprint}")), packages, &images, supervisor)?;
            forget_oldest(&parent)?;
        }
        Ok(store)
    }

    /// Remembers that it was used.
    fn touch(&self) {
        let now = std::time::SystemTime::now();
        // One that cannot be written is still good.
        let _ = File::options()
            .write(true)
            .open(self.directory.join(COMPLETE))
            .map(|file| file.set_modified(now));
    }

    fn is_complete(&self) -> bool {
        self.directory.join(COMPLETE).exists()
    }

    fn build(
        &self,
        work: &Path,
        packages: &Packages,
        images: &[Image],
        supervisor: &SupervisorCommand,
    ) -> Result<()> {
        let environment = builder_environment(work, supervisor)?;
        remove(&self.directory)?;
        let mut spec = MachineSpec::new(Name::new("builder")?);
        spec.layers.usr.push(packages.usr());
        spec.services.push(Service::containerd());
        spec.files.push(FileContent {
            path: "/etc/containerd/config.toml".into(),
            content: containerd_config(&Upstream::Pause.reference(), host::abilities()?.lower_oom_score),
            mode: 0o644,
            only_if_missing: false,
        });
        let machine = environment.create_machine(spec)?;
        let imported = wait_for_runtime(&machine).and_then(|()| import(&machine, images)).and_then(|()| {
            // Its databases are whole only after it ended by itself.
            machine.stop(Duration::from_secs(20))?;
            let content = machine.directory().join("data/containerd");
            fs::create_dir_all(&self.directory).at("create", &self.directory)?;
            let target = self.directory.join("content");
            fs::rename(&content, &target).at("move", &content)?;
            let complete = self.directory.join(COMPLETE);
            fs::write(&complete, "").at("write", &complete)
        });
        machine.delete()?;
        environment.delete_all()?;
        remove(work)?;
        imported
    }

    /// Fills a directory that containerd does not use yet. The directory itself stays: a machine has it bound.
    pub fn fill(&self, target: &Path) -> Result<()> {
        fs::create_dir_all(target).at("create", target)?;
        for entry in fs::read_dir(target).at("read", target)? {
            let entry = entry.at("read", target)?;
            let path = entry.path();
            if entry.file_type().at("read", &path)?.is_dir() {
                remove(&path)?;
            } else {
                fs::remove_file(&path).at("remove", &path)?;
            }
        }
        link(&self.directory.join("content"), target)
    }
}

fn open_lock(parent: &Path) -> Result<File> {
    let path = parent.join(".lock");
    File::options().create(true).append(true).open(&path).at("open", &path)
}

fn builder_environment(work: &Path, supervisor: &SupervisorCommand) -> Result<Environment> {
    Ok(Environment::new(work, Name::new("images")?, supervisor.clone())?)
}

/// Removes what killed builders left. Nothing is touched while a builder is at work.
pub fn sweep(cache: &Cache, supervisor: &SupervisorCommand) -> Result<()> {
    let parent = cache.root().join("images");
    if !parent.exists() {
        return Ok(());
    }
    let lock = open_lock(&parent)?;
    if lock.try_lock().is_err() {
        return Ok(());
    }
    sweep_locked(&parent, supervisor)
}

fn sweep_locked(parent: &Path, supervisor: &SupervisorCommand) -> Result<()> {
    for entry in fs::read_dir(parent).at("read", parent)? {
        let entry = entry.at("read", parent)?;
        if entry.file_name().to_string_lossy().starts_with(WORK) {
            builder_environment(&entry.path(), supervisor)?.delete_all()?;
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// Machines that were filled from a store keep their links: removing it costs them nothing.
fn forget_oldest(parent: &Path) -> Result<()> {
    let mut stores = Vec::new();
    for entry in fs::read_dir(parent).at("read", parent)? {
        let path = entry.at("read", parent)?.path();
        if let Ok(used) = fs::metadata(path.join(COMPLETE)).and_then(|found| found.modified()) {
            stores.push((used, path));
        }
    }
    stores.sort();
    let surplus = stores.len().saturating_sub(KEPT);
    stores.iter().take(surplus).try_for_each(|(_, path)| {
        // The mark first: half a store must not count as one.
        let complete = path.join(COMPLETE);
        fs::remove_file(&complete).at("remove", &complete)?;
        remove(path)
    })
}

fn check_disk(path: &Path) -> Result<()> {
    let free_mebibytes = free_mebibytes(path)?;
    if free_mebibytes >= NEEDED_MEBIBYTES {
        return Ok(());
    }
    Err(Error::OutOfDisk { path: path.to_owned(), free_mebibytes, needed_mebibytes: NEEDED_MEBIBYTES })
}

pub(crate) fn free_mebibytes(path: &Path) -> Result<u64> {
    let usage = rustix::fs::statvfs(path).map_err(io::Error::from).at("measure the free disk of", path)?;
    Ok(usage.f_bavail.saturating_mul(usage.f_frsize) >> 20)
}

/// Waits until containerd answers.
pub(crate) fn wait_for_runtime(machine: &Machine) -> Result<()> {
    if machine.wait_for_file(RUNTIME_SOCKET, PATIENCE)? {
        return Ok(());
    }
    Err(Error::TooSlow {
        what: "the container runtime's socket".to_owned(),
        seconds: PATIENCE.as_secs(),
        state: machine.logs("containerd", Some(600)).unwrap_or_default(),
    })
}

/// The images that containerd in the machine has.
pub fn present(machine: &Machine) -> Result<Vec<String>> {
    let text = machine.run(["ctr", "-n", "k8s.io", "images", "ls", "-q"])?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// Imports images into containerd in the machine, streamed.
pub fn import(machine: &Machine, images: &[Image]) -> Result<()> {
    let program = "ctr images import";
    let failed = |message: String| Error::Program { program: program.to_owned(), message };
    let mut command = machine.command(Path::new("/"), ["ctr", "-n", "k8s.io", "images", "import", "-"])?;
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
    let (written, words) = std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut words = String::new();
            if let Some(mut stderr) = stderr {
                let _ = stderr.read_to_string(&mut words);
            }
            words
        });
        let written = match stdin {
            Some(stdin) => write_archive(images, BufWriter::with_capacity(1 << 20, stdin)),
            None => Ok(()),
        };
        (written, reader.join().unwrap_or_default())
    });
    let status = child.wait().map_err(|error| failed(error.to_string()))?;
    if !status.success() {
        return Err(failed(format!("{status}: {}", words.trim().lines().last().unwrap_or("no message"))));
    }
    Ok(written?)
}

fn fingerprint(parts: &Parts, packages: &Packages, images: &[Upstream]) -> Result<String> {
    let mut hasher = Sha256::new();
    hasher.update(LAYOUT);
    // Another containerd may keep its directory differently.
    hasher.update(packages.root().as_os_str().as_encoded_bytes());
    for image in images {
        hasher.update(image.fingerprint(parts, packages)?);
    }
    let number = hasher.finalize().iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    Ok(format!("{number:016x}"))
}

fn remove(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).at("remove", directory),
        _ => Ok(()),
    }
}

/// A copy of a tree with hard links for files, except for databases. On another file system everything is copied.
fn link(from: &Path, to: &Path) -> Result<()> {
    let found = fs::symlink_metadata(from).at("read", from)?;
    if found.is_dir() {
        fs::create_dir_all(to).at("create", to)?;
        for entry in fs::read_dir(from).at("read", from)? {
            let entry = entry.at("read", from)?;
            link(&entry.path(), &to.join(entry.file_name()))?;
        }
        chown(to, Some(found.uid()), Some(found.gid())).at("set the owner of", to)?;
        return fs::set_permissions(to, fs::Permissions::from_mode(found.mode() & 0o7777))
            .at("set the mode of", to);
    }
    if found.is_symlink() {
        let target = fs::read_link(from).at("read", from)?;
        return symlink(&target, to).at("create", to);
    }
    if !found.is_file() {
        return Ok(());
    }
    let is_database = from.extension().is_some_and(|extension| extension == "db");
    if !is_database {
        match fs::hard_link(from, to) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {}
            linked => return linked.at("create", to),
        }
    }
    fs::copy(from, to).at("copy", from)?;
    chown(to, Some(found.uid()), Some(found.gid())).at("set the owner of", to)
}

#[cfg(test)]
mod tests {
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
        link(&from, &to).unwrap();
        let inode = |path: PathBuf| fs::metadata(path).unwrap().ino();
        assert_eq!(inode(from.join("snapshots/1/fs/program")), inode(to.join("snapshots/1/fs/program")));
        assert_ne!(inode(from.join("meta.db")), inode(to.join("meta.db")));
        assert_eq!(fs::read_link(to.join("snapshots/1/fs/lib")).unwrap(), Path::new("usr/lib"));
        assert_eq!(fs::metadata(to.join("snapshots/1/fs/tmp")).unwrap().mode() & 0o7777, 0o1777);
    }
}
