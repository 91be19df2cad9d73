//! CoreDNS: names of Services and pods. Everything else goes to the environment's own resolver, which knows the
//! wildcard name of the Gateway and, through the host's resolvers, the world.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::{AddonOptions, NAMESPACE, pod};

const NAME: &str = "coredns";

/// The Service's name, which other add-ons expect.
const SERVICE: &str = "kube-dns";

/// The label that selects the pods, which other add-ons expect as well.
const LABEL: &str = "k8s-app";

/// The domain of the cluster's own names; kubelet's `clusterDomain`.
pub const CLUSTER_DOMAIN: &str = "cluster.local";

pub(super) fn objects(options: &AddonOptions) -> Vec<Value> {
    vec![
        pod::service_account(NAMESPACE, NAME),
        pod::cluster_role(
            "hangar:coredns",
            &json!([
                {"apiGroups": [""], "resources": ["namespaces", "pods", "services"], "verbs": ["list", "watch"]},
                {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
            ]),
        ),
        pod::account_binding("hangar:coredns", "hangar:coredns", NAMESPACE, NAME),
        pod::config_map(NAME, &json!({"Corefile": corefile(options.resolver)})),
        service(options),
        deployment(options),
    ]
}

/// Its configuration. A changed one is noticed: no need to roll pods.
fn corefile(resolver: Ipv4Addr) -> String {
    format!(
        ".:53 {{
    errors
    health {{
        lameduck 5s
    }}
    ready
    kubernetes {CLUSTER_DOMAIN} in-addr.arpa ip6.arpa {{
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 5
    }}
    prometheus :9153
    forward . {resolver} {{
        max_concurrent 1000
    }}
    cache 30
    reload 10s 5s
    loadbalance
}}
"
    )
}

fn service(options: &AddonOptions) -> Value {
    let port = |name: &str, port: u16, protocol: &str| json!({"name": name, "port": port, "targetPort": port, "protocol": protocol});
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": NAMESPACE, "labels": {LABEL: SERVICE}},
        "spec": {
            "clusterIP": options.dns_address.to_string(),
            "selector": {LABEL: SERVICE},
            "ports": [port("dns", 53, "UDP"), port("dns-tcp", 53, "TCP"), port("metrics", 9153, "TCP")],
        },
    })
}

fn deployment(options: &AddonOptions) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {LABEL: SERVICE}},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {LABEL: SERVICE}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {
                "metadata": {"labels": {LABEL: SERVICE}},
                "spec": {
                    "dnsPolicy": "Default",
                    "priorityClassName": "system-cluster-critical",
                    "serviceAccountName": NAME,
                    "tolerations": pod::tolerations(),
                    "containers": [{
                        "name": NAME,
                        "image": options.images.core_dns,
                        "imagePullPolicy": "IfNotPresent",
                        "args": ["-conf", "/etc/coredns/Corefile"],
                        "env": pod::api_server_environment(options),
                        "ports": [
                            {"name": "dns", "containerPort": 53, "protocol": "UDP"},
                            {"name": "dns-tcp", "containerPort": 53, "protocol": "TCP"},
                            {"name": "metrics", "containerPort": 9153, "protocol": "TCP"},
                        ],
                        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}},
                        "readinessProbe": pod::probe("/ready", 8181),
                        "livenessProbe": pod::liveness_probe("/health", 8080),
                        "securityContext": pod::restricted(&["NET_BIND_SERVICE"]),
                        "volumeMounts": [{"name": "settings", "mountPath": "/etc/coredns", "readOnly": true}],
                    }],
                    "volumes": [{
                        "name": "settings",
                        "configMap": {"name": NAME, "items": [{"key": "Corefile", "path": "Corefile"}]},
                    }],
                },
            },
        },
    })
}
