//! How the API server is reached: the Service, and what follows from its addresses.
//!
//! [`reach`] is the one place that decides where people, tunnel agents and the tenant's own pods connect to; a new kind
//! of exposure changes it and nothing else.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hangar_api::conditions::{Actor, Waiting};
use hangar_api::contract::Endpoint;
use hangar_api::controlplane::v1alpha1::{ExposureType, LoadBalancerExposure};
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::names::Component;
use super::observed::{Observed, ServiceFacts};
use super::part::{Part, management_cluster};
use super::validate::{API_SERVER_PORT, KONNECTIVITY_PORT, Validated};
use crate::flow::Read;

/// Names of the Service's ports.
const API: &str = "https";
const KONNECTIVITY: &str = "konnectivity";

/// Where everybody connects to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    /// People and nodes.
    pub(super) endpoint: Endpoint,
    /// Agents of the tunnel.
    pub(super) konnectivity: Endpoint,
    /// What stands behind the tenant's `kubernetes` Service: nodes reach these without any Service.
    pub(super) targets: Vec<IpAddr>,
    /// The port of the targets.
    pub(super) target_port: i32,
}

pub(super) fn plan(observed: &Observed, validated: &Validated<'_>) -> Part {
    let mut part = Part::default();
    part.objects.push(service(validated));
    if let Read::One(facts) = &observed.service
        && facts.is_deleting
    {
        part.report.wait(
            "the Service to be gone, so that it can be made again",
            None,
            crate::flow::Actor::Kubernetes,
        );
    }
    part
}

/// Where everybody connects to, or what is waited for.
pub(super) fn reach(observed: &Observed, validated: &Validated<'_>) -> Result<Reach, Waiting> {
    let service = match &observed.service {
        Read::One(service) => service,
        Read::Unknown(unknown) => {
            return Err(
                Waiting::new(Actor::Hangar, "a look at the API server's Service").because(&unknown.why)
            );
        }
        Read::Absent | Read::Many(_) => return Err(Waiting::new(Actor::Hangar, "the API server's Service")),
    };
    let port = i32::from(validated.port);
    let (host, api_port, konnectivity_port) = match validated.exposure {
        ExposureType::LoadBalancer => {
            let host = service.ingress_ips.first().or(service.ingress_hostnames.first());
            let host =
                host.ok_or_else(|| Waiting::new(Actor::Operator, "an address of the load balancer"))?;
            (host.clone(), port, i32::from(KONNECTIVITY_PORT))
        }
        ExposureType::ClusterIP => {
            let host = service.cluster_ip.clone();
            let host = host.ok_or_else(|| Waiting::new(management_cluster(), "an address of the Service"))?;
            (host, port, i32::from(KONNECTIVITY_PORT))
        }
        ExposureType::NodePort => node_ports(validated, service)?,
        ExposureType::Gateway => {
            let waiting = Waiting::new(Actor::ClusterOwner, "another exposure.type")
                .because("exposure.type Gateway is not built yet");
            return Err(waiting);
        }
    };
    let targets = targets(validated, service);
    let given = validated.settings.control_plane_endpoint.clone().unwrap_or_default();
    // Where people were told to connect stays, whatever the load balancer says now.
    let endpoint = Endpoint {
        host: Some(given.host).filter(|host| !host.is_empty()).unwrap_or(host),
        port: Some(given.port).filter(|port| *port != 0).unwrap_or(api_port),
    };
    let konnectivity = Endpoint { host: endpoint.host.clone(), port: konnectivity_port };
    Ok(Reach { endpoint, konnectivity, targets, target_port: api_port })
}

fn node_ports(validated: &Validated<'_>, service: &ServiceFacts) -> Result<(String, i32, i32), Waiting> {
    let exposure = validated.settings.exposure.as_ref().and_then(|exposure| exposure.node_port.as_ref());
    let address = exposure.and_then(|exposure| exposure.addresses.first()).ok_or_else(|| {
        Waiting::new(Actor::ClusterOwner, "spec.exposure.nodePort.addresses")
            .because("taking the nodes' own addresses is not built yet")
    })?;
    let port = |name: &str| {
        let found = service.node_ports.get(name).copied();
        found.ok_or_else(|| Waiting::new(management_cluster(), format!("a node port for {name}")))
    };
    Ok((address.clone(), port(API)?, port(KONNECTIVITY)?))
}

/// Addresses of all kinds of exposure, without names: a slice has addresses only.
fn targets(validated: &Validated<'_>, service: &ServiceFacts) -> Vec<IpAddr> {
    let exposure = validated.settings.exposure.as_ref().and_then(|exposure| exposure.node_port.as_ref());
    let texts: Vec<&String> = match validated.exposure {
        ExposureType::LoadBalancer | ExposureType::Gateway => service.ingress_ips.iter().collect(),
        ExposureType::ClusterIP => service.cluster_ip.iter().collect(),
        ExposureType::NodePort => {
            exposure.map(|exposure| exposure.addresses.iter().collect()).unwrap_or_default()
        }
    };
    let mut targets: Vec<IpAddr> = texts.into_iter().filter_map(|text| text.parse().ok()).collect();
    targets.sort_unstable();
    targets.dedup();
    targets
}

fn service(validated: &Validated<'_>) -> DynamicObject {
    let mut api = port(API, validated.port, API_SERVER_PORT);
    let exposure = validated.settings.exposure.clone().unwrap_or_default();
    let mut spec = json!({"selector": validated.selector(Component::ApiServer)});
    let mut annotations = BTreeMap::new();
    match validated.exposure {
        // Beside a Gateway the load balancer serves the tenant's own pods.
        ExposureType::LoadBalancer | ExposureType::Gateway => {
            load_balancer(&mut spec, exposure.load_balancer.as_ref(), &mut annotations);
        }
        ExposureType::ClusterIP => spec["type"] = json!("ClusterIP"),
        ExposureType::NodePort => {
            spec["type"] = json!("NodePort");
            if let Some(chosen) = exposure.node_port.and_then(|exposure| exposure.port) {
                api["nodePort"] = json!(chosen);
            }
        }
    }
    spec["ports"] = json!([api, port(KONNECTIVITY, KONNECTIVITY_PORT, KONNECTIVITY_PORT)]);
    let name = validated.names.api_server_service();
    let mut service = validated.object(("v1", "Service"), name, Component::ApiServer, json!({"spec": spec}));
    if !annotations.is_empty() {
        service.metadata.annotations = Some(annotations);
    }
    service
}

fn load_balancer(
    spec: &mut Value,
    given: Option<&LoadBalancerExposure>,
    annotations: &mut BTreeMap<String, String>,
) {
    spec["type"] = json!("LoadBalancer");
    let Some(given) = given else { return };
    annotations.extend(given.annotations.clone());
    if let Some(class) = &given.class {
        spec["loadBalancerClass"] = json!(class);
    }
    if !given.source_ranges.is_empty() {
        spec["loadBalancerSourceRanges"] = json!(given.source_ranges);
    }
}

fn port(name: &str, port: u16, target: u16) -> Value {
    json!({"name": name, "port": port, "protocol": "TCP", "targetPort": target})
}
