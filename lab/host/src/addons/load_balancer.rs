//! Services of type LoadBalancer: kube-vip answers for their addresses on the private network, and its cloud
//! provider hands the addresses out. The host and every machine on that network reach them.

use hangar_plan::hosted_control_plane::addons::{config_map, restricted};
use serde_json::{Value, json};

use super::{AddonOptions, NAMESPACE, pod};

const NAME: &str = "kube-vip";
const ALLOCATOR: &str = "kube-vip-cloud-provider";

/// The settings' name, which the cloud provider expects.
const SETTINGS: &str = "kubevip";

/// A chosen address: both programs honour it.
pub(super) const ADDRESS_ANNOTATION: &str = "kube-vip.io/loadbalancerIPs";

pub(super) fn objects(options: &AddonOptions) -> Vec<Value> {
    let range = format!("{}-{}", options.load_balancer.first, options.load_balancer.last);
    let mut objects = pod::identity(NAMESPACE, NAME, "hangar:kube-vip", &speaker_rules());
    objects.push(speaker(options));
    let role = "hangar:kube-vip-cloud-provider";
    objects.extend(pod::identity(NAMESPACE, ALLOCATOR, role, &allocator_rules()));
    objects.extend(pod::values(vec![config_map(NAMESPACE, SETTINGS, &[("range-global", range)])]));
    objects.push(allocator(options));
    objects
}

fn speaker_rules() -> Value {
    json!([
        {"apiGroups": [""], "resources": ["services", "endpoints", "nodes"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["services/status"], "verbs": ["update"]},
        // It notes on the Service which node answers for it.
        {"apiGroups": [""], "resources": ["services"], "verbs": ["update"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["get", "list", "watch"]},
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "verbs": ["get", "list", "watch", "create", "update"],
        },
    ])
}

fn allocator_rules() -> Value {
    json!([
        {"apiGroups": [""], "resources": ["services"], "verbs": ["get", "list", "watch", "update", "patch"]},
        {"apiGroups": [""], "resources": ["services/status"], "verbs": ["update", "patch"]},
        {"apiGroups": [""], "resources": ["nodes", "namespaces", "configmaps"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch", "update"]},
    ])
}

/// Answers for the addresses (ARP) and writes them into the Services' status. Its address goes on the link as a
/// single one, so no route of the machine changes.
fn speaker(options: &AddonOptions) -> Value {
    let mut environment = pod::api_server_environment(options);
    let node = json!({"name": "vip_nodename", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}});
    if let Some(variables) = environment.as_array_mut() {
        variables.push(node);
    }
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {pod::NAME_LABEL: NAME}},
        "spec": {
            "selector": {"matchLabels": {pod::NAME_LABEL: NAME}},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {
                "metadata": {"labels": {pod::NAME_LABEL: NAME}},
                "spec": {
                    "hostNetwork": true,
                    "dnsPolicy": "Default",
                    "priorityClassName": "system-node-critical",
                    "serviceAccountName": NAME,
                    "tolerations": pod::tolerations(),
                    "containers": [{
                        "name": NAME,
                        "image": options.images.kube_vip,
                        "imagePullPolicy": "IfNotPresent",
                        "args": [
                            "manager",
                            "--arp",
                            "--services",
                            format!("--interface={}", options.load_balancer.link),
                            format!("--serviceInterface={}", options.load_balancer.link),
                            "--prometheusHTTPServer=127.0.0.1:2112",
                        ],
                        "env": environment,
                        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
                        "securityContext": restricted(&["NET_ADMIN", "NET_RAW"]),
                    }],
                },
            },
        },
    })
}

/// Chooses the addresses. One at a time and without an election: after a crash the next one works at once.
fn allocator(options: &AddonOptions) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": ALLOCATOR, "namespace": NAMESPACE, "labels": {pod::NAME_LABEL: ALLOCATOR}},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {pod::NAME_LABEL: ALLOCATOR}},
            "strategy": {"type": "Recreate"},
            "template": {
                "metadata": {"labels": {pod::NAME_LABEL: ALLOCATOR}},
                "spec": {
                    "dnsPolicy": "Default",
                    "priorityClassName": "system-cluster-critical",
                    "serviceAccountName": ALLOCATOR,
                    "tolerations": pod::tolerations(),
                    "containers": [{
                        "name": ALLOCATOR,
                        "image": options.images.kube_vip_cloud_provider,
                        "imagePullPolicy": "IfNotPresent",
                        "args": ["--leader-elect=false", "--secure-port=0", "--webhook-secure-port=0"],
                        "env": pod::api_server_environment(options),
                        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
                        "securityContext": restricted(&[]),
                    }],
                },
            },
        },
    })
}
