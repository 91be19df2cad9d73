//! The load balancer in front of control plane machines. Hosted control planes do not need one.

use hangar_wire::wire;

use super::{NetworkParam, NetworkStatusWithSubnets, SubnetParam};

/// A load balancer for the API server.
#[wire(without_default)]
#[serde(default)]
pub struct ApiServerLoadBalancer {
    /// Whether the load balancer is created.
    pub enabled: bool,
    /// Further TCP ports that it passes on to the control plane machines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub additional_ports: Vec<i64>,
    /// Address ranges that may use it; all when empty. May be changed later.
    #[serde(rename = "allowedCIDRs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub allowed_cidrs: Vec<String>,
    /// Octavia provider; the cloud's default when empty.
    pub provider: Option<String>,
    /// Network of its virtual address.
    pub network: Option<NetworkParam>,
    /// Subnets of its virtual address.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub subnets: Vec<SubnetParam>,
    /// Its availability zone.
    pub availability_zone: Option<String>,
    /// Name of its flavor.
    pub flavor: Option<String>,
    /// Health checks of the members. May be changed later.
    pub monitor: Option<LoadBalancerMonitor>,
}

impl Default for ApiServerLoadBalancer {
    /// Enabled: an object without the field wants a load balancer.
    fn default() -> Self {
        Self {
            enabled: true,
            additional_ports: Vec::new(),
            allowed_cidrs: Vec::new(),
            provider: None,
            network: None,
            subnets: Vec::new(),
            availability_zone: None,
            flavor: None,
            monitor: None,
        }
    }
}

/// How a load balancer checks its members. Absent or zero values mean the defaults.
#[wire]
#[serde(default)]
pub struct LoadBalancerMonitor {
    /// Seconds between checks; 10 by default.
    #[schemars(range(min = 0))]
    pub delay: Option<i64>,
    /// Seconds until a check counts as failed; 5 by default.
    #[schemars(range(min = 0))]
    pub timeout: Option<i64>,
    /// Successful checks until a member is online; 5 by default.
    #[schemars(range(min = 0, max = 10))]
    pub max_retries: Option<i64>,
    /// Failed checks until a member is in error; 3 by default.
    #[schemars(range(min = 1, max = 10))]
    pub max_retries_down: Option<i64>,
}

/// A load balancer that was created.
#[wire]
pub struct LoadBalancerStatus {
    /// UUID of the load balancer.
    pub id: String,
    /// Name of the load balancer.
    pub name: String,
    /// The address that clients use.
    pub ip: String,
    /// Its address in the cluster's network.
    #[serde(rename = "internalIP")]
    pub internal_ip: String,
    /// Its tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Address ranges that may use it.
    #[serde(rename = "allowedCIDRs", default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_cidrs: Vec<String>,
    /// Network of its virtual address.
    pub load_balancer_network: Option<NetworkStatusWithSubnets>,
}
