//! Security groups and their rules.
//!
//! Directions, ether types and protocols stay text: users write numbers for protocols (`"4"` is IP in IP) and Neutron
//! returns what it was given.

use serde::{Deserialize, Serialize};

use super::{Creation, Filter, Query};
use crate::{SecurityGroupId, SecurityGroupRuleId, lenient::null_as_default};

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SecurityGroupRule {
    pub id: SecurityGroupRuleId,
    pub direction: String,
    /// `IPv4` or `IPv6`.
    pub ethertype: String,
    /// A name or a number; any if none.
    #[serde(default)]
    pub protocol: Option<String>,
    /// The first port; the type for ICMP.
    #[serde(default)]
    pub port_range_min: Option<u16>,
    /// The last port; the code for ICMP.
    #[serde(default)]
    pub port_range_max: Option<u16>,
    /// Only from or to this range.
    #[serde(default)]
    pub remote_ip_prefix: Option<String>,
    /// Only from or to ports in this group.
    #[serde(default)]
    pub remote_group_id: Option<SecurityGroupId>,
}

/// A security group with its rules.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SecurityGroup {
    pub id: SecurityGroupId,
    #[serde(default, deserialize_with = "null_as_default")]
    pub name: String,
    /// It carries the owner.
    #[serde(default, deserialize_with = "null_as_default")]
    pub description: String,
    #[serde(default, rename = "security_group_rules")]
    pub rules: Vec<SecurityGroupRule>,
    #[serde(default)]
    pub tags: Vec<String>,
}

/// Makes a security group. It is born with two rules that let everything out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SecurityGroupCreate {
    pub name: String,
    /// Its description, which carries the owner.
    pub description: String,
}

/// Makes a rule. An equal one is refused as a conflict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SecurityGroupRuleCreate {
    pub security_group_id: SecurityGroupId,
    pub direction: String,
    /// `IPv4` or `IPv6`.
    pub ethertype: String,
    /// A name or a number; any if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_range_min: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_range_max: Option<u16>,
    /// Only from or to this range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_ip_prefix: Option<String>,
    /// Only from or to ports in this group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_group_id: Option<SecurityGroupId>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecurityGroupQuery {
    /// By what all kinds have.
    pub filter: Filter,
}

impl Creation for SecurityGroupCreate {
    type Id = SecurityGroupId;

    fn name(&self) -> Option<&str> {
        Some(&self.name)
    }
}

impl Creation for SecurityGroupRuleCreate {
    type Id = SecurityGroupRuleId;

    fn name(&self) -> Option<&str> {
        // Rules have no name; their description is as stable as we make it.
        (!self.description.is_empty()).then_some(self.description.as_str())
    }
}

impl Query for SecurityGroupQuery {
    type Id = SecurityGroupId;

    fn pairs(&self) -> Vec<(&'static str, String)> {
        self.filter.pairs().0
    }
}
