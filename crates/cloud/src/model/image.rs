//! Images. They come from the configuration; what is inside is the driver's matter.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use uuid::Uuid;

/// An image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Its id.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Whose it is; all may use it.
    pub owner: String,
    /// Properties.
    pub properties: BTreeMap<String, String>,
    /// Tags.
    pub tags: BTreeSet<String>,
    /// Since when.
    pub created: Timestamp,
}
