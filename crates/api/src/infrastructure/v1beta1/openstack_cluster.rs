//! `OpenStackCluster`: what the machines of a cluster share.

use std::collections::BTreeMap;

use hangar_wire::wire;
use kube::CustomResource;

use super::{
    ApiServerLoadBalancer, Bastion, BastionStatus, ExternalRouterIp, IdentityReference, LoadBalancerStatus,
    ManagedSecurityGroups, ManagedSubnet, NetworkParam, NetworkStatus, NetworkStatusWithSubnets, RouterParam,
    RouterStatus, SecurityGroupStatus, SubnetParam,
};
use crate::{cluster::legacy_condition::LegacyCondition, contract::endpoint::Endpoint};

/// Networks, security groups and access of a cluster in OpenStack.
#[wire]
#[derive(CustomResource)]
#[kube(
    group = "infrastructure.cluster.x-k8s.io",
    version = "v1beta1",
    kind = "OpenStackCluster",
    plural = "openstackclusters",
    namespaced,
    status = "OpenStackClusterStatus",
    derive = "PartialEq",
    doc = "What the machines of a cluster share in OpenStack: networks, security groups, access.",
    shortname = "osc",
    category = "cluster-api",
    printcolumn(
        name = "Cluster",
        type_ = "string",
        json_path = ".metadata.labels.cluster\\.x-k8s\\.io/cluster-name",
        description = "Cluster of this infrastructure"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.ready",
        description = "Whether machines can be created"
    ),
    printcolumn(
        name = "Network",
        type_ = "string",
        json_path = ".status.network.id",
        description = "Network of the cluster"
    ),
    printcolumn(
        name = "Endpoint",
        type_ = "string",
        json_path = ".spec.controlPlaneEndpoint.host",
        description = "Where the API server is reached",
        priority = 1
    ),
    printcolumn(
        name = "Bastion IP",
        type_ = "string",
        json_path = ".status.bastion.floatingIP",
        description = "Address of the bastion"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "Time since creation"
    )
)]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "has(self.disableExternalNetwork) && self.disableExternalNetwork ? !has(self.bastion) || !has(self.bastion.floatingIP) : true",
        "message": "without an external network the bastion cannot have a floating IP",
    },
    {
        "rule": "has(self.disableExternalNetwork) && self.disableExternalNetwork ? has(self.disableAPIServerFloatingIP) && self.disableAPIServerFloatingIP : true",
        "message": "without an external network disableAPIServerFloatingIP must be true",
    },
]))]
pub struct OpenStackClusterSpec {
    /// Credentials for the cloud.
    pub identity_ref: IdentityReference,
    /// The subnet to create, with its network and router. Without it, existing ones are used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1), extend("x-kubernetes-list-type" = "atomic"))]
    pub managed_subnets: Vec<ManagedSubnet>,
    /// An existing router to use.
    pub router: Option<RouterParam>,
    /// An existing network to use.
    pub network: Option<NetworkParam>,
    /// Existing subnets to use, at most one of each address family; all subnets of the network when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2), extend("x-kubernetes-list-type" = "atomic"))]
    pub subnets: Vec<SubnetParam>,
    /// MTU of the created network.
    #[serde(rename = "networkMTU")]
    pub network_mtu: Option<i64>,
    /// Addresses of the created router in the external network.
    #[serde(rename = "externalRouterIPs", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub external_router_ips: Vec<ExternalRouterIp>,
    /// External network; the cloud's only external network when empty.
    pub external_network: Option<NetworkParam>,
    /// Uses no external network: no router gateway, no floating IPs.
    pub disable_external_network: Option<bool>,
    /// A load balancer for control plane machines. Not supported yet; hosted control planes need none.
    pub api_server_load_balancer: Option<ApiServerLoadBalancer>,
    /// Gives the API server no floating IP.
    #[serde(rename = "disableAPIServerFloatingIP")]
    pub disable_api_server_floating_ip: Option<bool>,
    /// An existing floating IP for the API server. Not supported yet: it has no effect, and a condition reports it.
    #[serde(rename = "apiServerFloatingIP")]
    pub api_server_floating_ip: Option<String>,
    /// Address of the API server in the cluster's network. Not supported yet: it has no effect, and a condition reports
    /// it.
    #[serde(rename = "apiServerFixedIP")]
    pub api_server_fixed_ip: Option<String>,
    /// Port of the API server. Not supported yet: it has no effect, and a condition reports it.
    #[schemars(range(min = 0, max = 65535))]
    pub api_server_port: Option<i64>,
    /// Creates security groups for the machines.
    pub managed_security_groups: Option<ManagedSecurityGroups>,
    /// Switches off anti-spoofing and security groups in the created network.
    pub disable_port_security: Option<bool>,
    /// Tags of all resources that are created for the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub tags: Vec<String>,
    /// Where the API server is reached. Hosted control planes write it; it cannot be changed once set.
    pub control_plane_endpoint: Option<Endpoint>,
    /// Zones that control plane machines may be in; all when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub control_plane_availability_zones: Vec<String>,
    /// Lets the cloud choose the zone of control plane machines.
    pub control_plane_omit_availability_zone: Option<bool>,
    /// A server with SSH access into the cluster's network. Not supported yet: it has no effect, and a condition
    /// reports it.
    pub bastion: Option<Bastion>,
}

/// Resources that were found and created for the cluster.
#[wire]
#[serde(default)]
pub struct OpenStackClusterStatus {
    /// Whether machines can be created.
    pub ready: bool,
    /// Milestones of the initialization; each stays true once it is reached.
    pub initialization: Option<Initialization>,
    /// The cluster's network.
    pub network: Option<NetworkStatusWithSubnets>,
    /// The external network.
    pub external_network: Option<NetworkStatus>,
    /// The cluster's router.
    pub router: Option<RouterStatus>,
    /// The API server's load balancer.
    pub api_server_load_balancer: Option<LoadBalancerStatus>,
    /// Availability zones, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub failure_domains: BTreeMap<String, FailureDomain>,
    /// Security group of control plane machines.
    pub control_plane_security_group: Option<SecurityGroupStatus>,
    /// Security group of worker machines.
    pub worker_security_group: Option<SecurityGroupStatus>,
    /// Security group of the bastion.
    pub bastion_security_group: Option<SecurityGroupStatus>,
    /// The bastion.
    pub bastion: Option<BastionStatus>,
    /// Not written by Hangar: errors are conditions, and no error is terminal.
    pub failure_reason: Option<String>,
    /// Not written by Hangar: errors are conditions, and no error is terminal.
    pub failure_message: Option<String>,
    /// Conditions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<LegacyCondition>,
}

/// Milestones of the initialization; each stays true once it is reached.
#[wire]
#[serde(default)]
pub struct Initialization {
    /// The infrastructure exists.
    pub provisioned: Option<bool>,
}

/// An availability zone.
#[wire]
#[serde(default)]
pub struct FailureDomain {
    /// Whether control plane machines may be in it.
    pub control_plane: Option<bool>,
    /// Further attributes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}
