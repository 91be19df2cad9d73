//! What a control plane and a template of control planes have in common: everything but version and replicas.

use std::collections::BTreeMap;

use hangar_wire::wire;
use serde_json::{Value, json};

use super::{
    Certificates, CoreDns, Deployment, Etcd, Exposure, GatewayReference, KubeProxy, Monitoring, OidcProvider,
    Placement, ScalablePod,
};
use crate::contract::endpoint::Endpoint;

/// Settings of a hosted control plane.
#[wire]
#[serde(default)]
pub struct HostedControlPlaneSettings {
    /// The components in the management cluster.
    pub deployment: Option<Deployment>,
    /// Where their pods run in the management cluster.
    pub placement: Option<Placement>,
    /// Registry of all images, or a path in it, such as `registry.example.org/mirror`, instead of `registry.k8s.io`. Below
    /// it images have the same paths. `image.registry` of a component takes precedence.
    #[schemars(length(max = 200), extend("pattern" = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?(/[a-z0-9][a-z0-9._-]*)*$"))]
    pub image_registry: Option<String>,
    /// Secrets of the control plane's namespace with which nodes of the management cluster pull its images. They are not
    /// copied into the tenant: nodes there need access to their images by other means.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub image_pull_secrets: Vec<PullSecret>,
    /// The Gateway through which users, nodes and agents reach the API server. It may be in any namespace, if its listener
    /// admits this one.
    pub gateway: Option<GatewayReference>,
    /// How the API server is reached.
    pub exposure: Option<Exposure>,
    /// Host and port at which users reach the API server. Hangar fills it in once it is known, unless it is given.
    pub control_plane_endpoint: Option<Endpoint>,
    /// Further names and addresses in the API server's certificate.
    #[serde(rename = "certSANs", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)), extend("x-kubernetes-list-type" = "set"))]
    pub cert_sans: Vec<String>,
    /// The agents of the tunnel (konnectivity) on the cluster's nodes; two by default, but no more than there are
    /// nodes.
    pub konnectivity_client: Option<ScalablePod>,
    /// kube-proxy on the cluster's nodes.
    pub kube_proxy: Option<KubeProxy>,
    /// The cluster's name server; two pods by default, but no more than there are nodes.
    pub coredns: Option<CoreDns>,
    /// The control plane's etcd.
    pub etcd: Option<Etcd>,
    /// Identity providers whose tokens the API server accepts, by issuer URL. The cluster's own issuer
    /// (`https://kubernetes.default.svc.` and the Cluster's service domain) is refused. A change restarts nothing, except
    /// for the first provider and the last.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64, "x-kubernetes-validations" = issuer_rules()))]
    pub oidc_providers: BTreeMap<String, OidcProvider>,
    /// Lifetimes of certificates.
    pub certificates: Option<Certificates>,
    /// What is made for those who collect metrics.
    pub monitoring: Option<Monitoring>,
}

/// A Secret of type `kubernetes.io/dockerconfigjson` in the same namespace.
#[wire]
pub struct PullSecret {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

fn issuer_rules() -> Value {
    json!([
        {
            "rule": "self.all(issuer, issuer.startsWith('https://') && isURL(issuer))",
            "message": "issuers are https URLs",
        },
    ])
}

/// Rules over several settings, for the specs these are flattened into.
pub(super) fn rules() -> Value {
    json!([
        {
            "rule": "!has(self.exposure) || !has(self.exposure.type) || self.exposure.type != 'Gateway' || has(self.gateway)",
            "message": "exposure.type Gateway needs a gateway",
        },
        {
            "rule": "!has(self.gateway) || !has(self.exposure) || !has(self.exposure.type) || self.exposure.type == 'Gateway'",
            "message": "a gateway is only for exposure.type Gateway",
        },
        {
            "rule": "!has(oldSelf.controlPlaneEndpoint) || !has(oldSelf.controlPlaneEndpoint.host) || oldSelf.controlPlaneEndpoint.host == '' || (has(self.exposure) && has(self.exposure.nodeHost) ? self.exposure.nodeHost : '') == (has(oldSelf.exposure) && has(oldSelf.exposure.nodeHost) ? oldSelf.exposure.nodeHost : '')",
            "message": "exposure.nodeHost cannot change once the control plane has an endpoint: nodes keep it",
        },
    ])
}
