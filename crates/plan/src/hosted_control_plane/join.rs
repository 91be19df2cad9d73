//! What a node needs to join: three documents that kubeadm reads, and the endpoints of the `kubernetes` Service.

use base64::Engine as _;
use hangar_api::contract::Endpoint;
use kube::core::DynamicObject;
use serde_json::json;

use super::api_server::joined;
use super::epoch::Epoch;
use super::exposure::Reach;
use super::object::{document, tenant};
use super::tenant_pod::config_map;
use super::validate::Validated;
use super::version::KubernetesVersion;

const NAMESPACE: &str = "kube-system";

/// Where nodes find the API server and whom they trust. The signatures beside it are the controller manager's.
pub(super) fn cluster_info(Epoch::One: Epoch, endpoint: &Endpoint, authority: &str) -> DynamicObject {
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "",
            "cluster": {
                "server": format!("https://{endpoint}"),
                "certificate-authority-data": base64::engine::general_purpose::STANDARD.encode(authority),
            },
        }],
        "contexts": null,
        "current-context": "",
        "preferences": {},
        "users": null,
    });
    config_map("kube-public", "cluster-info", &[("kubeconfig", document(&kubeconfig))])
}

/// The cluster as kubeadm sees it. Paths are the workers': kubelet's settings take the authority from there.
pub(super) fn kubeadm_config(
    validated: &Validated<'_>,
    version: &KubernetesVersion,
    endpoint: &Endpoint,
) -> DynamicObject {
    let configuration = json!({
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "ClusterConfiguration",
        "apiServer": {},
        "certificatesDir": "/etc/kubernetes/pki",
        "clusterName": validated.names.cluster(),
        "controlPlaneEndpoint": endpoint.to_string(),
        "controllerManager": {},
        "dns": {},
        "encryptionAlgorithm": "ECDSA-P256",
        "etcd": {"local": {"dataDir": "/var/lib/etcd"}},
        "imageRepository": super::pod::REGISTRY,
        "kubernetesVersion": version.tag(),
        "networking": {
            "dnsDomain": validated.domain,
            "podSubnet": joined(&validated.pod_ranges),
            "serviceSubnet": joined(&validated.service_ranges),
        },
        "proxy": {},
        "scheduler": {},
    });
    config_map(NAMESPACE, "kubeadm-config", &[("ClusterConfiguration", document(&configuration))])
}

/// What every kubelet begins with. Only what must be set: a field that an older kubelet does not know keeps it from
/// joining, so defaults stay the kubelet's own.
pub(super) fn kubelet_config(validated: &Validated<'_>) -> DynamicObject {
    let configuration = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": "/etc/kubernetes/pki/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "systemd",
        "clusterDNS": [validated.dns_address.to_string()],
        "clusterDomain": validated.domain,
        // Known since 1.31. Nodes on the older hierarchy still work; from 1.35 on they would refuse to start.
        "failCgroupV1": false,
        "rotateCertificates": true,
        "staticPodPath": "/etc/kubernetes/manifests",
    });
    config_map(NAMESPACE, "kubelet-config", &[("kubelet", document(&configuration))])
}

/// What stands behind the `kubernetes` Service. Written by us, so that it is never empty while an API server stops.
pub(super) fn kubernetes_endpoints(Epoch::One: Epoch, reach: &Reach) -> Vec<DynamicObject> {
    let ports = json!([{"name": "https", "port": reach.target_port, "protocol": "TCP"}]);
    let mut objects = Vec::new();
    for (family, name, is_first) in [("IPv4", "kubernetes", true), ("IPv6", "kubernetes-ipv6", false)] {
        let addresses: Vec<String> = reach
            .targets
            .iter()
            .filter(|address| address.is_ipv4() == is_first)
            .map(ToString::to_string)
            .collect();
        if addresses.is_empty() {
            continue;
        }
        let endpoints: Vec<_> = addresses
            .iter()
            .map(|address| json!({"addresses": [address], "conditions": {"ready": true}}))
            .collect();
        let labels = [
            ("kubernetes.io/service-name", "kubernetes"),
            ("endpointslice.kubernetes.io/managed-by", "hangar"),
        ];
        let content = json!({"addressType": family, "endpoints": endpoints, "ports": ports});
        objects.push(tenant(
            ("discovery.k8s.io/v1", "EndpointSlice"),
            Some("default"),
            name,
            &labels,
            content,
        ));
    }
    let addresses: Vec<_> = reach.targets.iter().map(|address| json!({"ip": address.to_string()})).collect();
    if !addresses.is_empty() {
        let content = json!({"subsets": [{"addresses": addresses, "ports": ports}]});
        // Else they would be mirrored into a slice beside ours.
        let labels = [("endpointslice.kubernetes.io/skip-mirror", "true")];
        objects.push(tenant(("v1", "Endpoints"), Some("default"), "kubernetes", &labels, content));
    }
    objects
}
