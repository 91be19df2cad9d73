//! Image stores: images that machines share.
//!
//! An *image store* is containerd's directory after it has imported a list of images, made once in a temporary machine
//! and kept in the cache under the list's fingerprint. A machine gets a copy: files that containerd never changes
//! (blobs, unpacked files) are hard links, its databases are copied. So a further machine costs milliseconds and
//! megabytes, and deleting images in one leaves the others alone.
//!
//! There are two kinds. A base image store has upstream's images alone; it takes long to make and rarely changes. Any
//! other image store starts as a copy of a base and has further images, such as one of our own program: it is made in a
//! few seconds whenever the program changes.
//!
//! ```text
//! <cache>/images/<fingerprint>/content/           containerd's directory
//!                              complete           written last
//!                <fingerprint>-<own fingerprint>/ the same with own images
//!                .building-<name>/                state directory of the temporary machine
//! ```

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hangar_machine::{
    FileContent, Machine, MachineSpec, Name, Service, SupervisorCommand, containerd_config, fill_tree, host,
};
use hangar_parts::Parts;
use hangar_parts::images::{Image, Upstream};
use hangar_parts::packages::Packages;
use sha2::{Digest, Sha256};

use super::shelf::{self, COMPLETE, NEEDED_MEBIBYTES, WORK};
use super::{directory, import, wait_for_runtime};
use crate::error::{At, Error, Result};

/// Raised when image stores are made differently.
const LAYOUT: &str = "1";
/// Room for own images while an image store gets them.
const NEEDED_FOR_OWN_MEBIBYTES: u64 = 1024;
/// The throw-away machine's containerd starts once this is there.
const FILLED: &str = "/etc/hangar-filled";
/// Enough to see why a supervisor ended.
const LAST_LINES: usize = 5;

/// Images, imported once.
#[derive(Debug, Clone)]
pub struct ImageStore {
    directory: PathBuf,
}

impl ImageStore {
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
        shelf::is_complete(&self.directory)
    }

    /// A name that changes with what is in it.
    pub(crate) fn name(&self) -> String {
        self.directory.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The name of the one with upstream's images that it is, or starts from.
    pub(crate) fn base_name(&self) -> String {
        let name = self.name();
        name.split('-').next().unwrap_or(&name).to_owned()
    }

    /// Marks it as complete, once everything in it is on the disk: after a crash of the host it must not be half empty.
    fn finish(&self) -> Result<()> {
        write_through(&self.directory)?;
        let complete = self.directory.join(COMPLETE);
        fs::write(&complete, "").at("write", &complete)
    }

    /// Fills a directory that containerd does not use yet. The directory itself stays: a machine has it bound.
    pub fn fill(&self, target: &Path) -> Result<()> {
        Ok(fill_tree(&self.directory.join("content"), target)?)
    }
}

/// What image stores are made with.
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
    /// Finds the image store of these images, or makes it. `detail` hears what takes time.
    pub fn ensure(
        &self,
        upstream: &[Upstream],
        own: &[Image],
        detail: &mut dyn FnMut(&str),
    ) -> Result<ImageStore> {
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

    fn ensure_base(
        &self,
        base: ImageStore,
        upstream: &[Upstream],
        detail: &mut dyn FnMut(&str),
    ) -> Result<ImageStore> {
        if !base.is_complete() {
            self.make(&base, NEEDED_MEBIBYTES, None, detail, || {
                let images = upstream.iter().map(|image| image.image(&self.parts, &self.packages));
                Ok(images.collect::<hangar_parts::Result<Vec<Image>>>()?)
            })?;
        }
        base.touch();
        Ok(base)
    }

    fn store(&self, name: &str) -> ImageStore {
        ImageStore { directory: shelf::directory(self.parts.cache()).join(name) }
    }

    /// Makes an image store, unless another process just did.
    fn make(
        &self,
        store: &ImageStore,
        needed_mebibytes: u64,
        base: Option<&ImageStore>,
        detail: &mut dyn FnMut(&str),
        images: impl FnOnce() -> Result<Vec<Image>>,
    ) -> Result<()> {
        let parent = shelf::directory(self.parts.cache());
        let _lock = shelf::lock(&parent, || detail("waiting for another process that makes images"))?;
        shelf::remove_leftovers_locked(&parent, &self.supervisor)?;
        if store.is_complete() {
            return Ok(());
        }
        let images = images()?;
        match images.as_slice() {
            [image] => detail(&format!("importing {}", image.reference())),
            several => detail(&format!("importing {} images", several.len())),
        }
        shelf::check_disk(&parent, needed_mebibytes)?;
        self.build(store, base, &images)?;
        shelf::forget_oldest(&parent)
    }

    fn build(&self, store: &ImageStore, base: Option<&ImageStore>, images: &[Image]) -> Result<()> {
        let work = shelf::directory(self.parts.cache()).join(format!("{WORK}{}", store.name()));
        let environment = shelf::builder_environment(&work, &self.supervisor)?;
        shelf::remove(&store.directory)?;
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
            .map_err(|error| explained(&machine, &error))
            .and_then(|content| {
                fs::create_dir_all(&store.directory).at("create", &store.directory)?;
                fs::rename(&content, store.directory.join("content")).at("move", &content)?;
                store.finish()
            });
        // Why there are no images matters more than what could not be removed: the next maker removes it.
        let removed = environment.delete_all().map_err(Error::from).and_then(|()| shelf::remove(&work));
        imported.and(removed)
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

/// Everything below a directory is on the disk afterwards. What it shares with another image store is already; to write
/// out the whole file system instead would wait for whatever else this host writes.
fn write_through(directory: &Path) -> Result<()> {
    for entry in fs::read_dir(directory).at("read", directory)? {
        let path = entry.at("read", directory)?.path();
        let found = fs::symlink_metadata(&path).at("read", &path)?;
        if found.is_dir() {
            write_through(&path)?;
        } else if found.is_file() && found.nlink() == 1 {
            File::open(&path).and_then(|file| file.sync_all()).at("write to disk", &path)?;
        }
    }
    Ok(())
}

/// The error with the end of the machine's output; the machine is removed together with its logs.
fn explained(machine: &Machine, error: &Error) -> Error {
    let log = fs::read_to_string(machine.directory().join("logs/supervisor.log")).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("; ");
    let mut message = error.with_causes();
    if !last.is_empty() {
        message = format!("{message}; its last output: {last}");
    }
    Error::Program { program: "the machine that makes images".to_owned(), message }
}

/// containerd's directory with the images in it, no longer in use.
fn fill_and_import(machine: &Machine, base: Option<&ImageStore>, images: &[Image]) -> Result<PathBuf> {
    let content = directory(machine);
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
