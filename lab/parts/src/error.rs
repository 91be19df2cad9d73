//! Errors, with messages on which a user at a terminal can act.

use std::io;
use std::path::{Path, PathBuf};

use crate::sets::Set;

/// The result of everything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure to find, build or run a pinned program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Neither `HANGAR_CACHE`, `XDG_CACHE_HOME` nor `HOME` is set.
    #[error("no cache directory: set HANGAR_CACHE or HOME")]
    NoCacheDirectory,

    /// The name is not in the registry.
    #[error("unknown set {name:?}; known sets: {known}")]
    UnknownSet {
        /// What was asked for.
        name: String,
        /// Every set, comma separated.
        known: String,
    },

    /// The set has no such program.
    #[error("the set {set} has no program {program:?}")]
    UnknownProgram {
        /// The set that was asked.
        set: Set,
        /// The program it does not have.
        program: String,
    },

    /// The program or the files were not built yet.
    #[error("{what} is not in the cache: run `cargo xtask tools {set}`")]
    NotBuilt {
        /// The set to build.
        set: Set,
        /// What was looked for.
        what: String,
    },

    /// There is no Go on the path.
    #[error("building {set} needs Go {minimum} or newer, but no `go` is on the PATH")]
    GoMissing {
        /// The set with the highest need.
        set: Set,
        /// The lowest Go that can build all sets asked for.
        minimum: String,
    },

    /// The Go on the path is too old.
    #[error("building {set} needs Go {minimum} or newer, but the `go` on the PATH is {found}")]
    GoTooOld {
        /// The set with the highest need.
        set: Set,
        /// The lowest Go that can build all sets asked for.
        minimum: String,
        /// What `go env GOVERSION` said.
        found: String,
    },

    /// A set is built with C, and there is no compiler.
    #[error("building {set} needs a C compiler, but no `{compiler}` is on the PATH")]
    CompilerMissing {
        /// The set that needs it.
        set: Set,
        /// What Go would call.
        compiler: String,
    },

    /// `go` answered something we cannot read.
    #[error("`{command}` printed an unexpected answer: {answer:?}")]
    GoAnswer {
        /// The command that was run.
        command: String,
        /// The beginning of its output.
        answer: String,
    },

    #[error(
        "{set}: `{command}` failed ({status}); finished work is kept: run it again to continue\n{output}"
    )]
    GoFailed {
        /// The set being built.
        set: Set,
        /// The command that was run.
        command: String,
        status: String,
        /// The last lines it wrote, without progress.
        output: String,
    },

    /// A module's content is not what `go.sum` says.
    #[error("{set}: {module} has the checksum {found}, but go.sum has {expected}")]
    SumMismatch {
        /// The set being built.
        set: Set,
        /// The module and version.
        module: String,
        expected: String,
        /// The sum of what was downloaded.
        found: String,
    },

    /// The recipe and the pins disagree.
    #[error("{set}: go.mod does not require {module}")]
    PinMissing {
        /// The set being built.
        set: Set,
        /// The module that should be pinned.
        module: String,
    },

    /// Not enough room to build.
    #[error("building {sets} needs {need_mebibytes} MiB free in {path}, which has {have_mebibytes} MiB")]
    DiskFull {
        /// The sets that are still to be built.
        sets: String,
        /// Where the room is needed.
        path: PathBuf,
        /// What the largest of them needs while it builds, plus what the others leave behind.
        need_mebibytes: u64,
        have_mebibytes: u64,
    },

    /// A started process ended by itself.
    #[error("{name} ended ({status}); the end of its log {log}:\n{tail}")]
    ProcessEnded {
        /// The name it was started under.
        name: String,
        status: String,
        log: PathBuf,
        /// The last lines of it.
        tail: String,
    },

    /// A package of the distribution could not be had.
    #[error("cannot get the packages {packages}: {reason}")]
    Packages {
        /// What was asked for.
        packages: String,
        /// What is wrong, and what to do about it.
        reason: String,
    },

    /// An image could not be put together.
    #[error("cannot make the image {image}: {reason}")]
    Image { image: String, reason: String },

    /// A file or a process could not be handled.
    #[error("cannot {action} {path}")]
    Io {
        /// A verb: read, create, start.
        action: &'static str,
        /// What it was about.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
}

/// Names the action and the path of a system error; the bare error says neither.
pub(crate) trait Context<T> {
    fn context(self, action: &'static str, path: &Path) -> Result<T>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, action: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| Error::Io { action, path: path.to_owned(), source })
    }
}
