//! Network namespaces that a caller uses for its own purpose: a cloud's networks and routers.
//!
//! They are kept beside those of machines and private networks and are removed with the environment
//! ([`Environment::delete_all`]), so callers need not record them.

use std::{fs, io};

use super::Netns;
use crate::{
    environment::Environment,
    error::{Doing, Result, on},
    name::Name,
};

/// What their files begin with.
const PREFIX: &str = "custom.";

impl Environment {
    /// A namespace by name, whether it exists or not.
    pub fn netns(&self, name: &Name) -> Netns {
        Netns::at(self.identity().netns_directory().join(format!("{PREFIX}{name}")))
    }

    /// Names of all such namespaces, also of those that a restart of the host left as mere files.
    pub fn netns_names(&self) -> Result<Vec<Name>> {
        self.netns_names_of(PREFIX)
    }

    /// The same for those of machines or private networks, whose files begin otherwise.
    pub(crate) fn netns_names_of(&self, prefix: &str) -> Result<Vec<Name>> {
        let directory = self.identity().netns_directory();
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).doing(|| on("list", &directory)),
        };
        let mut names: Vec<Name> = entries
            .flatten()
            .filter_map(|entry| Name::new(entry.file_name().to_str()?.strip_prefix(prefix)?).ok())
            .collect();
        names.sort();
        Ok(names)
    }

    /// Removes a namespace with its links. `true` when it was there.
    pub fn delete_netns(&self, name: &Name) -> Result<bool> {
        let netns = self.netns(name);
        if netns.exists() {
            // By hand: the kernel removes a dead namespace's links, and with them their other ends, some time later.
            netns.network(|network| {
                for link in network.links()? {
                    if link.name != "lo" {
                        // Links that a namespace has by itself cannot be removed, and need not be.
                        let _ = network.delete(&link.name);
                    }
                }
                Ok(())
            })?;
        }
        let existed = netns.delete()?;
        self.tidy();
        Ok(existed)
    }

    /// The bridge's end of a machine's link, for rules about it.
    pub fn port_link(&self, machine: &Name, link: &str) -> String {
        self.identity().port(machine, link)
    }
}
