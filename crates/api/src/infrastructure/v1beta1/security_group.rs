//! Security groups: existing ones, the managed ones and their rules.

use hangar_wire::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{OpenStackId, ResourceFilter};
use crate::crd::one_of::exactly_one_property;

/// An existing security group, by id or by filter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = exactly_one_property)]
pub enum SecurityGroupParam {
    /// UUID of the security group.
    Id(OpenStackId),
    /// Properties that match exactly one security group.
    Filter(ResourceFilter),
}

/// The security groups that are created for the cluster, and rules besides the basic ones.
#[wire]
#[serde(default)]
pub struct ManagedSecurityGroups {
    /// Rules for all machines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub all_nodes_security_group_rules: Vec<SecurityGroupRule>,
    /// Rules for control plane machines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub control_plane_nodes_security_group_rules: Vec<SecurityGroupRule>,
    /// Rules for worker machines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub worker_nodes_security_group_rules: Vec<SecurityGroupRule>,
    /// Lets the machines of the cluster reach each other on every port.
    pub allow_all_in_cluster_traffic: bool,
}

/// One rule. At most one of `remoteManagedGroups`, `remoteGroupID` and `remoteIPPrefix` may be given; without any,
/// every address matches.
#[wire(without_default)]
pub struct SecurityGroupRule {
    /// Name of the rule, unique in its list. The cloud does not see it.
    pub name: String,
    /// Description shown in the cloud.
    pub description: Option<String>,
    /// Direction of the traffic, seen from the machine.
    pub direction: RuleDirection,
    /// Address family; IPv4 when empty.
    pub ether_type: Option<EtherType>,
    /// First port, or the ICMP type.
    pub port_range_min: Option<i64>,
    /// Last port, or the ICMP code.
    pub port_range_max: Option<i64>,
    /// Name or number of the protocol, such as `tcp` or `4` (IP in IP).
    pub protocol: Option<String>,
    /// Managed groups on the other side; one rule is created for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remote_managed_groups: Vec<ManagedSecurityGroupName>,
    /// UUID of the security group on the other side.
    #[serde(rename = "remoteGroupID")]
    pub remote_group_id: Option<String>,
    /// Address range on the other side.
    #[serde(rename = "remoteIPPrefix")]
    pub remote_ip_prefix: Option<String>,
}

/// Direction of traffic, seen from the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RuleDirection {
    /// To the machine.
    Ingress,
    /// From the machine.
    Egress,
}

/// Address family of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum EtherType {
    /// IP version 4.
    #[default]
    IPv4,
    /// IP version 6.
    IPv6,
}

/// The groups that are created, by role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ManagedSecurityGroupName {
    /// The bastion's group.
    Bastion,
    /// The control plane machines' group.
    ControlPlane,
    /// The worker machines' group.
    Worker,
}

/// A security group that was found or created.
#[wire]
pub struct SecurityGroupStatus {
    /// UUID of the group.
    pub id: String,
    /// Name of the group.
    pub name: String,
}
