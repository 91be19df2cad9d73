//! Flavors: sizes of servers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A flavor. Servers keep a copy, as Nova's do: a flavor that goes does not change what was made from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flavor {
    pub id: String,
    pub name: String,
    pub vcpus: u32,
    /// Memory in MiB.
    pub ram: u32,
    /// Root disk in GiB.
    pub disk: u32,
    pub extra_specs: BTreeMap<String, String>,
}
