//! CoreDNS: names of the tenant's Services and pods; everything else goes where its node asks.

use hangar_api::contract::Endpoint;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::object::tenant;
use super::pod::{container, mount, probe, restricted};
use super::rights::{account, cluster_role, cluster_role_binding, subject_account};
use super::tenant_pod::{api_server_environment, config_map, pods_wanted, tolerations};
use super::validate::Validated;
use super::version::KubernetesVersion;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "coredns";
const ROLE: &str = "system:coredns";
/// The Service's name and the pods' label value, which other add-ons expect.
const SERVICE: &str = "kube-dns";
const LABEL: &str = "k8s-app";

pub(super) fn objects(
    validated: &Validated<'_>,
    version: &KubernetesVersion,
    endpoint: &Endpoint,
    nodes: u32,
) -> Vec<DynamicObject> {
    let rules = json!([
        {"apiGroups": [""], "resources": ["namespaces", "pods", "services"], "verbs": ["list", "watch"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
    ]);
    vec![
        account(NAMESPACE, NAME),
        cluster_role(ROLE, &rules),
        cluster_role_binding(ROLE, ROLE, &[subject_account(NAMESPACE, NAME)]),
        config_map(NAMESPACE, NAME, &[("Corefile", corefile(&validated.domain))]),
        service(validated),
        deployment(validated, version, endpoint, nodes),
    ]
}

/// Its configuration. A changed one is noticed: no need to roll pods.
fn corefile(domain: &str) -> String {
    format!(
        ".:53 {{
    errors
    health {{
        lameduck 5s
    }}
    ready
    kubernetes {domain} in-addr.arpa ip6.arpa {{
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }}
    prometheus :9153
    forward . /etc/resolv.conf {{
        max_concurrent 1000
    }}
    cache 30
    loop
    reload
    loadbalance
}}
"
    )
}

fn service(validated: &Validated<'_>) -> DynamicObject {
    let port = |name: &str, port: u16, protocol: &str| json!({"name": name, "port": port, "targetPort": port, "protocol": protocol});
    let spec = json!({
        "clusterIP": validated.dns_address.to_string(),
        "selector": {LABEL: SERVICE},
        "ports": [port("dns", 53, "UDP"), port("dns-tcp", 53, "TCP"), port("metrics", 9153, "TCP")],
    });
    let labels =
        [(LABEL, SERVICE), ("kubernetes.io/cluster-service", "true"), ("kubernetes.io/name", "CoreDNS")];
    tenant(("v1", "Service"), Some(NAMESPACE), SERVICE, &labels, json!({"spec": spec}))
}

fn deployment(
    validated: &Validated<'_>,
    version: &KubernetesVersion,
    endpoint: &Endpoint,
    nodes: u32,
) -> DynamicObject {
    let given = validated.settings.coredns.clone().unwrap_or_default();
    let spec = json!({
        "replicas": pods_wanted(given.replicas, nodes),
        "selector": {"matchLabels": {LABEL: SERVICE}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "template": {
            "metadata": {"labels": {LABEL: SERVICE}},
            "spec": {
                "dnsPolicy": "Default",
                "priorityClassName": given.pod.priority_class_name.as_deref().unwrap_or("system-cluster-critical"),
                "serviceAccountName": NAME,
                "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
                "tolerations": tolerations(),
                "topologySpreadConstraints": [{
                    "maxSkew": 1,
                    "topologyKey": "kubernetes.io/hostname",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": {LABEL: SERVICE}},
                }],
                "containers": [server(&given.pod.container, version, endpoint)],
                "volumes": [{
                    "name": "settings",
                    "configMap": {"name": NAME, "items": [{"key": "Corefile", "path": "Corefile"}]},
                }],
            },
        },
    });
    tenant(("apps/v1", "Deployment"), Some(NAMESPACE), NAME, &[(LABEL, SERVICE)], json!({"spec": spec}))
}

fn server(
    given: &hangar_api::controlplane::v1alpha1::Container,
    version: &KubernetesVersion,
    endpoint: &Endpoint,
) -> Value {
    let mut server = container(NAME, given, "coredns/coredns", version.core_dns_tag(), ("100m", "70Mi"));
    let arguments = ["-conf".to_owned(), "/etc/coredns/Corefile".to_owned()];
    let more = given.args.iter().flat_map(|(name, value)| [format!("-{name}"), value.clone()]);
    server["args"] = json!(arguments.into_iter().chain(more).collect::<Vec<_>>());
    server["env"] = api_server_environment(endpoint);
    server["ports"] = json!([
        {"name": "dns", "containerPort": 53, "protocol": "UDP"},
        {"name": "dns-tcp", "containerPort": 53, "protocol": "TCP"},
        {"name": "metrics", "containerPort": 9153, "protocol": "TCP"},
    ]);
    server["livenessProbe"] = probe("/health", 8080, "HTTP", 10, 5, 6);
    server["readinessProbe"] = probe("/ready", 8181, "HTTP", 1, 5, 3);
    server["securityContext"] = restricted(&["NET_BIND_SERVICE"]);
    server["volumeMounts"] = json!([mount("settings", "/etc/coredns")]);
    server
}
