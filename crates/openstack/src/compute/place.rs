//! Where servers can be put, and how many.

use serde::Deserialize;

use crate::ServerGroupId;

/// A zone.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Zone")]
pub struct AvailabilityZone {
    /// Its name.
    pub name: String,
    /// Whether servers can be put there now.
    pub is_available: bool,
}

#[derive(Deserialize)]
struct Zone {
    #[serde(rename = "zoneName")]
    name: String,
    #[serde(rename = "zoneState")]
    state: ZoneState,
}

#[derive(Deserialize)]
struct ZoneState {
    available: bool,
}

impl From<Zone> for AvailabilityZone {
    fn from(zone: Zone) -> Self {
        Self { name: zone.name, is_available: zone.state.available }
    }
}

/// Servers that are kept together or apart.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ServerGroup {
    /// Its id.
    pub id: ServerGroupId,
    /// Its name.
    pub name: String,
}

/// What the project may have (-1: any number) and has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct ComputeLimits {
    /// Servers allowed.
    #[serde(rename = "maxTotalInstances")]
    pub servers: i64,
    /// Servers there are.
    #[serde(rename = "totalInstancesUsed", default)]
    pub servers_used: i64,
    /// Virtual CPUs allowed.
    #[serde(rename = "maxTotalCores")]
    pub cores: i64,
    /// Virtual CPUs in use.
    #[serde(rename = "totalCoresUsed", default)]
    pub cores_used: i64,
    /// Memory allowed, in MiB.
    #[serde(rename = "maxTotalRAMSize")]
    pub ram_mib: i64,
    /// Memory in use, in MiB.
    #[serde(rename = "totalRAMUsed", default)]
    pub ram_mib_used: i64,
}
