//! The Gateway: one address through which every hosted control plane is reached by its name.
//!
//! Traefik reads TLSRoutes of all namespaces and passes connections on by the name the client asks for, without
//! ending TLS: certificates stay with the control planes. The address is ours to choose, because the resolver has to
//! know it before anything runs.

use std::net::Ipv4Addr;

use hangar_plan::hosted_control_plane::addons::{probe, restricted};
use serde_json::{Value, json};

use super::{AddonOptions, load_balancer, pod};

pub const NAMESPACE: &str = "hangar-gateway";

/// The name of the Gateway and of its class.
pub const NAME: &str = "hangar";

/// The listener that routes attach to.
pub const LISTENER: &str = "tls";

/// The port of the listener. Traefik matches listeners to its own ports by number, so it listens on this one too.
pub const PORT: u16 = 443;

/// The default of [`GatewayOptions::domain`]. `.test` is reserved: it never exists outside.
pub const DOMAIN: &str = "clusters.hangar.test";

const TRAEFIK: &str = "traefik";

/// Where Traefik says that it is alive.
const PING_PORT: u16 = 9000;

/// An arbitrary user; the image has no user list.
const USER: u32 = 65532;

/// What the Gateway depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayOptions {
    /// Its address, on the private network and outside the range that is handed out.
    pub address: Ipv4Addr,
    /// Names below this one lead to it, at any depth.
    pub domain: String,
}

pub(super) fn objects(options: &AddonOptions, gateway: &GatewayOptions) -> Vec<Value> {
    let mut objects = vec![json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})];
    objects.extend(pod::identity(NAMESPACE, TRAEFIK, "hangar:traefik", &rules()));
    objects.extend([
        service(gateway),
        deployment(options),
        json!({
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "GatewayClass",
            "metadata": {"name": NAME},
            "spec": {"controllerName": "traefik.io/gateway-controller"},
        }),
        gateway_object(gateway),
    ]);
    objects
}

fn rules() -> Value {
    const GROUP: &str = "gateway.networking.k8s.io";
    const READ: [&str; 3] = ["get", "list", "watch"];
    let kinds = [
        "backendtlspolicies",
        "gatewayclasses",
        "gateways",
        "grpcroutes",
        "httproutes",
        "referencegrants",
        "tcproutes",
        "tlsroutes",
    ];
    let statuses: Vec<String> = kinds
        .iter()
        .filter(|kind| **kind != "referencegrants")
        .map(|kind| format!("{kind}/status"))
        .collect();
    json!([
        {"apiGroups": [""], "resources": ["namespaces", "services", "configmaps", "secrets"], "verbs": READ},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": READ},
        {"apiGroups": [GROUP], "resources": kinds, "verbs": READ},
        {"apiGroups": [GROUP], "resources": statuses, "verbs": ["update"]},
    ])
}

fn service(gateway: &GatewayOptions) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": TRAEFIK,
            "namespace": NAMESPACE,
            "annotations": {load_balancer::ADDRESS_ANNOTATION: gateway.address.to_string()},
        },
        "spec": {
            "type": "LoadBalancer",
            "selector": {pod::NAME_LABEL: TRAEFIK},
            "ports": [{"name": LISTENER, "port": PORT, "targetPort": PORT, "protocol": "TCP"}],
        },
    })
}

fn deployment(options: &AddonOptions) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": TRAEFIK, "namespace": NAMESPACE, "labels": {pod::NAME_LABEL: TRAEFIK}},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {pod::NAME_LABEL: TRAEFIK}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {
                "metadata": {"labels": {pod::NAME_LABEL: TRAEFIK}},
                "spec": {
                    "serviceAccountName": TRAEFIK,
                    "tolerations": pod::tolerations(),
                    "securityContext": {
                        "runAsNonRoot": true,
                        "runAsUser": USER,
                        "runAsGroup": USER,
                        // Of the pod's own network: lets an ordinary user listen on the listener's port.
                        "sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}],
                    },
                    "containers": [{
                        "name": TRAEFIK,
                        "image": options.images.traefik,
                        "imagePullPolicy": "IfNotPresent",
                        "args": arguments(),
                        "env": pod::api_server_environment(options),
                        "ports": [
                            {"name": LISTENER, "containerPort": PORT, "protocol": "TCP"},
                            {"name": "ping", "containerPort": PING_PORT, "protocol": "TCP"},
                        ],
                        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}},
                        "readinessProbe": probe("/ping", PING_PORT, "HTTP", 1, 5, 3),
                        "livenessProbe": probe("/ping", PING_PORT, "HTTP", 10, 5, 6),
                        "securityContext": restricted(&[]),
                    }],
                },
            },
        },
    })
}

fn arguments() -> Vec<String> {
    vec![
        "--global.checknewversion=false".to_owned(),
        "--global.sendanonymoususage=false".to_owned(),
        format!("--entrypoints.{LISTENER}.address=:{PORT}"),
        format!("--entrypoints.traefik.address=:{PING_PORT}"),
        "--ping=true".to_owned(),
        "--providers.kubernetesgateway=true".to_owned(),
        "--providers.kubernetesgateway.experimentalchannel=true".to_owned(),
        format!("--providers.kubernetesgateway.statusaddress.service.namespace={NAMESPACE}"),
        format!("--providers.kubernetesgateway.statusaddress.service.name={TRAEFIK}"),
        // A new route works after this and not after two seconds.
        "--providers.providersthrottleduration=200ms".to_owned(),
    ]
}

fn gateway_object(gateway: &GatewayOptions) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {
            "gatewayClassName": NAME,
            "listeners": [{
                "name": LISTENER,
                "hostname": format!("*.{}", gateway.domain),
                "port": PORT,
                "protocol": "TLS",
                "tls": {"mode": "Passthrough"},
                "allowedRoutes": {
                    "namespaces": {"from": "All"},
                    "kinds": [{"group": "gateway.networking.k8s.io", "kind": "TLSRoute"}],
                },
            }],
        },
    })
}
