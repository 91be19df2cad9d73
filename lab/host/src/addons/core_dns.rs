//! CoreDNS, as tenants have it. It sends other names to the environment's own resolver, which knows the wildcard name
//! of the Gateway and asks the host's resolvers for the rest.

use hangar_plan::hosted_control_plane::addons::CoreDns;
use hangar_plan::pieces::plain_container;
use serde_json::Value;

use super::{AddonOptions, pod};

/// The domain of the cluster's own names; kubelet's `clusterDomain`.
pub const CLUSTER_DOMAIN: &str = "cluster.local";

pub(super) fn objects(options: &AddonOptions) -> Vec<Value> {
    let core_dns = CoreDns {
        domain: CLUSTER_DOMAIN,
        upstream: &options.resolver.to_string(),
        // Control planes ask for their etcd before it has a name, and must not be told so for long.
        ttl_seconds: 5,
        addresses: vec![options.dns_address.into()],
        api_server: &options.api_server.endpoint(),
        replicas: pod::replicas(options),
        priority_class: "system-cluster-critical",
        tolerations: pod::tolerations(options),
        container: plain_container("coredns", &options.images.core_dns, ("10m", "64Mi")),
        flags: Vec::new(),
    };
    pod::values(&core_dns.objects())
}
