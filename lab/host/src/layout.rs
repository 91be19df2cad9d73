//! The files of an environment.
//!
//! ```text
//! <state>/<name>/management.kubeconfig     for people on the host
//!                <cluster>.kubeconfig      the same for the first cluster
//!                management/kubernetes/    /etc/kubernetes of the management machine
//!                           etcd/          /var/lib/etcd
//!                           volumes/       volumes
//!                           programs/      our own program, linked, for all management machines
//!                           kept/          programs of the cache that they run, linked
//!                           machine        hash of what the machine was made from
//!                           images         the store that its images are from
//!                           services       seals of what its services were started with
//!                           asked          options of `up` that stay
//!                nodes/<node>/             kubernetes/, volumes/, machine, images, services of a further management machine
//!                cloud/                    of the embedded cloud
//!                machines/ fabrics/        of the machine crate
//! ```

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::error::{At, Result};
use crate::management::Node;

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

    /// The files of a management machine.
    pub fn node(&self, node: Node) -> NodeLayout {
        let directory =
            if node.is_first() { self.management() } else { self.directory.join("nodes").join(node.name()) };
        NodeLayout { directory }
    }

    /// What the first management machine has as /etc/kubernetes.
    pub fn kubernetes(&self) -> PathBuf {
        self.node(Node::FIRST).kubernetes()
    }

    /// What it has as /var/lib/etcd.
    pub fn etcd(&self) -> PathBuf {
        self.management().join("etcd")
    }

    /// Our own program as machines see it: a directory, so that the file in it can be replaced.
    pub fn programs(&self) -> PathBuf {
        self.management().join("programs")
    }

    /// Programs of the cache that management machines run.
    pub fn linked_programs(&self) -> PathBuf {
        self.management().join("kept")
    }

    /// The options of `up` that stay.
    pub fn asked(&self) -> PathBuf {
        self.management().join("asked")
    }

    /// Makes the directories that so many management machines see.
    pub(crate) fn create(&self, nodes: u8) -> Result<()> {
        let mut directories = vec![
            (self.directory.clone(), 0o755),
            (self.management(), 0o755),
            (self.etcd(), 0o700),
            (self.programs(), 0o755),
        ];
        for node in Node::some(nodes).map(|node| self.node(node)) {
            directories.extend([
                (node.kubernetes(), 0o755),
                (node.kubernetes().join("manifests"), 0o755),
                (node.volumes(), 0o755),
            ]);
        }
        for (path, mode) in directories {
            fs::DirBuilder::new().recursive(true).mode(mode).create(&path).at("create", &path)?;
        }
        Ok(())
    }
}

/// Paths of one management machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeLayout {
    directory: PathBuf,
}

impl NodeLayout {
    /// What the machine has as /etc/kubernetes.
    pub fn kubernetes(&self) -> PathBuf {
        self.directory.join("kubernetes")
    }

    /// Where its volumes lie.
    pub fn volumes(&self) -> PathBuf {
        self.directory.join("volumes")
    }

    /// A hash of what it was made from.
    pub fn hash(&self) -> PathBuf {
        self.directory.join("machine")
    }

    /// The name of the store that its images are from.
    pub fn images(&self) -> PathBuf {
        self.directory.join("images")
    }

    /// What its services were started with.
    pub fn services(&self) -> PathBuf {
        self.directory.join("services")
    }
}
