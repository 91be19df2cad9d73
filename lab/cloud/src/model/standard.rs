//! The fields that every object of Neutron has.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Caller, Draw};

/// Attributes that all network objects share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standard {
    /// Whose it is; empty for what the cloud made for itself.
    pub project: String,
    /// Its name; names need not be unique.
    pub name: String,
    pub description: String,
    pub tags: BTreeSet<String>,
    /// When it was made.
    pub created: Timestamp,
    /// When it last changed.
    pub updated: Timestamp,
    pub revision: u64,
}

impl Standard {
    /// Of a new object.
    pub fn new(project: &str, name: &str, description: &str, draw: &Draw) -> Self {
        Self {
            project: project.into(),
            name: name.into(),
            description: description.into(),
            tags: BTreeSet::new(),
            created: draw.now,
            updated: draw.now,
            revision: 1,
        }
    }

    /// Notes that the object changed.
    pub fn touch(&mut self, draw: &Draw) {
        self.updated = draw.now;
        self.revision += 1;
    }

    /// Whether the caller may see and change it.
    pub fn is_of(&self, caller: &Caller) -> bool {
        caller.is_admin || self.project == caller.project
    }
}
