//! kube-proxy: Services become rules of the nodes' nftables, where no lock is shared with anybody.
//!
//! Limits of connection tracking belong to the node: kube-proxy leaves them alone, and could not change them on nodes
//! that are namespaces.

use hangar_api::contract::Endpoint;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::api_server::joined;
use super::kubeconfigs;
use super::names::SETTINGS_ANNOTATION;
use super::object::{document, tenant};
use super::observed::ObjectIdentity;
use super::pod::{container, mount, probe};
use super::rights::{account, cluster_role_binding, subject_account};
use super::tenant_pod::config_map;
use super::validate::Validated;
use super::version::KubernetesVersion;

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
    /// How long changes are collected before they become rules; a second where none is given.
    pub collects: Option<&'a str>,
    /// The priority class of the pods.
    pub priority_class: &'a str,
    /// Name, image and resources of the container.
    pub container: Value,
    /// More flags, without dashes.
    pub flags: Vec<(String, String)>,
}

pub(super) fn objects(
    validated: &Validated<'_>,
    version: &KubernetesVersion,
    endpoint: &Endpoint,
) -> Vec<DynamicObject> {
    let given = validated.settings.kube_proxy.clone().unwrap_or_default();
    let settings = &given.pod.container;
    let proxy = KubeProxy {
        pod_ranges: joined(&validated.pod_ranges),
        api_server: endpoint,
        collects: None,
        priority_class: given.pod.priority_class_name.as_deref().unwrap_or("system-node-critical"),
        container: container(NAME, settings, NAME, version.tag(), ("10m", "64Mi")),
        flags: settings.args.clone().into_iter().collect(),
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
        let subjects = [subject_account(NAMESPACE, NAME)];
        vec![
            account(NAMESPACE, NAME),
            // The role is the API server's own.
            cluster_role_binding("kubeadm:node-proxier", "system:node-proxier", &subjects),
            config_map(NAMESPACE, NAME, &[("config.conf", configuration), ("kubeconfig.conf", kubeconfig)]),
            self.daemon_set(&settings),
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
        if let Some(collects) = self.collects {
            configuration["nftables"] = json!({"minSyncPeriod": collects});
        }
        configuration
    }

    fn daemon_set(&self, settings: &str) -> DynamicObject {
        let mut proxy = self.container.clone();
        let more = self.flags.iter().map(|(name, value)| format!("--{name}={value}"));
        let arguments =
            [format!("--config={DIRECTORY}/config.conf"), "--hostname-override=$(NODE_NAME)".to_owned()];
        proxy["command"] = json!(["/usr/local/bin/kube-proxy"]);
        proxy["args"] = json!(arguments.into_iter().chain(more).collect::<Vec<_>>());
        proxy["env"] =
            json!([{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]);
        proxy["readinessProbe"] = probe("/healthz", 10256, "HTTP", 1, 5, 3);
        proxy["securityContext"] = json!({"privileged": true});
        proxy["volumeMounts"] = json!([mount("settings", DIRECTORY)]);
        let spec = json!({
            "selector": {"matchLabels": {"k8s-app": NAME}},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {
                "metadata": {"labels": {"k8s-app": NAME}, "annotations": {SETTINGS_ANNOTATION: settings}},
                "spec": {
                    "hostNetwork": true,
                    "dnsPolicy": "Default",
                    "priorityClassName": self.priority_class,
                    "serviceAccountName": NAME,
                    // On every node, in whatever state.
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [proxy],
                    "volumes": [{"name": "settings", "configMap": {"name": NAME}}],
                },
            },
        });
        tenant(("apps/v1", "DaemonSet"), Some(NAMESPACE), NAME, &[("k8s-app", NAME)], json!({"spec": spec}))
    }
}
