//! Makes directories for volume claims, in milliseconds: no helper pod, no image, no polling.
//!
//! It runs in every management machine, beside kubelet, and serves the storage classes that name [`PROVISIONER`]. A claim
//! gets a directory and a volume of type `local` that is bound to it; when the claim is gone and the class says Delete,
//! the directory is removed first and then the volume. The type is `local` and not `hostPath` because kubelet then
//! honours `fsGroup`, so that programs without root can write.
//!
//! It can be killed at any moment, and nothing is made twice or left behind:
//! - Directory and volume are named after the claim's uid. Doing it again finds what was done.
//! - The directory is made before the volume, so a pod never waits for one. If the claim disappears between the two,
//!   the directory has no volume and is **empty**, since no pod can have used it: such directories are removed at the
//!   next start and whenever a claim is deleted. A directory with content is removed only with its volume.
//! - The volume carries a finalizer of ours, so that a volume that is deleted by hand is also removed after its
//!   directory.
//! - A missing directory of an existing volume is never made again: an empty one in its place would look like a healthy
//!   volume whose data is gone.
//! - What is removed is `<directory>/<name>`, never a path that an object names.
//!
//! Decisions are pure (`claim`, `volume`); the loop is the controller runtime's.

mod claim;
mod controller;
mod directory;
mod error;
#[cfg(test)]
mod tests;
mod volume;

use std::path::PathBuf;

use hangar_kit::client::{ClientOptions, client};
use tokio_util::sync::CancellationToken;

pub use controller::run_with_client;
pub use error::Error;

/// The name that storage classes give it.
pub const PROVISIONER: &str = "hangar.cluster.x-k8s.io/directory";

/// Keeps a volume's record until its directory is gone.
const FINALIZER: &str = "hangar.cluster.x-k8s.io/directory";

/// On our volumes: the node that has the directory.
const NODE_LABEL: &str = "hangar.cluster.x-k8s.io/directory-node";

/// Where it works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The name of the node it runs on: claims for other nodes are not its business.
    pub node: String,
    /// Where the directories are made; it is made too. Must survive a restart of the machine, and kubelet must see
    /// it by the same path.
    pub directory: PathBuf,
    /// Whether it also serves claims that no node was chosen for, because their class binds at once. On one node only.
    pub unassigned: bool,
}

/// Runs until `stop`. The configuration's user needs the rights in [`crate::addons::storage`].
pub async fn run(config: kube::Config, options: Options, stop: CancellationToken) -> Result<(), Error> {
    let client = client(config, &ClientOptions::default())?;
    run_with_client(client, options, stop).await
}
