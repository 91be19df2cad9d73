//! Flavors.

use serde::Deserialize;

use crate::FlavorId;

/// The size of a server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Flavor {
    pub id: FlavorId,
    pub name: String,
    pub vcpus: u32,
    /// Memory in MiB.
    #[serde(rename = "ram")]
    pub ram_mib: u64,
    /// Root disk in GiB; 0 where servers boot from a volume.
    #[serde(rename = "disk")]
    pub disk_gib: u64,
}
