//! How the API server is reached from outside the management cluster.

use std::collections::BTreeMap;

use hangar_wire::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the API server is reached.
#[wire]
#[serde(default)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.nodePort) || (has(self.type) && self.type == 'NodePort')",
    "message": "nodePort is only for type NodePort",
}, {
    "rule": "!has(self.loadBalancer) || !has(self.type) || self.type in ['LoadBalancer', 'Gateway']",
    "message": "loadBalancer is only for types LoadBalancer and Gateway",
}]))]
pub struct Exposure {
    /// How the API server is reached. When empty, it is `Gateway` if `gateway` is given, else `LoadBalancer`. It cannot
    /// change once the control plane has an endpoint, unless the endpoint's host is a name that you gave: nodes and
    /// kubeconfigs keep the endpoint.
    #[serde(rename = "type")]
    pub type_: Option<ExposureType>,
    /// Name or address at which nodes reach the API server; the endpoint's host when empty. It must lead to the same
    /// API servers, at the endpoint's port. It cannot be changed once the control plane has an endpoint, because nodes
    /// keep using it.
    #[schemars(length(min = 1, max = 253))]
    pub node_host: Option<String>,
    /// Settings of the Services, for the types `LoadBalancer` and `Gateway`. With `Gateway` the cluster's own pods
    /// connect through them.
    pub load_balancer: Option<LoadBalancerExposure>,
    /// Settings of the node port, for the type `NodePort`.
    pub node_port: Option<NodePortExposure>,
}

/// Ways to reach the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ExposureType {
    /// TLS routes at a shared Gateway.
    Gateway,
    /// A Service with a load balancer of its own.
    LoadBalancer,
    /// A port on every node of the management cluster.
    NodePort,
    /// A Service that only the management cluster's own network reaches.
    ClusterIP,
}

/// Settings of a Service with a load balancer.
#[wire]
#[serde(default)]
pub struct LoadBalancerExposure {
    /// Load balancer class; the cluster's default when empty.
    pub class: Option<String>,
    /// Annotations of both Services, the API server's and the tunnel's. Each Service gets an address of its own, unless
    /// the load balancer class can share one and these annotations ask for that.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Address ranges that may connect; all when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "set"))]
    pub source_ranges: Vec<String>,
}

/// Settings of a node port.
#[wire]
#[serde(default)]
pub struct NodePortExposure {
    /// The port; the cluster chooses when empty.
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// Addresses of the management cluster's nodes, or names that lead there. The first becomes the endpoint's host.
    /// When empty, they are the addresses of the Nodes that are ready: the external ones if each Node has one, else the
    /// internal ones. A manager that looks after some namespaces only cannot read Nodes and needs them here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "set"))]
    pub addresses: Vec<String>,
}
