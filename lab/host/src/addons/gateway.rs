//! The Gateway: one address through which every hosted control plane is reached by its name.
//!
//! Traefik reads TLSRoutes of all namespaces and passes connections on by the name the client asks for, without ending
//! TLS: certificates stay with the control planes. We choose the address, because the resolver has to know it before
//! anything runs.

use std::net::Ipv4Addr;

use hangar_plan::pieces::{self, USER, container_port, pairs, probe, rolling, rule, service_port, spread};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{
    Container, Namespace, PodSecurityContext, PodSpec, Service, ServiceSpec, Sysctl,
};
use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
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

/// What the Gateway depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayOptions {
    /// Its address, on the private network and outside the range that is handed out.
    pub address: Ipv4Addr,
    /// Names below this one lead to it, at any depth.
    pub domain: String,
}

pub(super) fn objects(options: &AddonOptions, gateway: &GatewayOptions) -> Vec<Value> {
    let metadata = ObjectMeta { name: Some(NAMESPACE.to_owned()), ..ObjectMeta::default() };
    let mut objects = vec![pod::value(&Namespace { metadata, ..Namespace::default() })];
    objects.extend(pod::identity(NAMESPACE, TRAEFIK, "hangar:traefik", rules()));
    objects.extend([
        pod::value(&service(gateway)),
        pod::value(&deployment(options)),
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

fn rules() -> Vec<PolicyRule> {
    const GROUP: &str = "gateway.networking.k8s.io";
    let read = ["get", "list", "watch"];
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
    let statuses: Vec<&str> = statuses.iter().map(String::as_str).collect();
    vec![
        rule(&[""], &["namespaces", "services", "configmaps", "secrets"], &read),
        rule(&["discovery.k8s.io"], &["endpointslices"], &read),
        rule(&[GROUP], &kinds, &read),
        rule(&[GROUP], &statuses, &["update"]),
    ]
}

fn service(gateway: &GatewayOptions) -> Service {
    let address = gateway.address.to_string();
    let mut metadata = pod::metadata(NAMESPACE, TRAEFIK);
    metadata.labels = None;
    metadata.annotations = Some(pairs([(load_balancer::ADDRESS_ANNOTATION, &address)]));
    let spec = ServiceSpec {
        type_: Some("LoadBalancer".to_owned()),
        selector: Some(pairs([(pod::NAME_LABEL, TRAEFIK)])),
        ports: Some(vec![service_port(LISTENER, PORT, "TCP")]),
        ..ServiceSpec::default()
    };
    pieces::service(metadata, spec)
}

fn deployment(options: &AddonOptions) -> Deployment {
    let container = Container {
        args: Some(arguments()),
        ports: Some(vec![container_port(LISTENER, PORT, "TCP"), container_port("ping", PING_PORT, "TCP")]),
        readiness_probe: Some(probe("/ping", PING_PORT, "HTTP", 1, 5, 3)),
        liveness_probe: Some(probe("/ping", PING_PORT, "HTTP", 10, 5, 6)),
        ..pod::container(options, TRAEFIK, &options.images.traefik, "64Mi")
    };
    // Of the pod's own network: lets an ordinary user listen on the listener's port.
    let first_port = Sysctl { name: "net.ipv4.ip_unprivileged_port_start".to_owned(), value: "0".to_owned() };
    let selector = pairs([(pod::NAME_LABEL, TRAEFIK)]);
    let spec = PodSpec {
        security_context: Some(PodSecurityContext {
            run_as_non_root: Some(true),
            run_as_user: Some(USER),
            run_as_group: Some(USER),
            sysctls: Some(vec![first_port]),
            ..PodSecurityContext::default()
        }),
        topology_spread_constraints: Some(vec![spread("kubernetes.io/hostname", selector.clone())]),
        containers: vec![container],
        ..PodSpec::default()
    };
    let template = pod::template(TRAEFIK, spec, pod::tolerations(options));
    let replicas = pod::replicas(options);
    pieces::deployment(pod::metadata(NAMESPACE, TRAEFIK), replicas, rolling(1, 0), selector, template)
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
