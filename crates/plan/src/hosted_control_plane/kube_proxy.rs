//! Plans kube-proxy in the tenant. It writes the rules of Services with nftables, which share no lock with other
//! programs.
//!
//! It leaves the limits of connection tracking to the node, and could not change them on nodes that are machines of one
//! host.

use hangar_api::contract::Endpoint;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Container, PodSpec, SecurityContext};
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::api_server::joined;
use super::names::SETTINGS_ANNOTATION;
use super::object::{document, tenant};
use super::observed::ObjectIdentity;
use super::pod::container;
use super::rights::{account, cluster_role_binding, subject_account};
use super::tenant_pod::{config_map, linux};
use super::validate::Validated;
use super::version::KubernetesVersion;
use super::{kube_proxy_settings, kubeconfigs};
use crate::flow::dynamic;
use crate::pieces::{
    config_map_volume, daemon_set, field_variable, mount, pairs, probe, template, texts, toleration,
};

const NAMESPACE: &str = "kube-system";
const NAME: &str = "kube-proxy";
const DIRECTORY: &str = "/var/lib/kube-proxy";

/// Whether people left it out.
pub(super) fn is_disabled(validated: &Validated<'_>) -> bool {
    validated.settings.kube_proxy.as_ref().and_then(|settings| settings.disabled).unwrap_or_default()
}

/// What is deleted where it is left out. The account and its binding do no harm.
pub(super) fn leftovers() -> Vec<ObjectIdentity> {
    let identity = |api_version: &str, kind: &str| ObjectIdentity {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: NAMESPACE.to_owned(),
        name: NAME.to_owned(),
    };
    vec![identity("apps/v1", "DaemonSet"), identity("v1", "ConfigMap")]
}

/// What the kube-proxy of a cluster depends on.
#[derive(Debug)]
pub struct KubeProxy<'a> {
    /// The ranges of the pods' addresses, separated by commas.
    pub pod_ranges: String,
    /// Where it reaches the API server without its Service.
    pub api_server: &'a Endpoint,
    /// The priority class of the pods.
    pub priority_class: &'a str,
    /// Name, image and resources of the container.
    pub container: Container,
    /// More flags.
    pub flags: Vec<String>,
    /// More fields of its configuration, by path.
    pub fields: Vec<(&'static str, Value)>,
}

pub(super) fn objects(
    validated: &Validated<'_>,
    version: &KubernetesVersion,
    endpoint: &Endpoint,
) -> Vec<DynamicObject> {
    let given = validated.settings.kube_proxy.clone().unwrap_or_default();
    let settings = &given.pod.container;
    let (flags, fields) = kube_proxy_settings::given(&settings.args);
    let proxy = KubeProxy {
        pod_ranges: joined(&validated.pod_ranges),
        api_server: endpoint,
        priority_class: given.pod.priority_class_name.as_deref().unwrap_or("system-node-critical"),
        container: container(validated, NAME, settings, NAME, version.tag(), ("10m", "64Mi")),
        flags,
        fields,
    };
    proxy.objects()
}

impl KubeProxy<'_> {
    /// Its objects, in apply order.
    pub fn objects(&self) -> Vec<DynamicObject> {
        let configuration = document(&self.configuration());
        let kubeconfig = document(&kubeconfigs::for_account(&format!("https://{}", self.api_server)));
        // It reads its settings only at the start.
        let settings = crate::hash::text(&format!("{configuration}\0{kubeconfig}"));
        let account_subject = subject_account(NAMESPACE, NAME);
        let files = [("config.conf", configuration), ("kubeconfig.conf", kubeconfig)];
        vec![
            dynamic(&account(NAMESPACE, NAME)),
            // The role is the API server's own.
            dynamic(&cluster_role_binding("kubeadm:node-proxier", "system:node-proxier", account_subject)),
            dynamic(&config_map(NAMESPACE, NAME, files)),
            dynamic(&self.daemon_set(&settings)),
        ]
    }

    fn configuration(&self) -> Value {
        let mut configuration = json!({
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "nftables",
            "clusterCIDR": self.pod_ranges,
            "clientConnection": {"kubeconfig": format!("{DIRECTORY}/kubeconfig.conf")},
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
            "healthzBindAddress": "0.0.0.0:10256",
            "metricsBindAddress": "0.0.0.0:10249",
        });
        for (path, value) in &self.fields {
            kube_proxy_settings::write(&mut configuration, path, value);
        }
        configuration
    }

    fn daemon_set(&self, settings: &str) -> DaemonSet {
        const LABELS: [(&str, &str); 1] = [("k8s-app", NAME)];
        let pod = PodSpec {
            host_network: Some(true),
            dns_policy: Some("Default".to_owned()),
            node_selector: Some(linux()),
            priority_class_name: Some(self.priority_class.to_owned()),
            service_account_name: Some(NAME.to_owned()),
            // On every node, in whatever state.
            tolerations: Some(vec![toleration(None, None)]),
            containers: vec![self.proxy()],
            volumes: Some(vec![config_map_volume("settings", NAME)]),
            ..PodSpec::default()
        };
        let template = template(pairs(LABELS), pairs([(SETTINGS_ANNOTATION, settings)]), pod);
        daemon_set(tenant(Some(NAMESPACE), NAME, LABELS), pairs(LABELS), template)
    }

    fn proxy(&self) -> Container {
        let arguments =
            [format!("--config={DIRECTORY}/config.conf"), "--hostname-override=$(NODE_NAME)".to_owned()];
        Container {
            command: Some(texts(&["/usr/local/bin/kube-proxy"])),
            args: Some(arguments.into_iter().chain(self.flags.clone()).collect()),
            env: Some(vec![field_variable("NODE_NAME", "spec.nodeName")]),
            readiness_probe: Some(probe("/healthz", 10256, "HTTP", 1, 5, 3)),
            security_context: Some(SecurityContext { privileged: Some(true), ..SecurityContext::default() }),
            volume_mounts: Some(vec![mount("settings", DIRECTORY)]),
            ..self.container.clone()
        }
    }
}
