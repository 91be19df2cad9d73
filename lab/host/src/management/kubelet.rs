//! The configuration files of kubelet and of the container runtime's network.
//!
//! Values that differ from the defaults have a reason: the host's disk may look full to thresholds in percent, images
//! cannot be pulled again, and static pods should start at once rather than after twenty seconds.

use ipnet::Ipv4Net;
use serde_json::{Value, json};

use crate::addons::core_dns::CLUSTER_DOMAIN;
use crate::addresses::DNS_SERVICE;

/// Where kubelet reads its configuration; it starts once this is there.
pub const CONFIGURATION_PATH: &str = "/var/lib/kubelet/config.yaml";
/// Where containerd finds the pods' network.
pub const NETWORK_PATH: &str = "/etc/cni/net.d/10-hangar.conflist";
/// Where containerd listens.
pub const RUNTIME_SOCKET: &str = "/run/containerd/containerd.sock";

pub fn configuration() -> Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true, "cacheTTL": "1s"},
            "x509": {"clientCAFile": "/etc/kubernetes/pki/ca.crt"},
        },
        "authorization": {
            "mode": "Webhook",
            // A refusal given before the first role bindings exist would be remembered for half a minute.
            "webhook": {"cacheAuthorizedTTL": "5m", "cacheUnauthorizedTTL": "1s"},
        },
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": false,
        "clusterDNS": [DNS_SERVICE.to_string()],
        "clusterDomain": CLUSTER_DOMAIN,
        "containerRuntimeEndpoint": format!("unix://{RUNTIME_SOCKET}"),
        "staticPodPath": "/etc/kubernetes/manifests",
        "fileCheckFrequency": "1s",
        // What failed for a static pod's record in the API is tried again only then.
        "syncFrequency": "10s",
        "resolvConf": "/etc/resolv.conf",
        "rotateCertificates": false,
        "failSwapOn": false,
        "maxPods": 250,
        "evictionHard": {
            "memory.available": "0%",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
            "imagefs.available": "0%",
            "imagefs.inodesFree": "0%",
        },
        "imageGCHighThresholdPercent": 100,
        "imageMinimumGCAge": "8760h",
        "eventRecordQPS": 0,
    })
}

/// The pods' network: a bridge in the machine.
pub fn network(range: Ipv4Net) -> Value {
    json!({
        "cniVersion": "1.0.0",
        "name": "hangar",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": true,
                "ipMasq": true,
                "hairpinMode": true,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": range.to_string()}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    })
}
