//! The steps of an OpenStackCluster in the cloud.

use std::net::IpAddr;

use ipnet::IpNet;

use super::Role;
use super::conditions::{network_ready, router_ready, security_groups_ready};
use crate::flow::{self, Identified, Never, StepId};
use crate::openstack::{
    GroupRule, NetworkId, Request, RouterId, SecurityGroupId, SecurityGroupRuleId, SubnetId,
};

/// One call: writes to the management cluster, and to the cloud.
pub type Step = flow::Step<Never, Never, NetworkStep>;

/// One call to the cloud.
#[derive(Clone, Debug, PartialEq)]
pub enum NetworkStep {
    /// Makes the network.
    CreateNetwork {
        name: String,
        /// Its MTU, where one is asked for.
        mtu: Option<u32>,
        /// Whether its ports are filtered, where that is said.
        is_port_security_enabled: Option<bool>,
    },
    /// Makes the subnet.
    CreateSubnet {
        name: String,
        /// The network it is on.
        network_id: NetworkId,
        subnet: NewSubnet,
    },
    /// Changes the name servers of the subnet.
    SetNameServers {
        /// The subnet's name.
        name: String,
        id: SubnetId,
        dns_nameservers: Vec<IpAddr>,
    },
    /// Makes the router.
    CreateRouter {
        name: String,
        gateway_network_id: NetworkId,
        /// Addresses asked for there: the subnet and the address.
        gateway_addresses: Vec<(SubnetId, Option<IpAddr>)>,
    },
    /// Connects the router to the subnet.
    AddInterface {
        /// The router's name.
        name: String,
        router_id: RouterId,
        subnet_id: SubnetId,
    },
    /// Takes the router off a subnet.
    RemoveInterface {
        /// The router's name.
        name: String,
        router_id: RouterId,
        subnet_id: SubnetId,
    },
    /// Makes a security group.
    CreateGroup { role: Role, name: String },
    /// Makes a rule.
    CreateRule {
        role: Role,
        group_id: SecurityGroupId,
        rule: GroupRule,
        /// What it says, in words that are the same in every run.
        label: String,
        /// A description for people.
        description: String,
    },
    /// Deletes a rule.
    DeleteRule {
        role: Role,
        id: SecurityGroupRuleId,
        /// What it says, in words that are the same in every run.
        label: String,
    },
    /// Sets the tags of an object.
    Tag { id: ObjectId, name: String, tags: Vec<String> },
    /// Deletes an object.
    Delete {
        id: ObjectId,
        /// Its name; one that is too many has a number besides.
        name: String,
    },
}

/// A subnet as the specification asks for it.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSubnet {
    pub cidr: IpNet,
    pub dns_nameservers: Vec<IpAddr>,
    /// Where addresses are given out from: the first and the last.
    pub allocation_pools: Vec<(IpAddr, IpAddr)>,
}

/// The id of an object that is made here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectId {
    Network(NetworkId),
    Subnet(SubnetId),
    Router(RouterId),
    Group(SecurityGroupId),
}

impl ObjectId {
    /// The kind of object, as steps call it.
    fn kind(&self) -> &'static str {
        match self {
            Self::Network(_) => "network",
            Self::Subnet(_) => "subnet",
            Self::Router(_) => "router",
            Self::Group(_) => "security-group",
        }
    }

    /// The condition it belongs to.
    fn condition(&self) -> &'static str {
        match self {
            Self::Network(_) | Self::Subnet(_) => network_ready::TYPE,
            Self::Router(_) => router_ready::TYPE,
            Self::Group(_) => security_groups_ready::TYPE,
        }
    }
}

impl Identified for NetworkStep {
    fn id(&self) -> StepId {
        match self {
            Self::CreateNetwork { name, .. } => StepId::new("create", "network", name),
            Self::CreateSubnet { name, .. } => StepId::new("create", "subnet", name),
            Self::SetNameServers { name, .. } => StepId::new("update", "subnet", name),
            Self::CreateRouter { name, .. } => StepId::new("create", "router", name),
            Self::AddInterface { name, .. } => StepId::new("add", "router-interface", name),
            Self::RemoveInterface { name, .. } => StepId::new("remove", "router-interface", name),
            Self::CreateGroup { name, .. } => StepId::new("create", "security-group", name),
            Self::CreateRule { role, label, .. } => {
                StepId::new("create", "security-group-rule", format!("{role}: {label}"))
            }
            Self::DeleteRule { role, label, .. } => {
                StepId::new("delete", "security-group-rule", format!("{role}: {label}"))
            }
            Self::Tag { id, name, .. } => StepId::new("tag", id.kind(), name),
            Self::Delete { id, name } => StepId::new("delete", id.kind(), name),
        }
    }
}

impl NetworkStep {
    /// What it asks for that may come long after its answer was given up, so that it is written on the object before. A
    /// rule and a connection come to nothing where what they belong to is gone.
    pub fn request(&self) -> Option<Request> {
        match self {
            Self::CreateNetwork { .. } => Some(Request::Other("network")),
            Self::CreateSubnet { .. } => Some(Request::Other("subnet")),
            Self::CreateRouter { .. } => Some(Request::Other("router")),
            Self::CreateGroup { .. } => Some(Request::Other("security group")),
            Self::SetNameServers { .. }
            | Self::AddInterface { .. }
            | Self::RemoveInterface { .. }
            | Self::CreateRule { .. }
            | Self::DeleteRule { .. }
            | Self::Tag { .. }
            | Self::Delete { .. } => None,
        }
    }

    pub(super) fn condition(&self) -> &'static str {
        match self {
            Self::CreateNetwork { .. } | Self::CreateSubnet { .. } | Self::SetNameServers { .. } => {
                network_ready::TYPE
            }
            Self::CreateRouter { .. } | Self::AddInterface { .. } | Self::RemoveInterface { .. } => {
                router_ready::TYPE
            }
            Self::CreateGroup { .. } | Self::CreateRule { .. } | Self::DeleteRule { .. } => {
                security_groups_ready::TYPE
            }
            Self::Tag { id, .. } | Self::Delete { id, .. } => id.condition(),
        }
    }
}

impl From<NetworkStep> for Step {
    fn from(step: NetworkStep) -> Self {
        Self::Cloud(step)
    }
}
