//! Plans what a node needs to join: three documents that kubeadm reads, and the endpoints of the `kubernetes` Service.

use std::net::IpAddr;

use base64::Engine as _;
use hangar_api::contract::Endpoint;
use k8s_openapi::api::core::v1::{ConfigMap, EndpointAddress, EndpointPort, EndpointSubset, Endpoints};
use k8s_openapi::api::discovery::v1::{self as slices, EndpointConditions, EndpointSlice};
use kube::core::DynamicObject;
use serde_json::json;

use super::api_server::joined;
use super::epoch::Epoch;
use super::exposure::Reach;
use super::object::{document, tenant};
use super::tenant_pod::config_map;
use super::validate::Validated;
use super::version::KubernetesVersion;
use crate::flow::dynamic;

const NAMESPACE: &str = "kube-system";

/// Where nodes find the API server and whom they trust. The signatures beside it are the controller manager's.
pub(super) fn cluster_info(Epoch::One: Epoch, endpoint: &Endpoint, authority: &str) -> ConfigMap {
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
    config_map("kube-public", "cluster-info", [("kubeconfig", document(&kubeconfig))])
}

/// The cluster as kubeadm sees it. Paths are the workers': kubelet's settings take the authority from there.
pub(super) fn kubeadm_config(
    validated: &Validated<'_>,
    version: &KubernetesVersion,
    endpoint: &Endpoint,
) -> ConfigMap {
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
        "imageRepository": super::pod::registry(validated.settings),
        "kubernetesVersion": version.tag(),
        "networking": {
            "dnsDomain": validated.domain,
            "podSubnet": joined(&validated.pod_ranges),
            "serviceSubnet": joined(&validated.service_ranges),
        },
        "proxy": {},
        "scheduler": {},
    });
    config_map(NAMESPACE, "kubeadm-config", [("ClusterConfiguration", document(&configuration))])
}

/// What every kubelet begins with. Only what must be set: a field that an older kubelet does not know keeps it from
/// joining, so defaults stay the kubelet's own.
pub(super) fn kubelet_config(validated: &Validated<'_>) -> ConfigMap {
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
        "clusterDNS": validated.dns_addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "clusterDomain": validated.domain,
        // Known since 1.31. Nodes on the older hierarchy still work; from 1.35 on they would refuse to start.
        "failCgroupV1": false,
        "rotateCertificates": true,
        "staticPodPath": "/etc/kubernetes/manifests",
    });
    config_map(NAMESPACE, "kubelet-config", [("kubelet", document(&configuration))])
}

/// What stands behind the `kubernetes` Service. Written by us, so that it is never empty while an API server stops.
pub(super) fn kubernetes_endpoints(Epoch::One: Epoch, reach: &Reach) -> Vec<DynamicObject> {
    let mut objects = Vec::new();
    for (family, name, is_first) in [("IPv4", "kubernetes", true), ("IPv6", "kubernetes-ipv6", false)] {
        let targets = reach.targets.iter().filter(|address| address.is_ipv4() == is_first);
        let endpoints: Vec<_> = targets.map(|address| ready(*address)).collect();
        if !endpoints.is_empty() {
            objects.push(dynamic(&slice(family, name, endpoints, reach.target_port)));
        }
    }
    if !reach.targets.is_empty() {
        objects.push(dynamic(&legacy_endpoints(reach)));
    }
    objects
}

fn ready(address: IpAddr) -> slices::Endpoint {
    slices::Endpoint {
        addresses: vec![address.to_string()],
        conditions: Some(EndpointConditions { ready: Some(true), ..EndpointConditions::default() }),
        ..slices::Endpoint::default()
    }
}

fn slice(family: &str, name: &str, endpoints: Vec<slices::Endpoint>, port: i32) -> EndpointSlice {
    let labels =
        [("kubernetes.io/service-name", "kubernetes"), ("endpointslice.kubernetes.io/managed-by", "hangar")];
    EndpointSlice {
        metadata: tenant(Some("default"), name, labels),
        address_type: family.to_owned(),
        endpoints,
        ports: Some(vec![slices::EndpointPort {
            name: Some("https".to_owned()),
            port: Some(port),
            protocol: Some("TCP".to_owned()),
            app_protocol: None,
        }]),
    }
}

/// The same for readers that know no slices.
fn legacy_endpoints(reach: &Reach) -> Endpoints {
    let address =
        |address: &IpAddr| EndpointAddress { ip: address.to_string(), ..EndpointAddress::default() };
    Endpoints {
        // Else they would be mirrored into a slice beside ours.
        metadata: tenant(
            Some("default"),
            "kubernetes",
            [("endpointslice.kubernetes.io/skip-mirror", "true")],
        ),
        subsets: Some(vec![EndpointSubset {
            addresses: Some(reach.targets.iter().map(address).collect()),
            ports: Some(vec![EndpointPort {
                name: Some("https".to_owned()),
                port: reach.target_port,
                protocol: Some("TCP".to_owned()),
                app_protocol: None,
            }]),
            not_ready_addresses: None,
        }]),
    }
}
