//! Where the API server is reached, told to everybody who has to know.
//!
//! The control plane starts without an endpoint. Once one is known it is written to our own spec and, while the
//! infrastructure object has no host, there as well; the Cluster gets it from these. An endpoint that was published is
//! never changed by us: nodes and kubeconfigs hold on to it.

use hangar_api::conditions::{Actor, Waiting};
use hangar_api::contract::Endpoint;
use hangar_api::controlplane::v1alpha1::ExposureType;

use super::exposure::{Reach, node_host, reach};
use super::observed::Observed;
use super::part::Part;
use super::step;
use super::validate::Validated;
use crate::flow::{Identified as _, Read};

/// Whether the API server has an endpoint that everybody agrees on.
pub const ENDPOINT_READY: &str = "EndpointReady";

/// The endpoint, once it is known.
pub(super) fn known(observed: &Observed, validated: &Validated<'_>) -> Option<Endpoint> {
    let given = validated.settings.control_plane_endpoint.clone().filter(Endpoint::is_valid);
    given.or_else(|| reach(observed, validated).ok().map(|reach| reach.people)).filter(Endpoint::is_valid)
}

/// Every host that somebody may use as endpoint: all of them belong into the certificate.
pub(super) fn hosts(observed: &Observed, validated: &Validated<'_>) -> Vec<String> {
    let given = validated.settings.control_plane_endpoint.iter().map(|endpoint| endpoint.host.clone());
    let cluster = observed.cluster.iter().map(|cluster| cluster.endpoint.host.clone());
    let reached = reach(observed, validated).ok().map(|reach| reach.people.host);
    let nodes = node_host(validated).cloned();
    given.chain(cluster).chain(reached).chain(nodes).filter(|host| !host.is_empty()).collect()
}

pub(super) fn plan(observed: &Observed, validated: &Validated<'_>) -> Part {
    let mut part = Part::default();
    let reached = reach(observed, validated);
    let Some(endpoint) = known(observed, validated) else {
        let waiting = reached.err().unwrap_or_else(|| Waiting::new(Actor::Hangar, "an endpoint"));
        let reason =
            if validated.exposure == ExposureType::Gateway { "ExposureNotBuilt" } else { "NoAddress" };
        part.fails(ENDPOINT_READY, reason, &waiting);
        return part;
    };
    if validated.settings.control_plane_endpoint.as_ref() != Some(&endpoint) {
        part.report.decide(format!("publish endpoint {endpoint}"), "it is known now");
        part.steps.push(step::publish(&endpoint));
    }
    if let Read::One(infrastructure) = &observed.infrastructure
        && infrastructure.endpoint.host.is_empty()
    {
        part.report.decide(
            format!(
                "publish endpoint {endpoint} to {} {}",
                infrastructure.reference.kind, infrastructure.reference.name
            ),
            "it has none of its own",
        );
        let who = format!("{} {}", infrastructure.reference.kind, infrastructure.reference.name);
        let step = step::publish_to(infrastructure, &endpoint);
        let trouble = observed.troubles.get(&step.id());
        part.steps.push(step);
        if let Some(words) = trouble {
            let waiting = Waiting::new(Actor::Operator, format!("{who} to take the endpoint {endpoint}"));
            part.fails(ENDPOINT_READY, "NotPublished", &waiting.because(words));
            return part;
        }
    }
    judge(observed, validated, &endpoint, reached, &mut part);
    part
}

fn judge(
    observed: &Observed,
    validated: &Validated<'_>,
    endpoint: &Endpoint,
    reached: Result<Reach, Waiting>,
    part: &mut Part,
) {
    let others = observed.infrastructure.iter().map(|infrastructure| {
        (
            format!("{} {}", infrastructure.reference.kind, infrastructure.reference.name),
            &infrastructure.endpoint,
        )
    });
    let cluster =
        observed.cluster.iter().map(|cluster| (format!("Cluster {}", cluster.name), &cluster.endpoint));
    let different = others.chain(cluster).find(|(_, other)| other.is_valid() && *other != endpoint);
    if let Some((who, other)) = different {
        let waiting = Waiting::new(Actor::ClusterOwner, "one endpoint for all")
            .because(format!("{who} says {other}, the control plane is reached at {endpoint}"));
        return part.fails(ENDPOINT_READY, "Conflict", &waiting);
    }
    match reached {
        Err(waiting) => part.fails(ENDPOINT_READY, "NoAddress", &waiting),
        Ok(reach) if has_moved(validated, endpoint, &reach) => {
            let waiting =
                Waiting::new(Actor::Operator, "the load balancer's former address").because(format!(
                    "nodes and kubeconfigs use {}, the load balancer has {:?} now",
                    endpoint.host, reach.targets
                ));
            part.fails(ENDPOINT_READY, "AddressChanged", &waiting);
        }
        Ok(_) => part.holds(ENDPOINT_READY, "Published"),
    }
}

/// Whether the endpoint is an address that the load balancer no longer has. A name may lead anywhere.
fn has_moved(validated: &Validated<'_>, endpoint: &Endpoint, reach: &Reach) -> bool {
    let is_own = matches!(validated.exposure, ExposureType::LoadBalancer | ExposureType::ClusterIP);
    let address = endpoint.host.parse().ok();
    is_own && address.is_some_and(|address| !reach.targets.is_empty() && !reach.targets.contains(&address))
}
