//! The calls to the cloud.

use std::collections::BTreeMap;

use hangar_api::infrastructure::v1beta1::ResolvedPort;
use serde_json::Value;

use super::UserData;
use crate::flow::{self, Identified, Never, StepId};

/// One call: writes to the management cluster, and to the cloud.
pub type Step = flow::Step<Never, Never, ServerStep>;

/// One call to the cloud.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerStep {
    CreatePort(Box<ResolvedPort>),
    /// Sets the tags of a port.
    TagPort {
        name: String,
        id: String,
        tags: Vec<String>,
    },
    /// Makes the server on its ports.
    CreateServer(Box<NewServer>),
    /// Deletes a server.
    DeleteServer {
        /// Its name; one that is too many has a number besides.
        name: String,
        id: String,
    },
    /// Deletes a port.
    DeletePort {
        /// Its name; one that is too many has a number besides.
        name: String,
        id: String,
    },
}

/// A server to make.
#[derive(Clone, Debug, PartialEq)]
pub struct NewServer {
    pub name: String,
    pub image_id: String,
    pub flavor_id: String,
    /// The group it is kept with or apart from.
    pub server_group_id: Option<String>,
    /// Its ports, in order.
    pub port_ids: Vec<String>,
    /// What it reads at its first boot.
    pub user_data: UserData,
    /// What is written on it, besides the owner.
    pub metadata: BTreeMap<String, String>,
    pub tags: Vec<String>,
    /// The key that may log in.
    pub key_name: Option<String>,
    /// Whether it gets its data on a disk.
    pub config_drive: Option<bool>,
    /// Where it is put.
    pub availability_zone: Option<String>,
    /// More for the scheduler.
    pub scheduler_hints: BTreeMap<String, Value>,
}

impl ServerStep {
    /// Whether it may come to pass long after its answer was given up, so that it is written on the object before.
    pub fn is_noted(&self) -> bool {
        matches!(self, Self::CreateServer(_))
    }
}

impl Identified for ServerStep {
    fn id(&self) -> StepId {
        match self {
            Self::CreatePort(port) => StepId::new("create", "port", &port.name),
            Self::TagPort { name, .. } => StepId::new("tag", "port", name),
            Self::CreateServer(server) => StepId::new("create", "server", &server.name),
            Self::DeleteServer { name, .. } => StepId::new("delete", "server", name),
            Self::DeletePort { name, .. } => StepId::new("delete", "port", name),
        }
    }
}

impl From<ServerStep> for Step {
    fn from(step: ServerStep) -> Self {
        Self::Cloud(step)
    }
}
