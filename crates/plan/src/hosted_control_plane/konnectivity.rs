//! The tunnel: agents on the tenant's nodes dial the server beside each API server, and requests to nodes and pods go
//! back through them. The management cluster needs no route to any node.
//!
//! Server and agents count servers by leases in the tenant, so that the number of API servers is in nobody's flags.
//! The server may review tokens and keep its lease, and nothing else. Neither end rereads certificates: both are
//! restarted when theirs changes.

use hangar_api::contract::Endpoint;
use hangar_api::controlplane::v1alpha1::Container;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::api_server::KONNECTIVITY_KEY;
use super::epoch::Epoch;
use super::kubeconfigs;
use super::material::Material;
use super::names::SETTINGS_ANNOTATION;
use super::object::{document, tenant};
use super::pod::{Files, Flags, container, mount, probe};
use super::rights::{account, cluster_role_binding, role, role_binding, subject_account, subject_user};
use super::tenant_pod::{config_map, early_tolerations, pods_wanted};
use super::validate::{KONNECTIVITY_PORT, Validated};
use super::version::konnectivity_tag;

pub(super) const PKI: &str = "/etc/konnectivity";
pub(super) const SOCKET_VOLUME: &str = "konnectivity-socket";
pub(super) const SOCKET_DIRECTORY: &str = "/run/konnectivity";
const SOCKET: &str = "/run/konnectivity/konnectivity.sock";

const ADMIN_PORT: u16 = 8133;
const HEALTH_PORT: u16 = 8134;
const AUDIENCE: &str = "system:konnectivity-server";
const AGENT: &str = "konnectivity-agent";
const NAMESPACE: &str = "kube-system";

/// How long the server outlives the beginning of its pod's end: the API server beside it still drains requests through
/// the tunnel, for its shutdown delay of 15 s and the 10 s it gives watches.
const SLEEP_SECONDS: u32 = 30;

/// What sends requests to nodes, pods and services through the tunnel.
pub(super) fn egress(Epoch::One: Epoch) -> Value {
    json!({
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [{
            "name": "cluster",
            "connection": {"proxyProtocol": "GRPC", "transport": {"uds": {"udsName": SOCKET}}},
        }],
    })
}

pub(super) fn server_volumes(validated: &Validated<'_>) -> Vec<Value> {
    let files = Files::new()
        .authority(validated, Material::ClusterAuthority, "ca.crt")
        .pair(validated, Material::KonnectivityServer, "server")
        .pair(validated, Material::KonnectivityClient, "client")
        .config_map(&validated.names.api_server(), &[(KONNECTIVITY_KEY, "kubeconfig")]);
    vec![files.volume("konnectivity"), json!({"name": SOCKET_VOLUME, "emptyDir": {"medium": "Memory"}})]
}

pub(super) fn server_container(epoch: Epoch, given: &Container) -> Value {
    let text = str::to_owned;
    let flags = Flags::new(
        [
            ("admin-port", ADMIN_PORT.to_string()),
            ("agent-namespace", text(NAMESPACE)),
            ("agent-port", KONNECTIVITY_PORT.to_string()),
            ("agent-service-account", text(AGENT)),
            ("authentication-audience", text(AUDIENCE)),
            ("cluster-cert", format!("{PKI}/server.crt")),
            ("cluster-key", format!("{PKI}/server.key")),
            ("delete-existing-uds-file", text("true")),
            ("enable-lease-controller", text("true")),
            ("health-port", HEALTH_PORT.to_string()),
            ("kubeconfig", format!("{PKI}/kubeconfig")),
            ("mode", text("grpc")),
            ("server-count", text("1")),
            ("server-id", text("$(POD_NAME)")),
            ("server-port", text("0")),
            ("uds-name", text(SOCKET)),
        ],
        [],
    );
    let repository = "kas-network-proxy/proxy-server";
    let mut server =
        container("konnectivity-server", given, repository, konnectivity_tag(epoch), ("10m", "32Mi"));
    server["args"] = json!(flags.merged(&given.args).0);
    server["env"] = json!([
        {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ]);
    server["ports"] =
        json!([{"name": "konnectivity", "containerPort": KONNECTIVITY_PORT, "protocol": "TCP"}]);
    // Not /readyz: that needs an agent, which needs a node, which needs this pod to be ready.
    server["startupProbe"] = probe("/healthz", HEALTH_PORT, "HTTP", 1, 15, 300);
    server["livenessProbe"] = probe("/healthz", HEALTH_PORT, "HTTP", 10, 15, 8);
    server["lifecycle"] = json!({"preStop": {"sleep": {"seconds": SLEEP_SECONDS}}});
    server["volumeMounts"] =
        json!([mount("konnectivity", PKI), {"name": SOCKET_VOLUME, "mountPath": SOCKET_DIRECTORY}]);
    server
}

/// Rights of the server and of agents, in the tenant.
pub(super) fn rights(Epoch::One: Epoch) -> Vec<DynamicObject> {
    const SERVER: &str = "system:konnectivity-server";
    let leases = |verbs: &[&str]| json!([{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs}]);
    let server = [subject_user(SERVER)];
    let keeping = ["create", "delete", "get", "list", "patch", "update", "watch"];
    vec![
        cluster_role_binding(SERVER, "system:auth-delegator", &server),
        role(NAMESPACE, SERVER, &leases(&keeping)),
        role_binding(NAMESPACE, SERVER, &server),
        account(NAMESPACE, AGENT),
        role(NAMESPACE, AGENT, &leases(&["get", "list", "watch"])),
        role_binding(NAMESPACE, AGENT, &[subject_account(NAMESPACE, AGENT)]),
    ]
}

/// The agents. They run on the node's network and need neither Services nor the cluster's name server: they go to the
/// tunnel's server, and look for its leases where nodes go.
pub(super) fn agents(
    validated: &Validated<'_>,
    (server, api): (&Endpoint, &Endpoint),
    authority: &str,
    nodes: u32,
) -> Vec<DynamicObject> {
    let given = validated.settings.konnectivity_client.clone().unwrap_or_default();
    let kubeconfig = kubeconfigs::for_account(&format!("https://{api}"));
    let settings = document(&kubeconfig);
    // Where the server has only an address, agents know it by the name that is in its certificate.
    let alias = server.host.parse::<std::net::IpAddr>().ok();
    let host = alias.map_or_else(|| server.host.clone(), |_| validated.names.konnectivity_host());
    let mut spec = json!({
        "hostNetwork": true,
        "dnsPolicy": "Default",
        "priorityClassName": given.pod.priority_class_name.as_deref().unwrap_or("system-cluster-critical"),
        "serviceAccountName": AGENT,
        "tolerations": early_tolerations(),
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": 65532,
            "runAsGroup": 65532,
            "fsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [{
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"k8s-app": AGENT}},
        }],
        "containers": [agent_container(validated.epoch, &given.pod.container, &host, server.port)],
        "volumes": [
            {"name": "settings", "configMap": {"name": AGENT}},
            {"name": "token", "projected": {"sources": [{"serviceAccountToken": {
                "path": "token", "audience": AUDIENCE, "expirationSeconds": 3600,
            }}]}},
        ],
    });
    if let Some(address) = alias {
        spec["hostAliases"] = json!([{"ip": address.to_string(), "hostnames": [host]}]);
    }
    let restart = crate::hash::text(&format!("{authority}\0{settings}"));
    let deployment = json!({"spec": {
        "replicas": pods_wanted(given.replicas, nodes),
        "selector": {"matchLabels": {"k8s-app": AGENT}},
        // Two on one node would fight for its ports.
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        "template": {
            "metadata": {"labels": {"k8s-app": AGENT}, "annotations": {SETTINGS_ANNOTATION: restart}},
            "spec": spec,
        },
    }});
    vec![
        config_map(NAMESPACE, AGENT, &[("kubeconfig", settings)]),
        tenant(("apps/v1", "Deployment"), Some(NAMESPACE), AGENT, &[("k8s-app", AGENT)], deployment),
    ]
}

fn agent_container(epoch: Epoch, given: &Container, host: &str, port: i32) -> Value {
    let text = str::to_owned;
    let flags = Flags::new(
        [
            ("admin-server-port", ADMIN_PORT.to_string()),
            ("agent-id", text("$(NODE_NAME)")),
            ("ca-cert", text("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")),
            ("count-server-leases", text("true")),
            ("health-server-port", HEALTH_PORT.to_string()),
            ("kubeconfig", text("/etc/konnectivity/kubeconfig")),
            ("proxy-server-host", text(host)),
            ("proxy-server-port", port.to_string()),
            ("server-count-source", text("max")),
            ("service-account-token-path", text("/var/run/secrets/tokens/token")),
        ],
        [
            // The server refuses less than 30 s.
            ("keepalive-time", "35s"),
            ("sync-interval", "500ms"),
            ("sync-interval-cap", "2s"),
        ],
    );
    let repository = "kas-network-proxy/proxy-agent";
    let mut agent = container(AGENT, given, repository, konnectivity_tag(epoch), ("10m", "32Mi"));
    agent["args"] = json!(flags.merged(&given.args).0);
    agent["env"] = json!([{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]);
    agent["ports"] = json!([{"name": "health", "containerPort": HEALTH_PORT, "protocol": "TCP"}]);
    agent["livenessProbe"] = probe("/healthz", HEALTH_PORT, "HTTP", 10, 15, 8);
    agent["readinessProbe"] = probe("/readyz", HEALTH_PORT, "HTTP", 1, 5, 3);
    agent["volumeMounts"] =
        json!([mount("settings", "/etc/konnectivity"), mount("token", "/var/run/secrets/tokens"),]);
    agent
}
