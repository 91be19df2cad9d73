//! The add-ons of the management cluster, as plain objects. Pure: same options, same objects.
//!
//! * [`kube_proxy`] and [`core_dns`]: what every Kubernetes cluster has, rendered as for tenants,
//! * [`storage`]: the classes that our own [`crate::provisioner`] serves, and the rights it needs,
//! * [`load_balancer`]: kube-vip and its address allocation,
//! * [`gateway`]: Traefik as a Gateway API implementation, only when asked for.
//!
//! Invariants:
//! * The list is in apply order: what others refer to comes first, workloads after their accounts and settings.
//! * Nothing on the way up needs a Service: clients of the API server get its address in the environment,
//!   so that everything starts at once instead of after kube-proxy.
//! * Images are named as upstream names them and are never pulled: they are in the machine already.
//! * On one node every workload tolerates every taint: these are what makes it Ready. With several, a pod that can run
//!   elsewhere leaves a node that is lost, and what others depend on runs twice.

pub mod core_dns;
mod custom_resources;
pub mod gateway;
pub mod kube_proxy;
pub mod load_balancer;
mod pod;
pub mod storage;
#[cfg(test)]
mod tests;

use std::net::Ipv4Addr;

use hangar_parts::Set;
use hangar_parts::images::Upstream;
use hangar_plan::hosted_control_plane::addons::Endpoint;
use ipnet::Ipv4Net;
use serde_json::Value;

pub use custom_resources::{CustomResourcesError, gateway_api};
pub use gateway::GatewayOptions;

/// Where cluster-wide objects of ours live.
pub const NAMESPACE: &str = "kube-system";

/// What the objects depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddonOptions {
    /// Where every pod reaches the API server: the node's address, which its certificate must name.
    pub api_server: ApiServer,
    /// The range that pods take their addresses from.
    pub pod_range: Ipv4Net,
    /// The address of the cluster's DNS Service, inside the service range; kubelet's `clusterDNS`.
    pub dns_address: Ipv4Addr,
    /// Who is asked about names outside the cluster: [`crate::resolver`].
    pub resolver: Ipv4Addr,
    /// The addresses that Services of type LoadBalancer get.
    pub load_balancer: LoadBalancerOptions,
    pub images: Images,
    /// How many nodes there are.
    pub nodes: u8,
    /// The Gateway, if one is wanted. Its custom resources ([`gateway_api`]) are applied before the objects.
    pub gateway: Option<GatewayOptions>,
}

/// An API server's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiServer {
    pub host: Ipv4Addr,
    pub port: u16,
}

impl ApiServer {
    fn endpoint(self) -> Endpoint {
        Endpoint { host: self.host.to_string(), port: self.port.into() }
    }
}

/// The addresses of load balancers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadBalancerOptions {
    /// The machine's link that answers for them.
    pub link: String,
    pub first: Ipv4Addr,
    /// The highest. [`GatewayOptions::address`] lies outside of the two.
    pub last: Ipv4Addr,
}

/// The images, by what runs from them. Each image's entry point is the program of its name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say all")]
pub struct Images {
    pub kube_proxy: String,
    pub core_dns: String,
    pub kube_vip: String,
    pub kube_vip_cloud_provider: String,
    pub traefik: String,
}

impl Default for Images {
    /// Upstream's names, at the pinned versions.
    fn default() -> Self {
        Self {
            kube_proxy: Upstream::KubeProxy(Set::Kubernetes134).reference(),
            core_dns: Upstream::Coredns.reference(),
            kube_vip: Upstream::KubeVip.reference(),
            kube_vip_cloud_provider: Upstream::KubeVipCloudProvider.reference(),
            traefik: Upstream::Traefik.reference(),
        }
    }
}

/// Everything, in apply order.
pub fn objects(options: &AddonOptions) -> Vec<Value> {
    let mut objects = kube_proxy::objects(options);
    objects.extend(core_dns::objects(options));
    objects.extend(storage::objects(options));
    objects.extend(load_balancer::objects(options));
    if let Some(gateway) = &options.gateway {
        objects.extend(gateway::objects(options, gateway));
    }
    objects
}

/// The objects as one YAML text of several documents.
pub fn to_yaml(objects: &[Value]) -> Result<String, serde_saphyr::ser::Error> {
    let mut text = String::new();
    for object in objects {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(object)?);
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    Ok(text)
}
