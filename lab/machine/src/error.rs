//! Errors, one line each, with the remedy where it is known.

use std::{
    fmt::Display,
    io,
    path::{Path, PathBuf},
};

use ipnet::Ipv4Net;

/// Result of everything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Failures of machines and their networks.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller is not root.
    #[error("machines need root (user id 0) with CAP_SYS_ADMIN and CAP_NET_ADMIN")]
    NotRoot,
    /// Nothing of type cgroup or cgroup2 is mounted.
    #[error(
        "no cgroup hierarchy is mounted on this host (looked for cgroup and cgroup2 in /proc/self/mountinfo)"
    )]
    NoCgroups,
    /// A controller that kubelet needs is not available.
    #[error("cgroup controllers missing on this host: {0}")]
    MissingControllers(String),
    /// The host keeps programs outside /usr.
    #[error("{0} is not a symbolic link into /usr: this host has no merged /usr, which machines need")]
    NotMergedUsr(PathBuf),
    /// The kernel has no overlayfs.
    #[error("the kernel has no overlayfs, which machines need for their /usr, /etc and /var")]
    NoOverlay,
    /// Too little space where the state lies.
    #[error("out of disk: {path} has {free_mebibytes} MiB free, at least {needed_mebibytes} MiB are needed")]
    OutOfDisk {
        /// Where the space is missing.
        path: PathBuf,
        free_mebibytes: u64,
        needed_mebibytes: u64,
    },
    /// A name that cannot be used.
    #[error("{what} name {name:?} is not usable: {why}")]
    InvalidName {
        /// Kind of thing the name is for.
        what: &'static str,
        /// The name as given.
        name: String,
        /// The rule it breaks.
        why: &'static str,
    },
    /// Another part of a specification that cannot be used.
    #[error("{0}")]
    Invalid(String),
    /// Something of this name exists already.
    #[error("{what} {name:?} exists already{hint}")]
    NameTaken {
        what: &'static str,
        name: String,
        /// What to do, with its leading punctuation; empty where there is nothing to say.
        hint: String,
    },
    /// Nothing of this name exists.
    #[error("no {what} {name:?} in environment {environment:?}")]
    NotFound {
        what: &'static str,
        name: String,
        /// Where it was looked for.
        environment: String,
    },
    /// The machine exists but does not run.
    #[error("machine {0:?} is not running")]
    NotRunning(String),
    /// The machine runs already.
    #[error("machine {0:?} is running already")]
    AlreadyRunning(String),
    /// The address range is in use by the host.
    #[error("address range {range} overlaps {other} of this host: choose another range")]
    RangeInUse {
        /// What was asked for.
        range: Ipv4Net,
        /// The address or route in the way, with its link.
        other: String,
    },
    /// A network still has machines on it.
    #[error("fabric {fabric:?} is in use by machine {machine:?}: delete that first")]
    FabricInUse {
        fabric: String,
        /// One of its machines.
        machine: String,
    },
    /// Another process holds the lock and does not let go.
    #[error("{0} is being changed by another process")]
    Busy(PathBuf),
    /// The machine did not come up.
    #[error("machine {machine:?} did not start: {message}")]
    Boot {
        machine: String,
        /// What its first process said.
        message: String,
    },
    /// The supervisor refused a request or gave no answer.
    #[error("supervisor of machine {machine:?}: {message}")]
    Supervisor { machine: String, message: String },
    /// A program that was run failed.
    #[error("{program} failed: {message}")]
    Program { program: String, message: String },
    /// A file of the state directory cannot be understood.
    #[error("cannot read {path}: {message}")]
    Record { path: PathBuf, message: String },
    /// The system refused something.
    #[error("cannot {action}: {source}")]
    System {
        /// What was tried, as a verb phrase.
        action: String,
        /// What the system said.
        source: io::Error,
    },
}

/// Adds what was being done to a bare system error.
pub(crate) trait Doing<T> {
    fn doing<D: Display>(self, action: impl FnOnce() -> D) -> Result<T>;
}

impl<T, E: Into<io::Error>> Doing<T> for std::result::Result<T, E> {
    fn doing<D: Display>(self, action: impl FnOnce() -> D) -> Result<T> {
        self.map_err(|error| Error::System { action: action().to_string(), source: error.into() })
    }
}

/// Shorthand for the most common actions on a path.
pub(crate) fn on(verb: &str, path: &Path) -> String {
    format!("{verb} {}", path.display())
}
