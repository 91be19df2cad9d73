//! Images that machines share.
//!
//! A *store* is containerd's directory after it has imported a list of images, made once in a throw-away machine and
//! kept in the cache under the list's fingerprint. A machine gets a copy of hard links: what containerd never changes
//! (blobs, unpacked files) is shared by all, its databases are copied. So a further machine costs milliseconds and
//! megabytes, and deleting images in one leaves the others alone.
//!
//! There are two kinds. One of upstream's images alone, which takes long to make and rarely changes. And one that
//! starts as a copy of such a one and has somebody's own images in addition, such as one of our own program: made in
//! a few seconds whenever the program changes.
//!
//! ```text
//! <cache>/images/<fingerprint>/content/           containerd's directory
//!                              complete           written last
//!                <fingerprint>-<own fingerprint>/ the same with own images
//!                .building-<name>/                state directory of the throw-away machine
//! ```

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hangar_machine::{
    Environment, FileContent, Machine, MachineSpec, Name, Service, SupervisorCommand, containerd_config,
    fill_tree, host,
};
use hangar_parts::images::{Image, Upstream};
use hangar_parts::packages::Packages;
use hangar_parts::{Cache, Parts};
use sha2::{Digest, Sha256};

use super::{free_mebibytes, import, wait_for_runtime};
use crate::error::{At, Error, Result};

/// Raised when stores are made differently.
const LAYOUT: &str = "1";
/// Beginning of the names of directories that stores are made in.
const WORK: &str = ".building-";
/// The file that is written last.
const COMPLETE: &str = "complete";
/// Stores beyond these are removed, least recently used first, of each kind: one for each common choice of options.
const KEPT: usize = 3;
/// Room for a store of upstream's images while it is made.
const NEEDED_MEBIBYTES: u64 = 4096;
/// The same for own images.
const NEEDED_FOR_OWN_MEBIBYTES: u64 = 1024;
/// The throw-away machine's containerd starts once this is there.
const FILLED: &str = "/etc/hangar-filled";
/// Enough to see why a supervisor ended.
const LAST_LINES: usize = 5;

/// Images, imported once.
#[derive(Debug, Clone)]
pub struct Store {
    directory: PathBuf,
}

impl Store {
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

    /// Fills a directory that containerd does not use yet. The directory itself stays: a machine has it bound.
    pub fn fill(&self, target: &Path) -> Result<()> {
        Ok(fill_tree(&self.directory.join("content"), target)?)
    }
}

/// What stores are made with.
#[derive(Debug, Clone)]
pub struct Maker {
    /// Where programs come from, and the cache.
    pub parts: Parts,
    /// containerd, and libraries of programs.
    pub packages: Packages,
    /// Starts the throw-away machine.
    pub supervisor: SupervisorCommand,
}

impl Maker {
    /// Finds the store of these images, or makes it. `detail` hears what takes time.
    pub fn ensure(
        &self,
        upstream: &[Upstream],
        own: &[Image],
        detail: &mut dyn FnMut(&str),
    ) -> Result<Store> {
        let name = self.fingerprint(upstream)?;
        let base = self.store(&name);
        if own.is_empty() {
            return self.ensure_base(base, upstream, detail);
        }
        let store = self.store(&format!("{name}-{}", own_fingerprint(own)?));
        base.touch();
        if !store.is_complete() {
            let base = self.ensure_base(base, upstream, detail)?;
            self.make(&store, NEEDED_FOR_OWN_MEBIBYTES, Some(&base), detail, || Ok(own.to_vec()))?;
        }
        store.touch();
        Ok(store)
    }

    fn ensure_base(&self, base: Store, upstream: &[Upstream], detail: &mut dyn FnMut(&str)) -> Result<Store> {
        if !base.is_complete() {
            self.make(&base, NEEDED_MEBIBYTES, None, detail, || {
                let images = upstream.iter().map(|image| image.image(&self.parts, &self.packages));
                Ok(images.collect::<hangar_parts::Result<Vec<Image>>>()?)
            })?;
        }
        base.touch();
        Ok(base)
    }

    fn store(&self, name: &str) -> Store {
        Store { directory: directory(self.parts.cache()).join(name) }
    }

    /// Makes a store, unless another process just did.
    fn make(
        &self,
        store: &Store,
        needed_mebibytes: u64,
        base: Option<&Store>,
        detail: &mut dyn FnMut(&str),
        images: impl FnOnce() -> Result<Vec<Image>>,
    ) -> Result<()> {
        let parent = directory(self.parts.cache());
        fs::create_dir_all(&parent).at("create", &parent)?;
        let lock = open_lock(&parent)?;
        if lock.try_lock().is_err() {
            detail("waiting for another process that makes images");
            lock.lock().at("lock", &parent)?;
        }
        sweep_locked(&parent, &self.supervisor)?;
        if store.is_complete() {
            return Ok(());
        }
        let images = images()?;
        match images.as_slice() {
            [image] => detail(&format!("importing {}", image.reference())),
            several => detail(&format!("importing {} images", several.len())),
        }
        check_disk(&parent, needed_mebibytes)?;
        self.build(store, base, &images)?;
        forget_oldest(&parent)
    }

    fn build(&self, store: &Store, base: Option<&Store>, images: &[Image]) -> Result<()> {
        let name = store.directory.file_name().unwrap_or_default().to_string_lossy();
        let work = directory(self.parts.cache()).join(format!("{WORK}{name}"));
        let environment = builder_environment(&work, &self.supervisor)?;
        remove(&store.directory)?;
        let mut spec = MachineSpec::new(Name::new("builder")?);
        spec.layers.usr.push(self.packages.usr());
        spec.services.push(Service { when_exists: Some(FILLED.into()), ..Service::containerd() });
        spec.files.push(FileContent {
            path: "/etc/containerd/config.toml".into(),
            content: containerd_config(&Upstream::Pause.reference(), host::abilities()?.lower_oom_score),
            mode: 0o644,
            only_if_missing: false,
        });
        let machine = environment.create_machine(spec)?;
        let imported = fill_and_import(&machine, base, images)
            .map_err(|error| explained(&machine, error))
            .and_then(|content| {
                fs::create_dir_all(&store.directory).at("create", &store.directory)?;
                fs::rename(&content, store.directory.join("content")).at("move", &content)?;
                let complete = store.directory.join(COMPLETE);
                fs::write(&complete, "").at("write", &complete)
            });
        machine.delete()?;
        environment.delete_all()?;
        remove(&work)?;
        imported
    }

    fn fingerprint(&self, images: &[Upstream]) -> Result<String> {
        let mut hasher = Sha256::new();
        hasher.update(LAYOUT);
        // Another containerd may keep its directory differently.
        hasher.update(self.packages.root().as_os_str().as_encoded_bytes());
        for image in images {
            hasher.update(image.fingerprint(&self.parts, &self.packages)?);
        }
        Ok(short(hasher))
    }
}

/// The error with the last words of the machine, which is removed together with its logs.
fn explained(machine: &Machine, error: Error) -> Error {
    let log = fs::read_to_string(machine.directory().join("logs/supervisor.log")).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("; ");
    if last.is_empty() {
        return error;
    }
    let mut message = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        message = format!("{message}: {cause}");
        source = cause.source();
    }
    Error::Program {
        program: "the machine that makes images".to_owned(),
        message: format!("{message}; it said: {last}"),
    }
}

/// containerd's directory with the images in it, not used by anybody any more.
fn fill_and_import(machine: &Machine, base: Option<&Store>, images: &[Image]) -> Result<PathBuf> {
    let content = machine.directory().join("data/containerd");
    if let Some(base) = base {
        base.fill(&content)?;
    }
    machine.write_file(Path::new(FILLED), b"", 0o644)?;
    wait_for_runtime(machine)?;
    import(machine, images)?;
    // Its databases are whole only after it ended by itself.
    machine.stop(Duration::from_secs(20))?;
    Ok(content)
}

/// The disk that making the first store takes, until there is one.
pub(crate) fn needed_mebibytes(cache: &Cache) -> u64 {
    let stores = fs::read_dir(directory(cache)).into_iter().flatten().flatten();
    let has_one = stores.map(|entry| Store { directory: entry.path() }).any(|store| store.is_complete());
    if has_one { 0 } else { NEEDED_MEBIBYTES }
}

fn directory(cache: &Cache) -> PathBuf {
    cache.root().join("images")
}

fn open_lock(parent: &Path) -> Result<File> {
    let path = parent.join(".lock");
    File::options().create(true).append(true).open(&path).at("open", &path)
}

fn builder_environment(work: &Path, supervisor: &SupervisorCommand) -> Result<Environment> {
    Ok(Environment::new(work, Name::new("images")?, supervisor.clone())?)
}

/// Removes what killed makers left. Nothing is touched while one is at work.
pub fn sweep(cache: &Cache, supervisor: &SupervisorCommand) -> Result<()> {
    let parent = directory(cache);
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
    let (mut bases, mut others) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(parent).at("read", parent)? {
        let entry = entry.at("read", parent)?;
        let path = entry.path();
        if let Ok(used) = fs::metadata(path.join(COMPLETE)).and_then(|found| found.modified()) {
            let has_own = entry.file_name().to_string_lossy().contains('-');
            if has_own { &mut others } else { &mut bases }.push((used, path));
        }
    }
    for mut stores in [bases, others] {
        stores.sort();
        let surplus = stores.len().saturating_sub(KEPT);
        for (_, path) in stores.iter().take(surplus) {
            // The mark first: half a store must not count as one.
            let complete = path.join(COMPLETE);
            fs::remove_file(&complete).at("remove", &complete)?;
            remove(path)?;
        }
    }
    Ok(())
}

fn check_disk(path: &Path, needed_mebibytes: u64) -> Result<()> {
    let free_mebibytes = free_mebibytes(path)?;
    if free_mebibytes >= needed_mebibytes {
        return Ok(());
    }
    Err(Error::OutOfDisk { path: path.to_owned(), free_mebibytes, needed_mebibytes })
}

fn own_fingerprint(images: &[Image]) -> Result<String> {
    let mut hasher = Sha256::new();
    for image in images {
        hasher.update(image.fingerprint()?);
    }
    Ok(short(hasher))
}

fn short(hasher: Sha256) -> String {
    let number = hasher.finalize().iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    format!("{number:016x}")
}

fn remove(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).at("remove", directory),
        _ => Ok(()),
    }
}
