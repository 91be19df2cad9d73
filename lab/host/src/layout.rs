//! The files of an environment.
//!
//! ```text
//! <state>/<name>/management.kubeconfig     for people on the host
//!                <cluster>.kubeconfig      the same for the first cluster
//!                management/kubernetes/    /etc/kubernetes of the management machine
//!                           etcd/          /var/lib/etcd
//!                           volumes/       volumes
//!                           programs/      our own program, linked
//!                           kept/          programs of the cache that the machine runs, linked
//!                           machine        hash of what the machine was made from
//!                           images         the store that its images are from
//!                           services       seals of what its services were started with
//!                           asked          options of `up` that stay
//!                cloud/                    of the embedded cloud
//!                machines/ fabrics/        of the machine crate
//! ```

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::error::{At, Result};

/// Paths of one environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    directory: PathBuf,
}

impl Layout {
    /// The files below this directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// The environment's directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The kubeconfig of the management cluster.
    pub fn kubeconfig(&self) -> PathBuf {
        self.directory.join("management.kubeconfig")
    }

    fn management(&self) -> PathBuf {
        self.directory.join("management")
    }

    /// What the management machine has as /etc/kubernetes.
    pub fn kubernetes(&self) -> PathBuf {
        self.management().join("kubernetes")
    }

    /// What it has as /var/lib/etcd.
    pub fn etcd(&self) -> PathBuf {
        self.management().join("etcd")
    }

    /// Where its volumes lie.
    pub fn volumes(&self) -> PathBuf {
        self.management().join("volumes")
    }

    /// Our own program as the machine sees it: a directory, so that the file in it can be replaced.
    pub fn programs(&self) -> PathBuf {
        self.management().join("programs")
    }

    /// A hash of what its machine was made from.
    pub fn machine_hash(&self) -> PathBuf {
        self.management().join("machine")
    }

    /// Programs of the cache that its machine runs.
    pub fn linked_programs(&self) -> PathBuf {
        self.management().join("kept")
    }

    /// The name of the store that its images are from.
    pub fn machine_images(&self) -> PathBuf {
        self.management().join("images")
    }

    /// What its services were started with.
    pub fn machine_services(&self) -> PathBuf {
        self.management().join("services")
    }

    /// The options of `up` that stay.
    pub fn asked(&self) -> PathBuf {
        self.management().join("asked")
    }

    /// Makes the directories that machines see.
    pub(crate) fn create(&self) -> Result<()> {
        for (path, mode) in [
            (self.directory.clone(), 0o755),
            (self.management(), 0o755),
            (self.kubernetes(), 0o755),
            (self.kubernetes().join("manifests"), 0o755),
            (self.etcd(), 0o700),
            (self.volumes(), 0o755),
            (self.programs(), 0o755),
        ] {
            fs::DirBuilder::new().recursive(true).mode(mode).create(&path).at("create", &path)?;
        }
        Ok(())
    }
}
