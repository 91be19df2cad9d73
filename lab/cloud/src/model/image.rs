//! Images. They come from the configuration; the driver knows what is inside.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use uuid::Uuid;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub id: Uuid,
    pub name: String,
    /// Whose it is; all may use it.
    pub owner: String,
    pub properties: BTreeMap<String, String>,
    pub tags: BTreeSet<String>,
    pub created: Timestamp,
}
