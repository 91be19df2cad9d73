//! Plans the tunnel: agents on the tenant's nodes connect to the server beside each API server, and requests to nodes
//! and pods go back through these connections. The management cluster needs no route to any node.
//!
//! Server and agents learn the number of servers from Lease objects in the tenant, so no flag contains the number of
//! API servers. The server may review tokens and keep its Lease, and nothing else. Neither end rereads certificates, so
//! each is restarted when its certificate changes.

use hangar_api::contract::Endpoint;
use hangar_api::controlplane::v1alpha1::Container as Settings;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{
    Container, EmptyDirVolumeSource, HostAlias, Lifecycle, LifecycleHandler, PodSecurityContext, PodSpec,
    ProjectedVolumeSource, ServiceAccountTokenProjection, SleepAction, Volume, VolumeProjection,
};
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::api_server::KONNECTIVITY_KEY;
use super::epoch::Epoch;
use super::exposure::manager;
use super::flags::Flags;
use super::material::Material;
use super::names::SETTINGS_ANNOTATION;
use super::object::{document, tenant};
use super::pod::{Files, container};
use super::program::{KONNECTIVITY_AGENT, KONNECTIVITY_SERVER};
use super::rights::{account, cluster_role_binding, role, role_binding, subject_account, subject_user};
use super::tenant_pod::{config_map, early_tolerations, linux, pods_wanted};
use super::validate::{KONNECTIVITY_PORT, Validated};
use super::version::konnectivity_tag;
use super::{audit, kubeconfigs};
use crate::flow::dynamic;
use crate::pieces::{
    USER, config_map_volume, container_port, deployment, field_variable, mount, nobody, pairs, probe,
    rolling, rule, spread, template, writable_mount,
};

pub(super) const PKI: &str = "/etc/konnectivity";
pub(super) const SOCKET_VOLUME: &str = "konnectivity-socket";
pub(super) const SOCKET_DIRECTORY: &str = "/run/konnectivity";
pub(super) const SOCKET: &str = "/run/konnectivity/konnectivity.sock";

pub(super) const ADMIN_PORT: u16 = 8133;
const HEALTH_PORT: u16 = 8134;
const AUDIENCE: &str = "system:konnectivity-server";
const AGENT: &str = "konnectivity-agent";
const NAMESPACE: &str = "kube-system";

/// How long the server outlives the beginning of its pod's end: the API server beside it still drains requests through
/// the tunnel, for its shutdown delay of 15 s and the 10 s it gives watches.
const SLEEP_SECONDS: i64 = 30;

/// What sends requests through the tunnel: to nodes, pods and Services (`cluster`), and to whatever else the tenant names,
/// such as webhooks by URL (`controlplane`). What has no selection is dialled from the API server's own pod, and so in the
/// management network: that is for etcd and for issuers of tokens alone. With a proxy of audit records, `controlplane`
/// goes to the proxy, which hands to the tunnel what is not its own; both speak HTTP-CONNECT then, the only protocol that
/// can be handed on.
pub(super) fn egress(Epoch::One: Epoch, has_proxy: bool) -> Value {
    let selection = |name: &str, socket: &str| {
        let protocol = if has_proxy { "HTTPConnect" } else { "GRPC" };
        json!({
            "name": name,
            "connection": {"proxyProtocol": protocol, "transport": {"uds": {"udsName": socket}}},
        })
    };
    let control_plane = if has_proxy { audit::SOCKET } else { SOCKET };
    json!({
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [selection("cluster", SOCKET), selection("controlplane", control_plane)],
    })
}

/// Their default is 4, at which an agent logs every packet: thousands of lines a minute under load.
const LOG_LEVEL: (&str, &str) = ("v", "1");

/// Through the Service and not to the API server beside it: the server's Lease is there, and agents may come, before that
/// one serves. Else it would find aggregated APIs unreachable at its start and say so to all API servers.
pub(super) fn server_kubeconfig(validated: &Validated<'_>) -> Value {
    kubeconfigs::for_pod(validated, &format!("https://{}", manager(validated)), PKI)
}

pub(super) fn server_volumes(validated: &Validated<'_>) -> [Volume; 2] {
    let files = Files::new()
        .authority(validated, Material::ClusterAuthority, "ca.crt")
        .pair(validated, Material::KonnectivityServer, "server")
        .pair(validated, Material::KonnectivityClient, "client")
        .config_map(&validated.names.api_server(), &[(KONNECTIVITY_KEY, "kubeconfig")]);
    let memory = EmptyDirVolumeSource { medium: Some("Memory".to_owned()), size_limit: None };
    let socket = Volume { name: SOCKET_VOLUME.to_owned(), empty_dir: Some(memory), ..Volume::default() };
    [files.volume("konnectivity"), socket]
}

pub(super) fn server_container(validated: &Validated<'_>, given: &Settings) -> Container {
    let has_proxy = audit::has_proxy(validated.settings);
    let text = str::to_owned;
    let flags = Flags::new(
        &KONNECTIVITY_SERVER,
        [
            // Metrics, and nothing else there: profiles are not ours to give.
            ("admin-bind-address", text("0.0.0.0")),
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
            ("mode", text(if has_proxy { "http-connect" } else { "grpc" })),
            ("server-count", text("1")),
            ("server-id", text("$(POD_NAME)")),
            ("server-port", text("0")),
            ("uds-name", text(SOCKET)),
        ],
        // Its default is an hour: as long, requests would be sent to an agent whose node is lost.
        [LOG_LEVEL, ("keepalive-time", "30s")],
    );
    let repository = KONNECTIVITY_SERVER.repository;
    let sleep = SleepAction { seconds: SLEEP_SECONDS };
    let stop = LifecycleHandler { sleep: Some(sleep), ..LifecycleHandler::default() };
    Container {
        args: Some(flags.merged(&given.args)),
        env: Some(vec![field_variable("POD_NAME", "metadata.name")]),
        ports: Some(vec![
            container_port("konnectivity", KONNECTIVITY_PORT, "TCP"),
            container_port("admin", ADMIN_PORT, "TCP"),
        ]),
        // Not /readyz: that needs an agent, which needs a node, which needs this pod to be ready.
        startup_probe: Some(probe("/healthz", HEALTH_PORT, "HTTP", 1, 15, 300)),
        liveness_probe: Some(probe("/healthz", HEALTH_PORT, "HTTP", 10, 15, 8)),
        lifecycle: Some(Lifecycle { pre_stop: Some(stop), ..Lifecycle::default() }),
        volume_mounts: Some(vec![
            mount("konnectivity", PKI),
            writable_mount(SOCKET_VOLUME, SOCKET_DIRECTORY),
        ]),
        ..container(
            validated,
            KONNECTIVITY_SERVER.name,
            given,
            repository,
            konnectivity_tag(validated.epoch),
            ("10m", "16Mi"),
        )
    }
}

/// Rights of the server and of agents, in the tenant.
pub(super) fn rights(Epoch::One: Epoch) -> Vec<DynamicObject> {
    const SERVER: &str = "system:konnectivity-server";
    let leases = |verbs: &[&str]| rule(&["coordination.k8s.io"], &["leases"], verbs);
    let server = || subject_user(SERVER);
    let keeping = ["create", "delete", "get", "list", "patch", "update", "watch"];
    vec![
        dynamic(&cluster_role_binding(SERVER, "system:auth-delegator", server())),
        dynamic(&role(NAMESPACE, SERVER, vec![leases(&keeping)])),
        dynamic(&role_binding(NAMESPACE, SERVER, vec![server()])),
        dynamic(&account(NAMESPACE, AGENT)),
        dynamic(&role(NAMESPACE, AGENT, vec![leases(&["get", "list", "watch"])])),
        dynamic(&role_binding(NAMESPACE, AGENT, vec![subject_account(NAMESPACE, AGENT)])),
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
    let settings = document(&kubeconfigs::for_account(&format!("https://{api}")));
    let restart = crate::hash::text(&format!("{authority}\0{settings}"));
    vec![
        dynamic(&config_map(NAMESPACE, AGENT, [("kubeconfig", settings)])),
        dynamic(&agent_deployment(validated, server, &restart, nodes)),
    ]
}

fn agent_deployment(validated: &Validated<'_>, server: &Endpoint, restart: &str, nodes: u32) -> Deployment {
    const LABELS: [(&str, &str); 1] = [("k8s-app", AGENT)];
    let given = validated.settings.konnectivity_client.clone().unwrap_or_default();
    // Where the server has only an address, agents know it by the name that is in its certificate.
    let address = server.host.parse::<std::net::IpAddr>().ok();
    let host = address.map_or_else(|| server.host.clone(), |_| validated.names.konnectivity_host());
    let alias = |ip: std::net::IpAddr| HostAlias { ip: ip.to_string(), hostnames: Some(vec![host.clone()]) };
    let pod = PodSpec {
        node_selector: Some(linux()),
        host_aliases: address.map(|address| vec![alias(address)]),
        host_network: Some(true),
        dns_policy: Some("Default".to_owned()),
        priority_class_name: given.pod.priority_class_name.or(Some("system-cluster-critical".to_owned())),
        service_account_name: Some(AGENT.to_owned()),
        tolerations: Some(early_tolerations()),
        security_context: Some(PodSecurityContext { fs_group: Some(USER), ..nobody() }),
        topology_spread_constraints: Some(vec![spread("kubernetes.io/hostname", pairs(LABELS))]),
        containers: vec![agent_container(validated, &given.pod.container, &host, server.port)],
        volumes: Some(vec![config_map_volume("settings", AGENT), token_volume()]),
        ..PodSpec::default()
    };
    let metadata = tenant(Some(NAMESPACE), AGENT, LABELS);
    let template = template(pairs(LABELS), pairs([(SETTINGS_ANNOTATION, restart)]), pod);
    // Two on one node would fight for its ports.
    deployment(metadata, pods_wanted(given.replicas, nodes), rolling(0, 1), pairs(LABELS), template)
}

/// The token by which the server knows agents.
fn token_volume() -> Volume {
    let token = ServiceAccountTokenProjection {
        path: "token".to_owned(),
        audience: Some(AUDIENCE.to_owned()),
        expiration_seconds: Some(3600),
    };
    let source = VolumeProjection { service_account_token: Some(token), ..VolumeProjection::default() };
    let projected = ProjectedVolumeSource { sources: Some(vec![source]), default_mode: None };
    Volume { name: "token".to_owned(), projected: Some(projected), ..Volume::default() }
}

fn agent_container(validated: &Validated<'_>, given: &Settings, host: &str, port: i32) -> Container {
    let text = str::to_owned;
    let flags = Flags::new(
        &KONNECTIVITY_AGENT,
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
            // Each try leads to any of the servers: agents should find a new one before the API server beside it probes.
            ("sync-interval", "100ms"),
            ("sync-interval-cap", "500ms"),
            LOG_LEVEL,
        ],
    );
    let repository = KONNECTIVITY_AGENT.repository;
    Container {
        args: Some(flags.merged(&given.args)),
        env: Some(vec![field_variable("NODE_NAME", "spec.nodeName")]),
        ports: Some(vec![container_port("health", HEALTH_PORT, "TCP")]),
        liveness_probe: Some(probe("/healthz", HEALTH_PORT, "HTTP", 10, 15, 8)),
        readiness_probe: Some(probe("/readyz", HEALTH_PORT, "HTTP", 1, 5, 3)),
        volume_mounts: Some(vec![
            mount("settings", "/etc/konnectivity"),
            mount("token", "/var/run/secrets/tokens"),
        ]),
        ..container(validated, AGENT, given, repository, konnectivity_tag(validated.epoch), ("10m", "32Mi"))
    }
}
