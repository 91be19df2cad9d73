//! The specification of a server, independent of the kind that wants it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use hangar_api::infrastructure::v1beta1::{ImageParam, Port, SecurityGroupParam, ServerGroupParam};
use serde_json::Value;

use crate::openstack::{FlavorId, NetworkId, SecurityGroupId, SubnetId};

#[derive(Clone, Debug, PartialEq)]
pub struct WantedServer {
    /// The field that describes it; problems are told with it in front.
    pub field: &'static str,
    pub name: String,
    /// What everything made for it carries.
    pub owner_id: String,
    pub image: ImageParam,
    /// Goes before the flavor's name.
    pub flavor_id: Option<FlavorId>,
    pub flavor: Option<String>,
    pub server_group: Option<ServerGroupParam>,
    /// In order; no two of one name.
    pub ports: Vec<WantedPort>,
    /// Security groups of all ports.
    pub security_groups: Vec<SecurityGroupParam>,
    /// Besides the owner.
    pub metadata: BTreeMap<String, String>,
    pub tags: Vec<String>,
    pub key_name: Option<String>,
    pub config_drive: Option<bool>,
    pub availability_zone: Option<String>,
    pub scheduler_hints: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct WantedPort {
    /// How it is found again.
    pub name: String,
    pub given: Port,
    /// Its network, if none is given.
    pub network_id: Option<NetworkId>,
    /// Subnets that it has an address on, besides those that are given.
    pub subnet_ids: Vec<SubnetId>,
    /// Security groups besides those that are given.
    pub security_group_ids: Vec<SecurityGroupId>,
}

/// What a server reads at its first boot. It prints as its length: there is a token in it.
#[derive(Clone, PartialEq, Eq)]
pub struct UserData(pub Vec<u8>);

impl fmt::Debug for UserData {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "UserData({} bytes)", self.0.len())
    }
}

/// All in order, each once.
pub(crate) fn union<T: Clone + Ord>(lists: &[&[T]]) -> Vec<T> {
    let mut seen = BTreeSet::new();
    lists.iter().copied().flatten().filter(|item| seen.insert(*item)).cloned().collect()
}
