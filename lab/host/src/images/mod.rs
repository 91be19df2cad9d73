//! Images: shared by all machines of the host through a [`ImageStore`], or imported into one machine.

pub(crate) mod listing;
mod shelf;
mod store;

use std::fs;
use std::io::{self, BufWriter, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use hangar_machine::Machine;
use hangar_parts::images::{Image, write_archive};

pub use listing::Listing;
pub(crate) use shelf::needed_mebibytes;
pub use shelf::remove_leftovers;
pub use store::{ImageStore, Maker};

use crate::error::{At, Error, Result};
use crate::management::kubelet::RUNTIME_SOCKET;

const PATIENCE: Duration = Duration::from_mins(1);

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
pub fn present(machine: &Machine) -> Result<Listing> {
    let text = machine.run(["ctr", "-n", "k8s.io", "images", "ls"])?;
    let blobs = directory(machine).join("io.containerd.content.v1.content/blobs/sha256");
    // From here: to ask containerd would be a process for each.
    Ok(Listing::parse(&text, |digest| fs::read(blobs.join(digest.strip_prefix("sha256:")?)).ok()))
}

/// containerd's directory of a machine.
pub(crate) fn directory(machine: &Machine) -> PathBuf {
    machine.directory().join("data/containerd")
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
    if status.success() {
        return Ok(written?);
    }
    let mut message = format!("{status}: {}", words.trim().lines().last().unwrap_or("no message"));
    // A program that could not be read ends the archive too early, which is all that the reader knows.
    if let Err(error) = written {
        message = format!("{message} ({error})");
    }
    Err(failed(message))
}
