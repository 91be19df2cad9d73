//! Plans how the API server and the tunnel's server are reached: a Service for each, and what follows from their
//! addresses.
//!
//! [`reach`] and [`manager`] are the only places that say where users, nodes, agents of the tunnel, the tenant's own
//! pods and the manager connect to. A new kind of exposure changes `address`, `targets` and `service` here, and the
//! places that `docs/contributing.md` lists.
//!
//! The tunnel has a Service of its own because agents must reach a new pod before it is ready: otherwise every request
//! through a new API server fails until they have found it. Readiness never depends on agents, because agents need
//! nodes, and nodes need an API server that is ready.

use std::net::IpAddr;

use hangar_api::conditions::{Actor, Waiting};
use hangar_api::contract::Endpoint;
use hangar_api::controlplane::v1alpha1::ExposureType;
use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::Draft;
use super::names::Component;
use super::observed::{Observed, ServiceFacts};
use super::validate::{API_SERVER_PORT, KONNECTIVITY_PORT, Validated};
use crate::conditions::shared::unreadable;
use crate::conditions::who::MANAGEMENT_CLUSTER;
use crate::flow::Read;
use crate::pieces::{self, service_port};

/// The two Services.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExposedService {
    Api,
    Tunnel,
}

impl ExposedService {
    fn facts(self, observed: &Observed) -> Result<&ServiceFacts, Waiting> {
        let (read, whose) = match self {
            Self::Api => (&observed.service, "the API server's Service"),
            Self::Tunnel => (&observed.tunnel, "the tunnel's Service"),
        };
        match read {
            Read::One(service) => Ok(service),
            Read::Unknown(unknown) => Err(unreadable(whose, unknown)),
            Read::Absent | Read::Many(_) => Err(Waiting::new(Actor::Hangar, whose)),
        }
    }

    fn port_name(self) -> &'static str {
        match self {
            Self::Api => "https",
            Self::Tunnel => "konnectivity",
        }
    }

    /// Of the Service, and of the pods.
    fn ports(self, validated: &Validated<'_>) -> (u16, u16) {
        match self {
            Self::Api => (validated.port, API_SERVER_PORT),
            Self::Tunnel => (KONNECTIVITY_PORT, KONNECTIVITY_PORT),
        }
    }

    /// Where it leads to the outside, or what is waited for.
    fn address(self, observed: &Observed, validated: &Validated<'_>) -> Result<Endpoint, Waiting> {
        let service = self.facts(observed)?;
        let port = i32::from(self.ports(validated).0);
        match validated.exposure {
            ExposureType::LoadBalancer => {
                let host = service.ingress_ips.first().or(service.ingress_hostnames.first()).cloned();
                let on = match self {
                    Self::Api => "an address of the load balancer",
                    Self::Tunnel => "an address of the tunnel's load balancer",
                };
                host.map(|host| Endpoint { host, port }).ok_or_else(|| Waiting::new(Actor::Operator, on))
            }
            ExposureType::ClusterIP => {
                let host = service.cluster_ip.clone();
                let waiting = || Waiting::new(MANAGEMENT_CLUSTER, "an address of the Service");
                host.map(|host| Endpoint { host, port }).ok_or_else(waiting)
            }
            ExposureType::NodePort => {
                let host = node_addresses(validated).first().cloned().ok_or_else(|| {
                    Waiting::new(Actor::ClusterOwner, "spec.exposure.nodePort.addresses")
                        .because("taking the nodes' own addresses is not built yet")
                })?;
                let name = self.port_name();
                let waiting = || Waiting::new(MANAGEMENT_CLUSTER, format!("a node port for {name}"));
                let port = service.node_ports.get(name).copied().ok_or_else(waiting)?;
                Ok(Endpoint { host, port })
            }
            ExposureType::Gateway => Err(Waiting::new(Actor::ClusterOwner, "another exposure.type")
                .because("exposure.type Gateway is not built yet")),
        }
    }
}

/// Where everybody connects to who is outside the management cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    /// People: what their kubeconfig says.
    pub(super) people: Endpoint,
    /// Nodes, and those pods of the tenant that must not depend on a Service.
    pub(super) nodes: Endpoint,
    /// Agents of the tunnel, or what they wait for; nobody else waits for it.
    pub(super) agents: Result<Endpoint, Waiting>,
    /// Pods of the tenant: what stands behind its `kubernetes` Service.
    pub(super) targets: Vec<IpAddr>,
    pub(super) target_port: i32,
}

/// Where the manager and the control plane's own controllers connect to: a name that is known before any address.
pub(super) fn manager(validated: &Validated<'_>) -> Endpoint {
    Endpoint { host: validated.names.api_server_host(), port: i32::from(validated.port) }
}

/// The host that nodes were given for their own.
pub(super) fn node_host<'validated>(validated: &'validated Validated<'_>) -> Option<&'validated String> {
    validated.settings.exposure.as_ref().and_then(|exposure| exposure.node_host.as_ref())
}

/// Where everybody else connects to, or what is waited for.
pub(super) fn reach(observed: &Observed, validated: &Validated<'_>) -> Result<Reach, Waiting> {
    let api = ExposedService::Api.address(observed, validated)?;
    let given = validated.settings.control_plane_endpoint.clone().unwrap_or_default();
    // Where people were told to connect stays, whatever the load balancer says now.
    let people = Endpoint {
        host: Some(given.host).filter(|host| !host.is_empty()).unwrap_or_else(|| api.host.clone()),
        port: Some(given.port).filter(|port| *port != 0).unwrap_or(api.port),
    };
    let nodes = Endpoint { host: node_host(validated).unwrap_or(&people.host).clone(), port: people.port };
    // A name leads to one place: where the tunnel has an address of its own, agents go by that.
    let agents = ExposedService::Tunnel.address(observed, validated).map(|own| Endpoint {
        host: if own.host == api.host { nodes.host.clone() } else { own.host },
        port: own.port,
    });
    let targets = targets(validated, ExposedService::Api.facts(observed)?);
    Ok(Reach { people, nodes, agents, targets, target_port: api.port })
}

pub(super) fn draft(draft: &mut Draft<'_>, validated: &Validated<'_>) {
    for exposed in [ExposedService::Api, ExposedService::Tunnel] {
        draft.apply(&service(validated, exposed));
        if exposed.facts(draft.observed).is_ok_and(|facts| facts.is_deleting) {
            let on = "the Service to be gone, so that it can be made again";
            draft.report.wait(Waiting::new(MANAGEMENT_CLUSTER, on));
        }
    }
}

fn node_addresses<'validated>(validated: &'validated Validated<'_>) -> &'validated [String] {
    let exposure = validated.settings.exposure.as_ref().and_then(|exposure| exposure.node_port.as_ref());
    exposure.map(|exposure| exposure.addresses.as_slice()).unwrap_or_default()
}

/// Addresses of all kinds of exposure, without names: a slice has addresses only.
fn targets(validated: &Validated<'_>, service: &ServiceFacts) -> Vec<IpAddr> {
    let texts: Vec<&String> = match validated.exposure {
        ExposureType::LoadBalancer | ExposureType::Gateway => service.ingress_ips.iter().collect(),
        ExposureType::ClusterIP => service.cluster_ip.iter().collect(),
        ExposureType::NodePort => node_addresses(validated).iter().collect(),
    };
    let mut targets: Vec<IpAddr> = texts.into_iter().filter_map(|text| text.parse().ok()).collect();
    targets.sort_unstable();
    targets.dedup();
    targets
}

fn service(validated: &Validated<'_>, exposed: ExposedService) -> Service {
    let (port, target) = exposed.ports(validated);
    let exposure = validated.settings.exposure.clone().unwrap_or_default();
    let name = match exposed {
        ExposedService::Api => validated.names.api_server_service(),
        ExposedService::Tunnel => validated.names.konnectivity_service(),
    };
    let mut metadata = validated.metadata(name, Component::ApiServer);
    let mut spec = ServiceSpec {
        selector: Some(validated.selector(Component::ApiServer)),
        publish_not_ready_addresses: (exposed == ExposedService::Tunnel).then_some(true),
        ..ServiceSpec::default()
    };
    let mut node_port = None;
    let kind = match (validated.exposure, exposed) {
        (ExposureType::ClusterIP, _) | (ExposureType::Gateway, ExposedService::Tunnel) => "ClusterIP",
        // Beside a Gateway the load balancer serves the tenant's own pods.
        (ExposureType::LoadBalancer | ExposureType::Gateway, _) => {
            let given = exposure.load_balancer.unwrap_or_default();
            metadata.annotations = Some(given.annotations).filter(|annotations| !annotations.is_empty());
            spec.load_balancer_class = given.class;
            spec.load_balancer_source_ranges = Some(given.source_ranges).filter(|ranges| !ranges.is_empty());
            "LoadBalancer"
        }
        (ExposureType::NodePort, _) => {
            let chosen = exposure.node_port.and_then(|exposure| exposure.port);
            node_port = chosen.filter(|_| exposed == ExposedService::Api);
            "NodePort"
        }
    };
    spec.type_ = Some(kind.to_owned());
    let target_port = Some(IntOrString::Int(target.into()));
    let port = service_port(exposed.port_name(), port, "TCP");
    spec.ports = Some(vec![ServicePort { target_port, node_port, ..port }]);
    pieces::service(metadata, spec)
}
