//! Availability zones and server groups: where servers are placed.

use serde::Deserialize;

use crate::ServerGroupId;

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Zone")]
pub struct AvailabilityZone {
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
    pub id: ServerGroupId,
    pub name: String,
}
