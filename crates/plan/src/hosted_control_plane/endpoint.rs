//! Publishes the endpoint of the API server once it is known.
//!
//! A control plane starts without an endpoint. Once known, the endpoint is written to the HostedControlPlane's spec
//! and, if the infrastructure object has no host, to that object too; the Cluster takes it from there. A published
//! endpoint is never changed by Hangar, because nodes and kubeconfigs contain it.

use hangar_api::conditions::{Actor, Finding, Waiting};
use hangar_api::contract::Endpoint;

use super::conditions::endpoint_ready;
use super::exposure::{self, Reach, node_host, reach};
use super::names::WAY_ANNOTATION;
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
    let routed = exposure::names(observed, validated);
    let all = given.chain(cluster).chain(reached).chain(nodes).chain(routed);
    all.filter(|host| !host.is_empty()).collect()
}

pub(super) fn draft(draft: &mut Draft<'_>, validated: &Validated<'_>) {
    let observed = draft.observed;
    let reached = reach(observed, validated);
    let Some(endpoint) = known(observed, validated) else {
        let waiting = reached.err().unwrap_or_else(|| Waiting::new(Actor::Hangar, "an endpoint"));
        return draft.say(endpoint_ready::NO_ADDRESS.waiting(waiting));
    };
    // In one write: an endpoint is never known without the way that leads to it.
    let record = exposure::to_record(observed, validated).map(|way| (WAY_ANNOTATION, way.text()));
    if validated.settings.control_plane_endpoint.as_ref() != Some(&endpoint) {
        draft.report.decide(format!("publish endpoint {endpoint}"), "it is known now");
        draft.step(step::publish(&endpoint, record));
    } else if let Some((name, value)) = record {
        draft.step(step::record(name, &value));
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
    if let Some((whose, present)) = exposure::moved(observed, validated, endpoint) {
        let why = format!("nodes and kubeconfigs use {}, {whose} has {present:?} now", endpoint.host);
        return endpoint_ready::ADDRESS_CHANGED.waits(format!("the former address of {whose}")).because(why);
    }
    match reached {
        Err(waiting) => endpoint_ready::NO_ADDRESS.waiting(waiting),
        Ok(_) => endpoint_ready::PUBLISHED.into(),
    }
}
