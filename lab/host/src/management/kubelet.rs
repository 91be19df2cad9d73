//! The configuration files of kubelet and of the container runtime's network.
//!
//! Values that differ from the defaults have a reason: the host's disk may look full to thresholds in percent, images
//! cannot be pulled again, and static pods should start at once rather than after twenty seconds.

use ipnet::Ipv4Net;
use serde_json::{Value, json};

use crate::addons::core_dns::CLUSTER_DOMAIN;
use crate::addresses::{DNS_SERVICE, POD_RANGE};

/// Where kubelet reads its configuration; it starts once this is there.
pub const CONFIGURATION_PATH: &str = "/var/lib/kubelet/config.yaml";
/// Where containerd finds the pods' network.
pub const NETWORK_PATH: &str = "/etc/cni/net.d/10-hangar.conflist";
/// Where the rules of [`masquerade`] lie.
pub const MASQUERADE_PATH: &str = "/etc/hangar/pods.nft";
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

/// The pods' network: a bridge in the machine. Pods of other nodes are reached by routes of the machine and see the pod's
/// own address; [`masquerade`] is for the rest.
pub fn network(range: Ipv4Net) -> Value {
    json!({
        "cniVersion": "1.0.0",
        "name": "hangar",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": true,
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

/// Rules for `nft`: what pods of this node send to anybody but pods comes from the node, which others can answer.
pub fn masquerade(range: Ipv4Net) -> String {
    // Named first, so that deleting it succeeds also where it was never made.
    format!(
        "\
table ip hangar-pods
delete table ip hangar-pods
table ip hangar-pods {{
    chain postrouting {{
        type nat hook postrouting priority srcnat; policy accept;
        ip saddr {range} ip daddr != {POD_RANGE} masquerade
    }}
}}
"
    )
}
