//! Repairs an existing machine: the content of its data directories, and lost links.

use std::{fs, path::Path};

use super::{Machine, PATIENCE};
use crate::{
    error::{Doing, Error, Result, on},
    tree::fill_tree,
};

/// Written last into a data directory that was filled. A service can wait for it.
pub const SEEDED: &str = ".seeded";

impl Machine {
    /// Fills one of the machine's data directories (`containerd` or `kubelet`, which it has below /var/lib) with a
    /// copy of `source`, see [`crate::link_tree`]. Done once: [`SEEDED`] is there afterwards. `true` when it was done now.
    pub fn seed(&self, data: &str, source: &Path) -> Result<bool> {
        self.record()?;
        if !matches!(data, "containerd" | "kubelet") {
            return Err(Error::Invalid(format!("a machine has no data directory {data:?}")));
        }
        let target = self.files.data(data);
        let marker = target.join(SEEDED);
        if marker.exists() {
            return Ok(false);
        }
        fill_tree(source, &target)?;
        fs::write(&marker, "").doing(|| on("write", &marker))?;
        Ok(true)
    }

    /// Makes the links of a running machine again, where the network they were attached to was made anew.
    pub fn reconnect(&self) -> Result<()> {
        let (lock, record) = self.lock(PATIENCE)?;
        let connected = self.connect(&record);
        drop(lock);
        connected
    }
}
