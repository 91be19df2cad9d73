//! The components that run as Deployments.

use std::collections::BTreeMap;

use hangar_wire::wire;

use super::{Audit, Container, Mount, Pod, ScalablePod};

/// The components in the management cluster.
#[wire]
#[serde(default)]
pub struct Deployment {
    /// The API server.
    pub api_server: Option<ApiServerPod>,
    /// The controller manager; one pod by default.
    pub controller_manager: Option<ScalablePod>,
    /// The scheduler; one pod by default.
    pub scheduler: Option<ScalablePod>,
}

/// What can be set on the API server's pods. Their number is the replicas of the control plane.
#[wire]
#[serde(default)]
pub struct ApiServerPod {
    /// The pod.
    #[serde(flatten)]
    pub pod: Pod,
    /// Files from ConfigMaps and Secrets, by a name for each; read-only. When their content changes, the API servers are
    /// replaced one after the other.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32, "x-kubernetes-validations" = [{
        "rule": "self.all(name, name.matches('^[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?$'))",
        "message": "names become volume names: lower case letters, digits and dashes, 52 at most",
    }]))]
    pub mounts: BTreeMap<String, Mount>,
    /// The server of the tunnel (konnectivity), in the API server's pod.
    pub konnectivity: Option<Container>,
    /// Audit: which requests are recorded, and where the records go.
    pub audit: Option<Audit>,
}

/// kube-proxy on the cluster's nodes.
#[wire]
#[serde(default)]
pub struct KubeProxy {
    /// The pod.
    #[serde(flatten)]
    pub pod: Pod,
    /// Leaves kube-proxy out, for network plugins that do its work.
    pub disabled: Option<bool>,
}

/// The cluster's name server.
#[wire]
#[serde(default)]
pub struct CoreDns {
    /// The pods.
    #[serde(flatten)]
    pub pod: ScalablePod,
    /// Leaves CoreDNS out, for clusters that bring their own name server. Nodes send their pods' questions to the
    /// address that CoreDNS would have: the tenth of the Services' range.
    pub disabled: Option<bool>,
}
