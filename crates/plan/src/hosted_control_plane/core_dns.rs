//! Plans CoreDNS in the tenant: it resolves the names of Services and pods, and sends all other queries to its
//! upstream.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hangar_api::contract::Endpoint;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, Container, PodSpec, Service, ServiceSpec, Toleration, Volume,
};
use kube::core::DynamicObject;

use super::flags::accepted;
use super::object::tenant;
use super::observed::ObjectIdentity;
use super::pod::{container, items};
use super::program::CORE_DNS;
use super::rights::{account, cluster_role, cluster_role_binding, subject_account};
use super::tenant_pod::{api_server_environment, config_map, linux, pods_wanted, tolerations};
use super::validate::Validated;
use super::version::KubernetesVersion;
use crate::flow::dynamic;
use crate::pieces::{
    container_port, default_profile, deployment, mount, pairs, probe, restricted, rolling, rule, service,
    service_port, spread, template,
};

const NAMESPACE: &str = "kube-system";
const NAME: &str = "coredns";
const ROLE: &str = "system:coredns";
/// The Service's name and the pods' label value, which other add-ons expect.
const SERVICE: &str = "kube-dns";
const LABEL: &str = "k8s-app";

/// Whether people left it out.
pub(super) fn is_disabled(validated: &Validated<'_>) -> bool {
    validated.settings.coredns.as_ref().and_then(|settings| settings.disabled).unwrap_or_default()
}

/// What is deleted where it is left out: another name server needs the Service's address. The account and its role do no
/// harm.
pub(super) fn leftovers() -> Vec<ObjectIdentity> {
    let identity = |api_version: &str, kind: &str, name: &str| ObjectIdentity {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: NAMESPACE.to_owned(),
        name: name.to_owned(),
    };
    vec![
        identity("apps/v1", "Deployment", NAME),
        identity("v1", "ConfigMap", NAME),
        identity("v1", "Service", SERVICE),
    ]
}

/// What the CoreDNS of a cluster depends on.
#[derive(Debug)]
pub struct CoreDns<'a> {
    /// The domain of the cluster's own names.
    pub domain: &'a str,
    /// Who is asked for all other names: an address, or a file that names some.
    pub upstream: &'a str,
    /// How long clients may keep an answer, also the answer that there is no such name.
    pub ttl_seconds: u32,
    /// The addresses of its Service: one, or one of each family.
    pub addresses: Vec<IpAddr>,
    /// Where pods reach the API server without its Service.
    pub api_server: &'a Endpoint,
    pub replicas: i32,
    /// The priority class of the pods.
    pub priority_class: &'a str,
    /// What the pods tolerate.
    pub tolerations: Vec<Toleration>,
    /// Name, image and resources of the container.
    pub container: Container,
    /// More flags.
    pub flags: Vec<String>,
}

pub(super) fn objects(
    validated: &Validated<'_>,
    version: &KubernetesVersion,
    endpoint: &Endpoint,
    nodes: u32,
) -> Vec<DynamicObject> {
    let given = validated.settings.coredns.clone().unwrap_or_default();
    let settings = &given.pod.pod.container;
    let flags = settings.args.iter().filter_map(|(name, value)| accepted(&CORE_DNS, name, value).ok());
    let core_dns = CoreDns {
        domain: &validated.domain,
        upstream: "/etc/resolv.conf",
        ttl_seconds: 30,
        addresses: validated.dns_addresses.clone(),
        api_server: endpoint,
        replicas: pods_wanted(given.pod.replicas, nodes),
        priority_class: given.pod.pod.priority_class_name.as_deref().unwrap_or("system-cluster-critical"),
        tolerations: tolerations(),
        container: container(
            validated,
            NAME,
            settings,
            "coredns/coredns",
            version.core_dns_tag(validated.epoch),
            ("100m", "70Mi"),
        ),
        flags: flags.map(|(name, value)| format!("-{name}={value}")).collect(),
    };
    core_dns.objects()
}

impl CoreDns<'_> {
    /// Its objects, in apply order.
    pub fn objects(&self) -> Vec<DynamicObject> {
        let read = ["list", "watch"];
        let rules = vec![
            rule(&[""], &["namespaces", "pods", "services"], &read),
            rule(&["discovery.k8s.io"], &["endpointslices"], &read),
        ];
        vec![
            dynamic(&account(NAMESPACE, NAME)),
            dynamic(&cluster_role(ROLE, rules)),
            dynamic(&cluster_role_binding(ROLE, ROLE, subject_account(NAMESPACE, NAME))),
            dynamic(&config_map(NAMESPACE, NAME, [("Corefile", self.corefile())])),
            dynamic(&self.service()),
            dynamic(&self.deployment()),
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

    fn service(&self) -> Service {
        let labels =
            [(LABEL, SERVICE), ("kubernetes.io/cluster-service", "true"), ("kubernetes.io/name", "CoreDNS")];
        let addresses: Vec<String> = self.addresses.iter().map(ToString::to_string).collect();
        let families = self.addresses.iter().map(|address| if address.is_ipv4() { "IPv4" } else { "IPv6" });
        let families = families.map(str::to_owned);
        let is_dual = addresses.len() > 1;
        let spec = ServiceSpec {
            cluster_ip: addresses.first().cloned(),
            cluster_ips: is_dual.then(|| addresses.clone()),
            ip_families: is_dual.then(|| families.collect()),
            ip_family_policy: is_dual.then(|| "RequireDualStack".to_owned()),
            selector: Some(pairs([(LABEL, SERVICE)])),
            ports: Some(vec![
                service_port("dns", 53, "UDP"),
                service_port("dns-tcp", 53, "TCP"),
                service_port("metrics", 9153, "TCP"),
            ]),
            ..ServiceSpec::default()
        };
        service(tenant(Some(NAMESPACE), SERVICE, labels), spec)
    }

    fn deployment(&self) -> Deployment {
        let labels = || pairs([(LABEL, SERVICE)]);
        let settings = ConfigMapVolumeSource {
            name: NAME.to_owned(),
            items: Some(items(&[("Corefile", "Corefile")])),
            ..ConfigMapVolumeSource::default()
        };
        let pod = PodSpec {
            node_selector: Some(linux()),
            dns_policy: Some("Default".to_owned()),
            priority_class_name: Some(self.priority_class.to_owned()),
            service_account_name: Some(NAME.to_owned()),
            security_context: Some(default_profile()),
            tolerations: Some(self.tolerations.clone()),
            topology_spread_constraints: Some(vec![spread("kubernetes.io/hostname", labels())]),
            containers: vec![self.server()],
            volumes: Some(vec![Volume {
                name: "settings".to_owned(),
                config_map: Some(settings),
                ..Volume::default()
            }]),
            ..PodSpec::default()
        };
        let metadata = tenant(Some(NAMESPACE), NAME, [(LABEL, SERVICE)]);
        let template = template(labels(), BTreeMap::new(), pod);
        deployment(metadata, self.replicas, rolling(1, 0), labels(), template)
    }

    fn server(&self) -> Container {
        let arguments = ["-conf".to_owned(), "/etc/coredns/Corefile".to_owned()];
        Container {
            args: Some(arguments.into_iter().chain(self.flags.clone()).collect()),
            env: Some(api_server_environment(self.api_server)),
            ports: Some(vec![
                container_port("dns", 53, "UDP"),
                container_port("dns-tcp", 53, "TCP"),
                container_port("metrics", 9153, "TCP"),
            ]),
            liveness_probe: Some(probe("/health", 8080, "HTTP", 10, 5, 6)),
            readiness_probe: Some(probe("/ready", 8181, "HTTP", 1, 5, 3)),
            security_context: Some(restricted(&["NET_BIND_SERVICE"])),
            volume_mounts: Some(vec![mount("settings", "/etc/coredns")]),
            ..self.container.clone()
        }
    }
}
