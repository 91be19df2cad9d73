//! A Service with a load balancer of its own, which has addresses or a name.
//!
//! A name is an endpoint like any other. Behind the tenant's `kubernetes` Service only addresses can stand, so the edge
//! looks the name up, again and again while it is used: load balancers that have names change their addresses.

use std::net::IpAddr;

use hangar_api::conditions::{Actor, Waiting};
use hangar_api::contract::Endpoint;
use hangar_api::controlplane::v1alpha1::HostedControlPlaneSettings;
use k8s_openapi::api::core::v1::ServiceSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::facts::is_host_name;
use super::{Exposed, Needs, Observed, Validated, Way, parsed};

pub(super) struct LoadBalancer;

impl Way for LoadBalancer {
    fn address(
        &self,
        observed: &Observed,
        validated: &Validated<'_>,
        exposed: Exposed,
    ) -> Result<Endpoint, Waiting> {
        let service = exposed.facts(observed)?;
        let host = service.ingress_ips.first().or(service.ingress_hostnames.first()).cloned();
        let on = match exposed {
            Exposed::Api => "an address of the load balancer",
            Exposed::Tunnel => "an address of the tunnel's load balancer",
        };
        let host = host.ok_or_else(|| Waiting::new(Actor::Operator, on))?;
        Ok(Endpoint { host, port: i32::from(exposed.ports(validated).0) })
    }

    fn targets(&self, observed: &Observed, _: &Validated<'_>) -> Result<Vec<IpAddr>, Waiting> {
        targets(observed)
    }

    fn shape(
        &self,
        validated: &Validated<'_>,
        _: Exposed,
        metadata: &mut ObjectMeta,
        spec: &mut ServiceSpec,
    ) {
        shape(validated, metadata, spec);
    }

    fn needs(&self, observed: &Observed, _: &HostedControlPlaneSettings) -> Needs {
        Needs { name: name_to_resolve(observed), ..Needs::default() }
    }

    fn is_service_reached(&self) -> bool {
        true
    }

    fn present(&self, observed: &Observed, _: &Validated<'_>) -> Option<(&'static str, Vec<IpAddr>)> {
        Some(("the load balancer", targets(observed).ok()?))
    }
}

/// The load balancer's name, where it has no address.
pub(super) fn name_to_resolve(observed: &Observed) -> Option<String> {
    let service = Exposed::Api.facts(observed).ok()?;
    let name = service.ingress_hostnames.first().filter(|_| parsed(&service.ingress_ips).is_empty())?;
    Some(name.to_ascii_lowercase()).filter(|name| is_host_name(name))
}

/// The load balancer's addresses, or those that its name leads to.
pub(super) fn targets(observed: &Observed) -> Result<Vec<IpAddr>, Waiting> {
    let addresses = parsed(&Exposed::Api.facts(observed)?.ingress_ips);
    if addresses.is_empty() {
        return Ok(observed.ways.resolved.iter().copied().collect());
    }
    Ok(addresses)
}

pub(super) fn shape(validated: &Validated<'_>, metadata: &mut ObjectMeta, spec: &mut ServiceSpec) {
    let exposure = validated.settings.exposure.clone().unwrap_or_default();
    let given = exposure.load_balancer.unwrap_or_default();
    metadata.annotations = Some(given.annotations).filter(|annotations| !annotations.is_empty());
    spec.load_balancer_class = given.class;
    spec.load_balancer_source_ranges = Some(given.source_ranges).filter(|ranges| !ranges.is_empty());
    spec.type_ = Some("LoadBalancer".to_owned());
}
