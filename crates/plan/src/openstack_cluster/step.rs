//! The steps of an OpenStackCluster in the cloud.

use std::net::IpAddr;

use ipnet::IpNet;

use super::Role;
use super::conditions::{network_ready, router_ready, security_groups_ready};
use crate::flow::{self, Identified, Never, StepId};
use crate::openstack::GroupRule;

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
        network_id: String,
        subnet: NewSubnet,
    },
    /// Changes the name servers of the subnet.
    SetNameServers {
        /// The subnet's name.
        name: String,
        id: String,
        dns_nameservers: Vec<IpAddr>,
    },
    /// Makes the router.
    CreateRouter {
        name: String,
        gateway_network_id: String,
        /// Addresses asked for there: subnet id and address.
        gateway_addresses: Vec<(String, Option<IpAddr>)>,
    },
    /// Connects the router to the subnet.
    AddInterface {
        /// The router's name.
        name: String,
        router_id: String,
        subnet_id: String,
    },
    /// Takes the router off a subnet.
    RemoveInterface {
        /// The router's name.
        name: String,
        router_id: String,
        subnet_id: String,
    },
    /// Makes a security group.
    CreateGroup { role: Role, name: String },
    /// Makes a rule.
    CreateRule {
        role: Role,
        group_id: String,
        rule: GroupRule,
        /// What it says, in words that are the same in every run.
        label: String,
        /// A description for people.
        description: String,
    },
    /// Deletes a rule.
    DeleteRule {
        role: Role,
        /// The rule's id.
        id: String,
        /// What it says, in words that are the same in every run.
        label: String,
    },
    /// Sets the tags of an object.
    Tag { kind: Kind, name: String, id: String, tags: Vec<String> },
    /// Deletes an object.
    Delete {
        kind: Kind,
        /// Its name; one that is too many has a number besides.
        name: String,
        id: String,
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

/// Kinds of cloud objects that are made here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Network,
    Subnet,
    Router,
    Group,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Subnet => "subnet",
            Self::Router => "router",
            Self::Group => "security-group",
        }
    }

    /// The condition it belongs to.
    fn condition(self) -> &'static str {
        match self {
            Self::Network | Self::Subnet => network_ready::TYPE,
            Self::Router => router_ready::TYPE,
            Self::Group => security_groups_ready::TYPE,
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
            Self::Tag { kind, name, .. } => StepId::new("tag", kind.as_str(), name),
            Self::Delete { kind, name, .. } => StepId::new("delete", kind.as_str(), name),
        }
    }
}

impl NetworkStep {
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
            Self::Tag { kind, .. } | Self::Delete { kind, .. } => kind.condition(),
        }
    }
}

impl From<NetworkStep> for Step {
    fn from(step: NetworkStep) -> Self {
        Self::Cloud(step)
    }
}
