//! CoreDNS: names of a cluster's Services and pods; everything else goes to its upstream.

use std::net::IpAddr;

use hangar_api::contract::Endpoint;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::object::tenant;
use super::pod::{container, gentle_rollout, mount, probe, restricted};
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

/// What the CoreDNS of a cluster depends on.
#[derive(Debug)]
pub struct CoreDns<'a> {
    /// The domain of the cluster's own names.
    pub domain: &'a str,
    /// Who is asked for all other names: an address, or a file that names some.
    pub upstream: &'a str,
    /// How long clients may keep an answer, also the answer that there is no such name.
    pub ttl_seconds: u32,
    /// The address of its Service.
    pub address: IpAddr,
    /// Where pods reach the API server without its Service.
    pub api_server: &'a Endpoint,
    pub replicas: i32,
    /// The priority class of the pods.
    pub priority_class: &'a str,
    /// What the pods tolerate.
    pub tolerations: Vec<Value>,
    /// Name, image and resources of the container.
    pub container: Value,
    /// More flags, without dashes.
    pub flags: Vec<(String, String)>,
}

pub(super) fn objects(
    validated: &Validated<'_>,
    version: &KubernetesVersion,
    endpoint: &Endpoint,
    nodes: u32,
) -> Vec<DynamicObject> {
    let given = validated.settings.coredns.clone().unwrap_or_default();
    let settings = &given.pod.container;
    let core_dns = CoreDns {
        domain: &validated.domain,
        upstream: "/etc/resolv.conf",
        ttl_seconds: 30,
        address: validated.dns_address,
        api_server: endpoint,
        replicas: pods_wanted(given.replicas, nodes),
        priority_class: given.pod.priority_class_name.as_deref().unwrap_or("system-cluster-critical"),
        tolerations: tolerations(),
        container: container(
            NAME,
            settings,
            "coredns/coredns",
            version.core_dns_tag(validated.epoch),
            ("100m", "70Mi"),
        ),
        flags: settings.args.clone().into_iter().collect(),
    };
    core_dns.objects()
}

impl CoreDns<'_> {
    /// Its objects, in apply order.
    pub fn objects(&self) -> Vec<DynamicObject> {
        let rules = json!([
            {"apiGroups": [""], "resources": ["namespaces", "pods", "services"], "verbs": ["list", "watch"]},
            {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
        ]);
        vec![
            account(NAMESPACE, NAME),
            cluster_role(ROLE, &rules),
            cluster_role_binding(ROLE, ROLE, &[subject_account(NAMESPACE, NAME)]),
            config_map(NAMESPACE, NAME, &[("Corefile", self.corefile())]),
            self.service(),
            self.deployment(),
        ]
    }

    /// Its configuration. A changed one is noticed: no need to roll pods.
    fn corefile(&self) -> String {
        let Self { domain, upstream, ttl_seconds, .. } = self;
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
        ttl {ttl_seconds}
    }}
    prometheus :9153
    forward . {upstream} {{
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

    fn service(&self) -> DynamicObject {
        let port = |name: &str, port: u16, protocol: &str| json!({"name": name, "port": port, "targetPort": port, "protocol": protocol});
        let spec = json!({
            "clusterIP": self.address.to_string(),
            "selector": {LABEL: SERVICE},
            "ports": [port("dns", 53, "UDP"), port("dns-tcp", 53, "TCP"), port("metrics", 9153, "TCP")],
        });
        let labels =
            [(LABEL, SERVICE), ("kubernetes.io/cluster-service", "true"), ("kubernetes.io/name", "CoreDNS")];
        tenant(("v1", "Service"), Some(NAMESPACE), SERVICE, &labels, json!({"spec": spec}))
    }

    fn deployment(&self) -> DynamicObject {
        let spec = json!({
            "replicas": self.replicas,
            "selector": {"matchLabels": {LABEL: SERVICE}},
            "strategy": gentle_rollout(),
            "template": {
                "metadata": {"labels": {LABEL: SERVICE}},
                "spec": {
                    "dnsPolicy": "Default",
                    "priorityClassName": self.priority_class,
                    "serviceAccountName": NAME,
                    "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
                    "tolerations": self.tolerations,
                    "topologySpreadConstraints": [{
                        "maxSkew": 1,
                        "topologyKey": "kubernetes.io/hostname",
                        "whenUnsatisfiable": "ScheduleAnyway",
                        "labelSelector": {"matchLabels": {LABEL: SERVICE}},
                    }],
                    "containers": [self.server()],
                    "volumes": [{
                        "name": "settings",
                        "configMap": {"name": NAME, "items": [{"key": "Corefile", "path": "Corefile"}]},
                    }],
                },
            },
        });
        tenant(("apps/v1", "Deployment"), Some(NAMESPACE), NAME, &[(LABEL, SERVICE)], json!({"spec": spec}))
    }

    fn server(&self) -> Value {
        let mut server = self.container.clone();
        let arguments = ["-conf".to_owned(), "/etc/coredns/Corefile".to_owned()];
        let more = self.flags.iter().flat_map(|(name, value)| [format!("-{name}"), value.clone()]);
        server["args"] = json!(arguments.into_iter().chain(more).collect::<Vec<_>>());
        server["env"] = api_server_environment(self.api_server);
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
}
