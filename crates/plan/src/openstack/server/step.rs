//! The steps of a server in the cloud.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hangar_api::conditions::Bad;
use hangar_api::infrastructure::v1beta1::ResolvedPort;
use serde_json::Value;

use super::UserData;
use crate::flow::{self, Identified, Never, StepId};
use crate::openstack::conditions::server;

/// One call: writes to the object that the server is for, and to the cloud.
pub type Step = flow::Step<Never, Never, ServerStep>;

/// One call to the cloud.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerStep {
    CreatePort(Box<NewPort>),
    TagPort { name: String, id: String, tags: Vec<String> },
    CreateServer(Box<NewServer>),
    DeleteServer { name: String, id: String },
    DeletePort { name: String, id: String },
}

/// A port to make.
#[derive(Clone, Debug, PartialEq)]
pub struct NewPort {
    /// As it is recorded.
    pub resolved: ResolvedPort,
    /// Its addresses, as asked for: on which subnet, and which.
    pub addresses: Vec<(Option<String>, Option<IpAddr>)>,
}

/// A server to make.
#[derive(Clone, Debug, PartialEq)]
pub struct NewServer {
    pub name: String,
    pub image_id: String,
    pub flavor_id: String,
    pub server_group_id: Option<String>,
    pub port_ids: Vec<String>,
    pub user_data: UserData,
    pub metadata: BTreeMap<String, String>,
    pub tags: Vec<String>,
    pub key_name: Option<String>,
    pub config_drive: Option<bool>,
    pub availability_zone: Option<String>,
    pub scheduler_hints: BTreeMap<String, Value>,
}

impl ServerStep {
    /// Whether it may come to pass long after its answer was given up, so that it is written on the object before.
    pub fn is_noted(&self) -> bool {
        matches!(self, Self::CreateServer(_))
    }

    /// The reason, when it did not work, that dashboards know.
    pub(crate) fn reason(&self) -> Bad {
        match self {
            Self::CreatePort(_) | Self::TagPort { .. } => server::PORT_CREATE_FAILED,
            Self::CreateServer(_) => server::INSTANCE_CREATE_FAILED,
            Self::DeleteServer { .. } | Self::DeletePort { .. } => server::INSTANCE_DELETE_FAILED,
        }
    }
}

impl Identified for ServerStep {
    fn id(&self) -> StepId {
        match self {
            Self::CreatePort(port) => StepId::new("create", "port", &port.resolved.name),
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
