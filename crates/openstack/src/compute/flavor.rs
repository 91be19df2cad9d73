//! Flavors.

use serde::Deserialize;

use crate::FlavorId;

/// The size of a server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Flavor {
    pub id: FlavorId,
    pub name: String,
}
