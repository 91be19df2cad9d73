//! Publishes the endpoint of the API server once it is known.
//!
//! A control plane starts without an endpoint. Once known, the endpoint is written to the HostedControlPlane's spec
//! and, if the infrastructure object has no host, to that object too; the Cluster takes it from there. A published
//! endpoint is never changed by Hangar, because nodes and kubeconfigs contain it.

use hangar_api::conditions::{Actor, Finding, Waiting};
use hangar_api::contract::Endpoint;
use hangar_api::controlplane::v1alpha1::ExposureType;

use super::conditions::endpoint_ready;
use super::exposure::{Reach, node_host, reach};
use super::observed::Observed;
use super::validate::Validated;
use super::{Draft, step};
use crate::flow::{Identified as _, Read};

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

pub(super) fn draft(draft: &mut Draft<'_>, validated: &Validated<'_>) {
    let observed = draft.observed;
    let reached = reach(observed, validated);
    let Some(endpoint) = known(observed, validated) else {
        let waiting = reached.err().unwrap_or_else(|| Waiting::new(Actor::Hangar, "an endpoint"));
        let is_built = validated.exposure != ExposureType::Gateway;
        let reason = if is_built { endpoint_ready::NO_ADDRESS } else { endpoint_ready::EXPOSURE_NOT_BUILT };
        return draft.say(reason.waiting(waiting));
    };
    if validated.settings.control_plane_endpoint.as_ref() != Some(&endpoint) {
        draft.report.decide(format!("publish endpoint {endpoint}"), "it is known now");
        draft.step(step::publish(&endpoint));
    }
    if let Read::One(infrastructure) = &observed.infrastructure
        && infrastructure.endpoint.host.is_empty()
    {
        let whose = format!("{} {}", infrastructure.reference.kind, infrastructure.reference.name);
        draft.report.decide(format!("publish endpoint {endpoint} to {whose}"), "it has none of its own");
        let step = step::publish_to(infrastructure, &endpoint);
        let trouble = observed.troubles.get(&step.id());
        draft.step(step);
        if let Some(why) = trouble {
            let on = format!("{whose} to take the endpoint {endpoint}");
            return draft.say(endpoint_ready::NOT_PUBLISHED.waits(on).because(why));
        }
    }
    draft.say(judged(observed, validated, &endpoint, reached));
}

fn judged(
    observed: &Observed,
    validated: &Validated<'_>,
    endpoint: &Endpoint,
    reached: Result<Reach, Waiting>,
) -> Finding {
    let others = observed.infrastructure.iter().map(|infrastructure| {
        (
            format!("{} {}", infrastructure.reference.kind, infrastructure.reference.name),
            &infrastructure.endpoint,
        )
    });
    let cluster =
        observed.cluster.iter().map(|cluster| (format!("Cluster {}", cluster.name), &cluster.endpoint));
    let different = others.chain(cluster).find(|(_, other)| other.is_valid() && *other != endpoint);
    if let Some((whose, other)) = different {
        return endpoint_ready::CONFLICT
            .waits("one endpoint for all")
            .because(format!("{whose} says {other}, the control plane is reached at {endpoint}"));
    }
    match reached {
        Err(waiting) => endpoint_ready::NO_ADDRESS.waiting(waiting),
        Ok(reach) if has_moved(validated, endpoint, &reach) => {
            endpoint_ready::ADDRESS_CHANGED.waits("the load balancer's former address").because(format!(
                "nodes and kubeconfigs use {}, the load balancer has {:?} now",
                endpoint.host, reach.targets
            ))
        }
        Ok(_) => endpoint_ready::PUBLISHED.into(),
    }
}

/// Whether the endpoint is an address that the load balancer no longer has. A name may lead anywhere.
fn has_moved(validated: &Validated<'_>, endpoint: &Endpoint, reach: &Reach) -> bool {
    let is_own = matches!(validated.exposure, ExposureType::LoadBalancer | ExposureType::ClusterIP);
    let address = endpoint.host.parse().ok();
    is_own && address.is_some_and(|address| !reach.targets.is_empty() && !reach.targets.contains(&address))
}
