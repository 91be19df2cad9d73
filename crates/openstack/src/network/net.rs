//! Networks.

use serde::{Deserialize, Serialize};

use super::{Creation, Filter, Query};
use crate::{NetworkId, lenient::null_as_default};

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Network {
    pub id: NetworkId,
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// It carries the owner.
    #[serde(default, deserialize_with = "null_as_default")]
    pub description: String,
    #[serde(default)]
    pub tags: Vec<String>,
}

/// Makes a network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NetworkCreate {
    pub name: String,
    /// Its description, which carries the owner.
    pub description: String,
    /// Largest packet; the cloud's choice if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// Whether its ports are filtered by default; the cloud's choice if none.
    #[serde(rename = "port_security_enabled", skip_serializing_if = "Option::is_none")]
    pub is_port_security_enabled: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkQuery {
    /// By what all kinds have.
    pub filter: Filter,
    /// Only external ones, or only others.
    pub is_external: Option<bool>,
}

impl Creation for NetworkCreate {
    type Id = NetworkId;

    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }
}

impl Query for NetworkQuery {
    type Id = NetworkId;

    fn pairs(&self) -> Vec<(&'static str, String)> {
        self.filter.pairs().with("router:external", self.is_external.as_ref()).0
    }
}
