//! The content of a server's machine, as data.
//!
//! The cloud does not know where programs come from; its configuration names them here. An image of the API names one
//! of these by its property [`KUBERNETES_VERSION`].
//!
//! A machine can rely on this: its links are up with their addresses before its first service starts; the config
//! drive's files are below [`super::cloud_init::SEED`], and [`super::cloud_init::READY`] exists once they are complete;
//! a data directory with a [`Seed`] is filled, and `.seeded` exists in it (services that use it wait for that file).

use std::path::PathBuf;

use hangar_machine::{Bind, FileContent, Layers, Service};
use serde::{Deserialize, Serialize};

/// The image property that selects what runs inside, such as `v1.34.10`.
pub const KUBERNETES_VERSION: &str = "kubernetes_version";

/// What is in a machine beside the host's own /usr, /etc and /var.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MachineImage {
    /// Trees over the host's.
    pub layers: Layers,
    /// Files and directories of the host.
    pub binds: Vec<Bind>,
    /// Files written at each start.
    pub files: Vec<FileContent>,
    /// What its data directories begin with.
    pub seeds: Vec<Seed>,
    /// What its supervisor runs.
    pub services: Vec<Service>,
}

/// A data directory's first content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seed {
    /// The data directory: `containerd` or `kubelet`, below /var/lib in the machine.
    pub data: String,
    /// A tree of the host that is copied by hard links ([`hangar_machine::link_tree`]).
    pub source: PathBuf,
}
