//! Errors, with the phase that failed, the log to read, and the likely fix.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use ipnet::Ipv4Net;

use crate::progress::Phase;

/// Result of everything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A phase of `up` or `down` failed.
    #[error("{0}")]
    Phase(Box<PhaseError>),
    /// Machines or their networks.
    #[error(transparent)]
    Machine(#[from] hangar_machine::Error),
    /// Programs, packages or images.
    #[error(transparent)]
    Parts(#[from] hangar_parts::Error),
    #[error(transparent)]
    Pki(#[from] hangar_pki::Error),
    /// Objects in the cluster.
    #[error(transparent)]
    Kit(#[from] hangar_kit::Error),
    /// The Gateway's custom resources.
    #[error(transparent)]
    CustomResources(#[from] crate::addons::CustomResourcesError),
    /// The API server's answer.
    #[error("cannot {action}: {source}")]
    Kube {
        action: String,
        #[source]
        source: Box<kube::Error>,
    },
    /// Every range that could be chosen is in use.
    #[error("no free address range: all of {tried} overlap what this host uses already")]
    NoFreeRange {
        /// The ranges that were tried.
        tried: String,
    },
    /// The range is too small or no private network.
    #[error("the address range {range} is too small: 1024 addresses (a /22) are needed")]
    SmallRange {
        /// What was asked for.
        range: Ipv4Net,
    },
    /// The range is one that the cluster itself uses.
    #[error("the address range {range} overlaps {reserved}, which Kubernetes clusters use inside")]
    ReservedRange {
        /// What was asked for.
        range: Ipv4Net,
        /// What is in the way.
        reserved: Ipv4Net,
    },
    /// The environment has another range.
    #[error("environment {environment} has the address range {known}, which cannot change to {asked}")]
    OtherRange {
        environment: String,
        known: Ipv4Net,
        /// What was asked for.
        asked: Ipv4Net,
    },
    /// The environment has more nodes.
    #[error(
        "environment {environment} has {known} management nodes, which cannot become {asked}: \
         volumes of clusters lie on them"
    )]
    FewerNodes {
        environment: String,
        known: u8,
        /// What was asked for.
        asked: u8,
    },
    /// There is no such node.
    #[error("environment {environment} has no management node {name:?}; it has {known}")]
    NoNode {
        environment: String,
        name: String,
        /// The names of those that there are.
        known: String,
    },
    /// What was to be put into the cluster.
    #[error("{0}")]
    Payload(#[from] crate::payload::PayloadError),
    /// Too little room.
    #[error("out of disk: {} has {free_mebibytes} MiB free, {needed_mebibytes} MiB are needed", path.display())]
    OutOfDisk { path: PathBuf, free_mebibytes: u64, needed_mebibytes: u64 },
    /// Another process is changing the environment.
    #[error("another process is changing {}", directory.display())]
    Busy {
        /// The environment's directory.
        directory: PathBuf,
    },
    /// Something did not happen in time.
    #[error("timed out after {seconds} s waiting for {what}: {state}")]
    TooSlow {
        /// What was waited for.
        what: String,
        seconds: u64,
        /// How far it is.
        state: String,
    },
    /// A program in the machine failed.
    #[error("{program} failed: {message}")]
    Program { program: String, message: String },
    /// A kubeconfig cannot be used.
    #[error("cannot use the kubeconfig {}: {message}", path.display())]
    Kubeconfig { path: PathBuf, message: String },
    /// Something cannot be written as text.
    #[error("cannot write {what}: {message}")]
    Rendering { what: &'static str, message: String },
    /// A file of the environment.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A phase that failed.
#[derive(Debug)]
pub struct PhaseError {
    pub phase: Phase,
    pub cause: Error,
    /// Where to read more.
    pub log: Option<PathBuf>,
    pub fix: Option<&'static str>,
}

impl fmt::Display for PhaseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} failed: {}", self.phase, self.cause.with_causes())?;
        if let Some(log) = &self.log {
            write!(formatter, "\n  log: {}", log.display())?;
        }
        if let Some(fix) = self.fix {
            write!(formatter, "\n  likely fix: {fix}")?;
        }
        Ok(())
    }
}

impl Error {
    /// Whether an API server understood and said no: the same again would be refused again.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Kit(error) if hangar_kit::Failure::category(error) == "ApiInvalid")
    }

    /// What failed, and why, as far down as it is known.
    pub(crate) fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            let words = cause.to_string();
            // Transparent errors, and those that show their source, say the same at every level.
            if !text.contains(&words) {
                text = format!("{text}: {words}");
            }
            source = cause.source();
        }
        // The API server's answer in words, and then once more as a structure.
        match text.split_once(" (Status {") {
            Some((words, _)) => words.trim_end_matches([':', ' ']).to_owned(),
            None => text,
        }
    }

    /// What usually helps against this.
    pub(crate) fn likely_fix(&self) -> Option<&'static str> {
        use hangar_machine::Error as Machine;
        use hangar_parts::Error as Parts;
        Some(match self {
            Self::Machine(Machine::NotRoot) => "run it as root (sudo)",
            Self::Machine(Machine::NoCgroups | Machine::MissingControllers(_)) => {
                "mount the cgroup hierarchies, or use a host that has them (most containers do not)"
            }
            Self::Machine(Machine::RangeInUse { .. })
            | Self::NoFreeRange { .. }
            | Self::SmallRange { .. }
            | Self::ReservedRange { .. } => "give another range, such as --range 10.213.0.0/20",
            Self::OtherRange { .. } => "omit --range, or run `hangar down` first",
            Self::FewerNodes { .. } => "omit --management-nodes, or run `hangar down` first",
            Self::Machine(Machine::NotMergedUsr(_)) => {
                "use a distribution with a merged /usr, as Debian 12 has"
            }
            Self::Machine(Machine::NoOverlay) => "load the kernel's module `overlay`",
            Self::Machine(Machine::OutOfDisk { .. })
            | Self::OutOfDisk { .. }
            | Self::Parts(Parts::DiskFull { .. }) => "free some disk space, then run it again",
            Self::Busy { .. } | Self::Machine(Machine::Busy(_)) => {
                "wait until the other process is done, then run it again"
            }
            Self::Parts(Parts::Packages { .. }) => {
                "check the network and `apt-get update`, then run it again"
            }
            Self::Parts(Parts::GoMissing { .. } | Parts::GoTooOld { .. }) => {
                "install that Go, and have it on the PATH (sudo has its own: sudo env \"PATH=$PATH\" ...)"
            }
            Self::Parts(Parts::CompilerMissing { .. }) => {
                "install a C compiler (Debian: apt-get install gcc libc6-dev)"
            }
            _ if self.is_out_of_disk() => "free some disk space, then run it again",
            Self::Parts(Parts::GoFailed { .. }) => {
                "check that Go's module proxy can be reached (GOPROXY) and is trusted (Debian: ca-certificates)"
            }
            Self::TooSlow { .. } => "read the log; another `up` continues where it stopped",
            _ => return None,
        })
    }

    /// Whether the system, or a program in its output, reported a full disk.
    fn is_out_of_disk(&self) -> bool {
        self.with_causes().to_lowercase().contains("no space left on device")
    }
}

/// Adds the action and the path to a bare system error.
pub(crate) trait At<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| Error::File { action, path: path.to_owned(), source })
    }
}

/// Adds the action to an answer of the API server.
pub(crate) trait Trying<T> {
    fn trying(self, action: impl Into<String>) -> Result<T>;
}

impl<T> Trying<T> for std::result::Result<T, kube::Error> {
    fn trying(self, action: impl Into<String>) -> Result<T> {
        self.map_err(|source| Error::Kube { action: action.into(), source: Box::new(source) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_seen_behind_every_failure() {
        let full = || io::Error::from_raw_os_error(28);
        let hidden = hangar_parts::Error::Io { action: "write", path: "/x".into(), source: full() };
        assert_eq!(
            Error::Parts(hidden).with_causes(),
            "cannot write /x: No space left on device (os error 28)"
        );
        let file = Err::<(), _>(full()).at("write", Path::new("/x")).unwrap_err();
        let words = "exit status: 1: ctr: failed to copy: write /x: no space left on device";
        let program = Error::Program { program: "ctr".to_owned(), message: words.to_owned() };
        let parts =
            Error::Parts(hangar_parts::Error::Io { action: "write", path: "/x".into(), source: full() });
        for error in [file, program, parts] {
            assert_eq!(error.likely_fix(), Some("free some disk space, then run it again"), "{error:?}");
        }
        let status: kube::core::Status =
            serde_json::from_value(serde_json::json!({"message": "not now", "code": 500})).unwrap();
        let refused = Err::<(), _>(kube::Error::Api(Box::new(status))).trying("read the node").unwrap_err();
        assert!(refused.with_causes().ends_with("not now"), "{}", refused.with_causes());
        let other = Error::Program { program: "ctr".to_owned(), message: "killed".to_owned() };
        assert_eq!(other.likely_fix(), None);
    }
}
