//! The steps of a server in the cloud.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use hangar_api::conditions::Bad;
use hangar_api::infrastructure::v1beta1::{AddressPair, ResolvedFixedIp, ResolvedPort};
use serde_json::Value;

use super::UserData;
use crate::flow::{self, Identified, Never, StepId};
use crate::openstack::conditions::server;
use crate::openstack::{
    FlavorId, ImageId, NetworkId, PortId, Request, SecurityGroupId, ServerGroupId, ServerId, SubnetId,
};

/// One call: writes to the object that the server is for, and to the cloud.
pub type Step = flow::Step<Never, Never, ServerStep>;

/// One call to the cloud.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerStep {
    CreatePort(Box<NewPort>),
    TagPort { name: String, id: PortId, tags: Vec<String> },
    CreateServer(Box<NewServer>),
    DeleteServer { name: String, id: ServerId },
    DeletePort { name: String, id: PortId },
}

/// A port to make.
#[derive(Clone, PartialEq)]
pub struct NewPort {
    pub name: String,
    /// It ends in the owner's mark.
    pub description: String,
    pub network_id: NetworkId,
    /// Its addresses, as asked for: on which subnet, and which.
    pub addresses: Vec<(Option<SubnetId>, Option<IpAddr>)>,
    pub security_group_ids: Vec<SecurityGroupId>,
    pub tags: Vec<String>,
    pub admin_state_up: Option<bool>,
    pub mac_address: Option<String>,
    pub allowed_address_pairs: Vec<AddressPair>,
    pub vnic_type: Option<String>,
    /// Whether nothing is filtered on it.
    pub is_unfiltered: bool,
}

/// As it is recorded, with the addresses before they are text.
#[allow(clippy::missing_fields_in_debug, reason = "what is recorded has the others")]
impl fmt::Debug for NewPort {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("NewPort");
        shown.field("resolved", &self.recorded()).field("addresses", &self.addresses).finish()
    }
}

impl NewPort {
    /// As the status of an object shows it.
    pub(super) fn recorded(&self) -> ResolvedPort {
        let addresses = self.addresses.iter().map(|(subnet, address)| ResolvedFixedIp {
            subnet: subnet.as_ref().map(ToString::to_string),
            ip_address: address.map(|address| address.to_string()),
        });
        ResolvedPort {
            name: self.name.clone(),
            description: self.description.clone(),
            network_id: self.network_id.to_string(),
            fixed_ips: addresses.collect(),
            security_groups: self.security_group_ids.iter().map(ToString::to_string).collect(),
            tags: self.tags.clone(),
            admin_state_up: self.admin_state_up,
            mac_address: self.mac_address.clone(),
            allowed_address_pairs: self.allowed_address_pairs.clone(),
            vnic_type: self.vnic_type.clone(),
            disable_port_security: self.is_unfiltered.then_some(true),
            ..ResolvedPort::default()
        }
    }
}

/// A server to make.
#[derive(Clone, Debug, PartialEq)]
pub struct NewServer {
    pub name: String,
    pub image_id: ImageId,
    pub flavor_id: FlavorId,
    pub server_group_id: Option<ServerGroupId>,
    pub port_ids: Vec<PortId>,
    pub user_data: UserData,
    pub metadata: BTreeMap<String, String>,
    pub tags: Vec<String>,
    pub key_name: Option<String>,
    pub config_drive: Option<bool>,
    pub availability_zone: Option<String>,
    pub scheduler_hints: BTreeMap<String, Value>,
}

impl ServerStep {
    /// What it asks for that may come long after its answer was given up, so that it is written on the object before.
    pub fn request(&self) -> Option<Request> {
        match self {
            Self::CreateServer(_) => Some(Request::Server),
            Self::CreatePort(_) => Some(Request::Other("port")),
            Self::TagPort { .. } | Self::DeleteServer { .. } | Self::DeletePort { .. } => None,
        }
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
