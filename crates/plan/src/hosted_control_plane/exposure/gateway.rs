//! Routes at a shared Gateway: `<cluster>.<namespace>.<domain>` leads to the API server, `konnectivity.` before it to the
//! tunnel's server. The Gateway does not open what it passes on.
//!
//! A listener lets us attach routes by its `allowedRoutes`, whatever namespace the Gateway is in. Names of different
//! namespaces differ in their domain, so none can take another's: a name that people give has a route only below
//! `<namespace>.<domain>`.
//!
//! The domain is recorded with the endpoint. A route moves to another listener only if that takes the same names; until
//! then it stays where it is.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hangar_api::conditions::{Actor, Finding, Status, Waiting};
use hangar_api::contract::Endpoint;
use hangar_api::controlplane::v1alpha1::{GatewayReference, HostedControlPlaneSettings};
use k8s_openapi::api::core::v1::ServiceSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::facts::{
    Allowed, GatewayFacts, ListenerFacts, RouteFacts, RouteVersion, SOME_NAMESPACES, is_host_name,
};
use super::route::{Backend, ParentReference, ROUTE_KIND, TlsRoute, api_version};
use super::{
    Draft, Exposed, Needs, Observed, READ_AGAIN, Validated, Way, given, load_balancer, node_host, step,
};
use crate::conditions::shared::unread;
use crate::flow::Read;
use crate::hosted_control_plane::conditions::routes_ready;
use crate::hosted_control_plane::names::Component;
use crate::hosted_control_plane::observed::ObjectIdentity;

pub(super) struct Gateway;

type Found<T> = Result<T, Box<Finding>>;

impl Way for Gateway {
    fn address(
        &self,
        observed: &Observed,
        validated: &Validated<'_>,
        exposed: Exposed,
    ) -> Result<Endpoint, Waiting> {
        let found = domain(observed, validated).and_then(|domain| {
            let host = host(validated, exposed, &domain);
            Ok(Endpoint { host, port: port(observed, validated)? })
        });
        found.map_err(|finding| waiting(&finding))
    }

    /// Pods name no host when they connect to an address, so that no route leads them: a load balancer does.
    fn targets(&self, observed: &Observed, _: &Validated<'_>) -> Result<Vec<IpAddr>, Waiting> {
        load_balancer::targets(observed)
    }

    fn shape(
        &self,
        validated: &Validated<'_>,
        exposed: Exposed,
        metadata: &mut ObjectMeta,
        spec: &mut ServiceSpec,
    ) {
        match exposed {
            Exposed::Api => load_balancer::shape(validated, metadata, spec),
            Exposed::Tunnel => spec.type_ = Some("ClusterIP".to_owned()),
        }
    }

    fn target_port(&self, validated: &Validated<'_>) -> Option<i32> {
        Some(i32::from(validated.port))
    }

    fn needs(&self, observed: &Observed, settings: &HostedControlPlaneSettings) -> Needs {
        let name = load_balancer::name_to_resolve(observed);
        Needs { gateway: settings.gateway.clone(), nodes: false, name }
    }

    fn draft(&self, draft: &mut Draft<'_>, validated: &Validated<'_>) {
        let observed = draft.observed;
        if let Ok(routes) = routes(observed, validated) {
            for route in routes {
                draft.apply(&route);
            }
        }
        match state(observed, validated) {
            Ok(()) => draft.say(routes_ready::ACCEPTED),
            Err(finding) => {
                if finding.status() == Status::Unknown {
                    draft.again(READ_AGAIN);
                }
                draft.say(*finding);
            }
        }
    }

    fn obstacle(&self, observed: &Observed, validated: &Validated<'_>) -> Option<Finding> {
        state(observed, validated).err().map(|finding| *finding)
    }

    fn names(&self, observed: &Observed, validated: &Validated<'_>, exposed: Exposed) -> Vec<String> {
        let domain = domain(observed, validated);
        domain.map(|domain| routed(validated, exposed, &domain)).unwrap_or_default()
    }

    fn is_unread(&self, observed: &Observed, validated: &Validated<'_>) -> bool {
        domain(observed, validated).is_err_and(|finding| finding.status() == Status::Unknown)
    }

    fn domain(&self, observed: &Observed, validated: &Validated<'_>) -> Option<String> {
        domain(observed, validated).ok()
    }
}

/// Takes routes away that an earlier way in has left.
pub(super) fn leave(draft: &mut Draft<'_>, validated: &Validated<'_>) {
    draft.forget(routes_ready::TYPE);
    let ways = &draft.observed.ways;
    let Some(version) = ways.route_api.iter().find_map(|api| api.version) else { return };
    for exposed in Exposed::BOTH {
        if let Read::One(route) = route(draft.observed, exposed)
            && !route.is_deleting
        {
            let object = ObjectIdentity {
                api_version: api_version(version),
                kind: ROUTE_KIND.to_owned(),
                namespace: validated.names.namespace().to_owned(),
                name: exposed.name(validated),
            };
            draft.step(step::delete(&object, &route.uid));
        }
    }
}

fn route(observed: &Observed, exposed: Exposed) -> &Read<RouteFacts> {
    match exposed {
        Exposed::Api => &observed.ways.route,
        Exposed::Tunnel => &observed.ways.tunnel_route,
    }
}

fn waiting(finding: &Finding) -> Waiting {
    finding.waiting().cloned().unwrap_or_else(|| Waiting::new(Actor::Hangar, "routes"))
}

/// What the names are in: as it was recorded, unless people's own name is the endpoint.
fn domain(observed: &Observed, validated: &Validated<'_>) -> Found<String> {
    let recorded = validated.way.as_ref().and_then(|way| Some((way.domain.clone()?, way.is_name_given)));
    if let Some((domain, false)) = recorded {
        return Ok(domain);
    }
    let found = listener(observed, validated).map(|listener| listener.domain.clone().unwrap_or_default());
    match (found, recorded) {
        (Err(_), Some((domain, _))) => Ok(domain),
        (found, _) => found,
    }
}

/// The port that people and agents connect to.
fn port(observed: &Observed, validated: &Validated<'_>) -> Found<i32> {
    let known = Some(given(validated).port).filter(|port| *port != 0);
    match known.or(validated.settings.gateway.as_ref().and_then(|gateway| gateway.port)) {
        Some(port) => Ok(port),
        None => listener(observed, validated).map(|listener| i32::from(listener.port)),
    }
}

fn host(validated: &Validated<'_>, exposed: Exposed, domain: &str) -> String {
    let names = &validated.names;
    let host = format!("{}.{}.{domain}", names.cluster(), names.namespace());
    match exposed {
        Exposed::Api => host,
        Exposed::Tunnel => format!("konnectivity.{host}"),
    }
}

/// Names that people gave, with their fields.
fn given_names(validated: &Validated<'_>) -> BTreeMap<&'static str, String> {
    let endpoint = Some(given(validated).host);
    let all = [
        ("spec.controlPlaneEndpoint.host", endpoint),
        ("spec.exposure.nodeHost", node_host(validated).cloned()),
    ];
    let names = all.into_iter().filter_map(|(field, host)| Some((field, host?.to_ascii_lowercase())));
    names.filter(|(_, host)| !host.is_empty() && host.parse::<IpAddr>().is_err()).collect()
}

/// Whether a name is one that nobody of another namespace can have.
fn is_own(validated: &Validated<'_>, domain: &str, host: &str) -> bool {
    is_host_name(host) && host.ends_with(&format!(".{}.{domain}", validated.names.namespace()))
}

/// The names that lead to a server.
fn routed(validated: &Validated<'_>, exposed: Exposed, domain: &str) -> Vec<String> {
    let mut names = vec![host(validated, exposed, domain)];
    for name in given_names(validated).into_values().filter(|_| exposed == Exposed::Api) {
        if is_own(validated, domain, &name) && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The routes, once it is known that a listener takes them.
fn routes(observed: &Observed, validated: &Validated<'_>) -> Found<[TlsRoute; 2]> {
    let listener = listener(observed, validated)?;
    let domain = domain(observed, validated)?;
    let (reference, version) = (reference(validated)?, version(observed)?);
    fit(validated, listener, &domain)?;
    Ok(Exposed::BOTH.map(|exposed| {
        let name = exposed.name(validated);
        let parent = ParentReference {
            namespace: reference.namespace.clone(),
            name: reference.name.clone(),
            section_name: listener.name.clone(),
        };
        let names = routed(validated, exposed, &domain);
        let metadata = validated.metadata(name.clone(), Component::ApiServer);
        TlsRoute::new(version, metadata, parent, names, Backend { name, port: exposed.ports(validated).0 })
    }))
}

fn reference<'validated>(validated: &'validated Validated<'_>) -> Found<&'validated GatewayReference> {
    let missing = || Box::new(routes_ready::NO_GATEWAY.by(Actor::ClusterOwner, "spec.gateway"));
    validated.settings.gateway.as_ref().ok_or_else(missing)
}

fn called(reference: &GatewayReference) -> String {
    format!("Gateway {}/{}", reference.namespace, reference.name)
}

fn version(observed: &Observed) -> Found<RouteVersion> {
    let missing =
        routes_ready::NO_GATEWAY_API.waits("the Gateway API with TLSRoute in the management cluster");
    Err(Box::new(match &observed.ways.route_api {
        read if *read == Read::unknown(SOME_NAMESPACES) => routes_ready::OUT_OF_REACH
            .waits("another exposure.type, or a manager that looks after all namespaces")
            .because(format!("{SOME_NAMESPACES}, so that it reads no Gateways")),
        Read::Unknown(unknown) => unread(routes_ready::TYPE, "the CRD of TLSRoute", unknown),
        Read::One(api) => match api.version {
            Some(version) => return Ok(version),
            None => missing.because("it serves TLSRoute in none of the versions v1, v1alpha3 and v1alpha2"),
        },
        Read::Absent | Read::Many(_) => missing,
    }))
}

fn gateway<'observed>(
    observed: &'observed Observed,
    reference: &GatewayReference,
) -> Found<&'observed GatewayFacts> {
    version(observed)?;
    let name = called(reference);
    Err(Box::new(match &observed.ways.gateway {
        Read::One(gateway) => return Ok(gateway),
        Read::Unknown(unknown) => unread(routes_ready::TYPE, &name, unknown),
        Read::Absent | Read::Many(_) => {
            routes_ready::NO_GATEWAY.waits(name).because("spec.gateway names it, and it does not exist")
        }
    }))
}

/// The listener that routes are attached to: the one that is named, else the first that takes them. If none does, what is
/// wrong with the one that comes closest.
fn listener<'observed>(
    observed: &'observed Observed,
    validated: &Validated<'_>,
) -> Found<&'observed ListenerFacts> {
    let reference = reference(validated)?;
    let gateway = gateway(observed, reference)?;
    let is_meant = |listener: &&ListenerFacts| {
        reference.section_name.as_ref().is_none_or(|section| *section == listener.name)
    };
    let mut closest: Option<(usize, Finding)> = None;
    for listener in gateway.listeners.iter().filter(is_meant) {
        let Some((stage, finding)) = unfit(observed, validated, reference, listener) else {
            return Ok(listener);
        };
        if closest.as_ref().is_none_or(|(reached, _)| *reached < stage) {
            closest = Some((stage, finding));
        }
    }
    let none = || {
        let on = reference.section_name.as_ref().map_or_else(
            || format!("a listener of {}", called(reference)),
            |section| format!("a listener {section} of {}", called(reference)),
        );
        routes_ready::NO_LISTENER.waits(on).because("spec.gateway asks for it, and there is none")
    };
    Err(Box::new(closest.map_or_else(none, |(_, finding)| finding)))
}

/// What keeps a listener from taking our routes, and how many demands it meets before that.
fn unfit(
    observed: &Observed,
    validated: &Validated<'_>,
    reference: &GatewayReference,
    listener: &ListenerFacts,
) -> Option<(usize, Finding)> {
    let name = format!("listener {} of {}", listener.name, called(reference));
    let found = |words: &str| format!("{name} {words}");
    let own = validated.names.namespace();
    let not_allowed = |why: String| {
        routes_ready::NOT_ALLOWED
            .waits(format!("allowedRoutes of {name} to admit namespace {own}"))
            .because(why)
    };
    let namespaces = || match &listener.allowed {
        Allowed::All => None,
        Allowed::Same if reference.namespace == own => None,
        Allowed::Same => Some(not_allowed("they admit the Gateway's own namespace only".to_owned())),
        Allowed::Nobody => Some(not_allowed("they admit no namespace".to_owned())),
        Allowed::Selected(selector) => match &observed.ways.namespace {
            Read::Unknown(unknown) => Some(unread(routes_ready::TYPE, &format!("Namespace {own}"), unknown)),
            read if read.iter().any(|namespace| namespace.is_selected(selector)) => None,
            _ => Some(not_allowed("their selector does not select its labels".to_owned())),
        },
    };
    let kinds = || {
        let on = format!("allowedRoutes of {name} to admit {ROUTE_KIND}");
        (!listener.allows_kind)
            .then(|| routes_ready::NOT_ALLOWED.waits(on).because("they admit other kinds only"))
    };
    let demands: [&dyn Fn() -> Option<Finding>; 5] = [
        &|| {
            let is_met = listener.protocol == "TLS";
            let why = found(&format!("has protocol {}", listener.protocol));
            (!is_met).then(|| {
                routes_ready::NOT_TLS.waits(format!("a TLS listener of {}", called(reference))).because(why)
            })
        },
        &|| {
            let on = format!("tls.mode Passthrough of {name}");
            let why = "the API server ends TLS itself, because it knows clients by their certificates";
            (!listener.is_passthrough).then(|| routes_ready::NOT_PASSTHROUGH.waits(on).because(why))
        },
        &|| {
            let on = format!("a wildcard such as *.clusters.example.com as hostname of {name}");
            listener
                .domain
                .is_none()
                .then(|| routes_ready::NO_WILDCARD.waits(on).because("control planes get names in it"))
        },
        &namespaces,
        &kinds,
    ];
    demands.iter().enumerate().find_map(|(stage, demand)| Some((stage, demand()?)))
}

/// Whether the listener takes our names, and whether they are names.
fn fit(validated: &Validated<'_>, listener: &ListenerFacts, domain: &str) -> Found<()> {
    let longest = host(validated, Exposed::Tunnel, domain);
    if !is_host_name(&longest) {
        let why = format!("{longest} has {} characters, and host names have 253 at most", longest.len());
        let on = "a shorter name of the Cluster, its namespace or the Gateway's wildcard";
        return Err(Box::new(routes_ready::NAME_TOO_LONG.waits(on).because(why)));
    }
    let outside = |on: String, why: String| Err(Box::new(routes_ready::HOST_OUTSIDE.waits(on).because(why)));
    let wildcard = listener.domain.clone().unwrap_or_default();
    // Also not below it: the name of another's namespace may be there.
    if wildcard != domain {
        let on = format!("a listener for *.{domain}");
        let why = format!(
            "nodes and kubeconfigs use names in {domain}, and listener {} has *.{wildcard}",
            listener.name
        );
        return outside(on, why);
    }
    let strange = given_names(validated).into_iter().find(|(_, name)| !is_own(validated, domain, name));
    match strange {
        Some((field, name)) => {
            let own = format!("{}.{domain}", validated.names.namespace());
            let why = format!("a route leads only names in {own} here, not {name}");
            outside(format!("a name in {own} as {field}"), why)
        }
        None => Ok(()),
    }
}

/// What keeps people from coming in through the Gateway.
fn state(observed: &Observed, validated: &Validated<'_>) -> Found<()> {
    let reference = reference(validated)?;
    let gateway = gateway(observed, reference)?;
    let listener = listener(observed, validated)?;
    let domain = domain(observed, validated)?;
    fit(validated, listener, &domain)?;
    working(observed, reference, gateway)?;
    for exposed in Exposed::BOTH {
        led(observed, validated, exposed, (reference, listener))?;
    }
    Ok(())
}

/// Whether the Gateway's own controller stands by it.
fn working(observed: &Observed, reference: &GatewayReference, gateway: &GatewayFacts) -> Found<()> {
    let name = called(reference);
    let class = &gateway.class;
    let not_accepted = |why: String| {
        routes_ready::CLASS_NOT_ACCEPTED
            .waits(format!("GatewayClass {class} of {name} to be accepted"))
            .because(why)
    };
    let finding = match &observed.ways.class {
        Read::Unknown(unknown) => unread(routes_ready::TYPE, &format!("GatewayClass {class}"), unknown),
        Read::Absent | Read::Many(_) => not_accepted("it does not exist".to_owned()),
        Read::One(facts) => match facts.accepted.as_ref().map(|verdict| (verdict.is_true, &verdict.words)) {
            Some((Some(true), _)) => return accepted(&name, gateway),
            Some((_, words)) => not_accepted(words.clone()),
            None => not_accepted("no controller says that it is its own".to_owned()),
        },
    };
    Err(Box::new(finding))
}

fn accepted(name: &str, gateway: &GatewayFacts) -> Found<()> {
    let words = |verdict: &Option<super::Verdict>| verdict.as_ref().map(|verdict| verdict.words.clone());
    let is = |verdict: &Option<super::Verdict>| verdict.as_ref().and_then(|verdict| verdict.is_true);
    Err(Box::new(match is(&gateway.accepted) {
        None => routes_ready::NOT_ANSWERED
            .waits(format!("the controller of {name}"))
            .because_of(words(&gateway.accepted)),
        Some(false) => routes_ready::GATEWAY_NOT_ACCEPTED
            .waits(format!("{name} to be accepted by its controller"))
            .because_of(words(&gateway.accepted)),
        // Some controllers serve without knowing by which address they are reached.
        Some(true) if !gateway.has_address && is(&gateway.programmed) != Some(true) => {
            routes_ready::NO_ADDRESS
                .waits(format!("an address of {name}"))
                .because_of(words(&gateway.programmed))
        }
        Some(true) => return Ok(()),
    }))
}

/// Whether a route leads where it should.
fn led(
    observed: &Observed,
    validated: &Validated<'_>,
    exposed: Exposed,
    (reference, listener): (&GatewayReference, &ListenerFacts),
) -> Found<()> {
    let name = format!("{ROUTE_KIND} {}", exposed.name(validated));
    let route = match route(observed, exposed) {
        Read::One(route) => route,
        Read::Unknown(unknown) => return Err(Box::new(unread(routes_ready::TYPE, &name, unknown))),
        Read::Absent | Read::Many(_) => return Err(Box::new(routes_ready::NOT_MADE.waits(name))),
    };
    let own = validated.names.namespace();
    let parent = route.parents.iter().find(|parent| {
        parent.name == reference.name
            && parent.namespace.as_deref().unwrap_or(own) == reference.namespace
            && parent.section.as_ref().is_none_or(|section| *section == listener.name)
    });
    let verdict = |verdict: Option<&super::Verdict>| verdict.and_then(|verdict| verdict.is_true);
    let words = |verdict: Option<&super::Verdict>| verdict.map(|verdict| verdict.words.clone());
    let accepted = parent.and_then(|parent| parent.accepted.as_ref());
    let resolved = parent.and_then(|parent| parent.resolved.as_ref());
    let gateway = called(reference);
    Err(Box::new(match (verdict(accepted), verdict(resolved)) {
        (Some(false), _) => routes_ready::NOT_ACCEPTED
            .waits(format!("{gateway} to accept {name}"))
            .because_of(words(accepted)),
        (_, Some(false)) => routes_ready::NOT_RESOLVED
            .waits(format!("{gateway} to find what {name} leads to"))
            .because_of(words(resolved)),
        (Some(true), _) => return Ok(()),
        (None, _) => routes_ready::NOT_ANSWERED
            .waits(format!("the controller of {gateway} to attach {name}"))
            .because_of(words(accepted)),
    }))
}
