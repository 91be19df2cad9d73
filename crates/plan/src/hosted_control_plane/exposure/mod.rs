//! Plans how the API server and the tunnel's server are reached: a Service for each, routes where a Gateway leads to
//! them, and what follows from their addresses.
//!
//! `reach` and `manager` are the only places that say where users, nodes, agents of the tunnel, the tenant's own
//! pods and the manager connect to. Each way in is a file that implements `Way`; `way` chooses it. A new one is a new
//! file; the compiler asks for its place in `way`, and `docs/contributing.md` names what reads more for it.
//!
//! The tunnel has a Service of its own because agents must reach a new pod before it is ready: otherwise every request
//! through a new API server fails until they have found it. Readiness never depends on agents, because agents need
//! nodes, and nodes need an API server that is ready.

mod cluster_ip;
mod facts;
mod gateway;
mod load_balancer;
mod node_port;
mod record;
mod route;

use std::net::IpAddr;

use hangar_api::conditions::{Actor, Finding, Waiting};
use hangar_api::contract::Endpoint;
use hangar_api::controlplane::v1alpha1::{
    ExposureType, GatewayReference, HostedControlPlane, HostedControlPlaneSettings,
};
use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::names::Component;
use super::observed::{Observed, ServiceFacts};
use super::validate::{API_SERVER_PORT, KONNECTIVITY_PORT, Validated};
use super::{Draft, READ_AGAIN, step};
use crate::conditions::shared::unreadable;
use crate::conditions::who::MANAGEMENT_CLUSTER;
use crate::flow::Read;
use crate::pieces::{self, service_port};

pub use facts::{
    Allowed, ClassFacts, GatewayFacts, ListenerFacts, NamespaceFacts, NodeFacts, ParentFacts, RouteApi,
    RouteFacts, RouteVersion, SOME_NAMESPACES, Verdict, Ways, is_target,
};
pub(crate) use record::{RecordedWay, asked, chosen};
pub use route::{GATEWAY_GROUP, ROUTE_KIND};

/// The two Services.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exposed {
    Api,
    Tunnel,
}

impl Exposed {
    const BOTH: [Self; 2] = [Self::Api, Self::Tunnel];

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

    /// Of the Service, and of its routes.
    fn name(self, validated: &Validated<'_>) -> String {
        match self {
            Self::Api => validated.names.api_server_service(),
            Self::Tunnel => validated.names.konnectivity_service(),
        }
    }

    /// Of the Service, and of the pods.
    fn ports(self, validated: &Validated<'_>) -> (u16, u16) {
        match self {
            Self::Api => (validated.port, API_SERVER_PORT),
            Self::Tunnel => (KONNECTIVITY_PORT, KONNECTIVITY_PORT),
        }
    }
}

/// One way in.
trait Way {
    /// Where a server is reached from the outside, or what is waited for.
    fn address(
        &self,
        observed: &Observed,
        validated: &Validated<'_>,
        exposed: Exposed,
    ) -> Result<Endpoint, Waiting>;

    /// What stands behind the `kubernetes` Service of the tenant: addresses only.
    fn targets(&self, observed: &Observed, validated: &Validated<'_>) -> Result<Vec<IpAddr>, Waiting>;

    /// Makes a Service one of this way.
    fn shape(
        &self,
        validated: &Validated<'_>,
        exposed: Exposed,
        metadata: &mut ObjectMeta,
        spec: &mut ServiceSpec,
    );

    /// The port behind the `kubernetes` Service, where it is not that of the address.
    fn target_port(&self, _: &Validated<'_>) -> Option<i32> {
        None
    }

    /// Whether the port that was promised to people is the Service's.
    fn is_service_reached(&self) -> bool {
        false
    }

    /// What has to be read for it.
    fn needs(&self, _: &Observed, _: &HostedControlPlaneSettings) -> Needs {
        Needs::default()
    }

    /// Makes what it needs beside the Services, and says how that is.
    fn draft(&self, _: &mut Draft<'_>, _: &Validated<'_>) {}

    /// What keeps people out though they know where to connect to.
    fn obstacle(&self, _: &Observed, _: &Validated<'_>) -> Option<Finding> {
        None
    }

    /// Names that lead to a server besides the endpoint's.
    fn names(&self, _: &Observed, _: &Validated<'_>, _: Exposed) -> Vec<String> {
        Vec::new()
    }

    /// Whether names may be missing because something could not be read.
    fn is_unread(&self, _: &Observed, _: &Validated<'_>) -> bool {
        false
    }

    /// The domain that its names are in, where it gives names.
    fn domain(&self, _: &Observed, _: &Validated<'_>) -> Option<String> {
        None
    }

    /// Who had an address that was published, and all that it has now; nothing where it gives none of its own.
    fn present(&self, _: &Observed, _: &Validated<'_>) -> Option<(&'static str, Vec<IpAddr>)> {
        None
    }
}

fn way(exposure: ExposureType) -> &'static dyn Way {
    match exposure {
        ExposureType::Gateway => &gateway::Gateway,
        ExposureType::LoadBalancer => &load_balancer::LoadBalancer,
        ExposureType::NodePort => &node_port::NodePort,
        ExposureType::ClusterIP => &cluster_ip::ClusterIp,
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
    let way = way(validated.exposure);
    let api = way.address(observed, validated, Exposed::Api)?;
    let given = given(validated);
    // Where people were told to connect stays, whatever the load balancer says now.
    let people = Endpoint {
        host: Some(given.host).filter(|host| !host.is_empty()).unwrap_or_else(|| api.host.clone()),
        port: Some(given.port).filter(|port| *port != 0).unwrap_or(api.port),
    };
    let nodes = Endpoint { host: node_host(validated).unwrap_or(&people.host).clone(), port: people.port };
    // A name leads to one place: where the tunnel has an address of its own, agents go by that.
    let agents = way.address(observed, validated, Exposed::Tunnel).map(|own| Endpoint {
        host: if own.host == api.host { nodes.host.clone() } else { own.host },
        port: own.port,
    });
    let mut targets = way.targets(observed, validated)?;
    targets.sort_unstable();
    targets.dedup();
    let target_port = way.target_port(validated).unwrap_or(api.port);
    Ok(Reach { people, nodes, agents, targets, target_port })
}

/// What keeps people out though they know where to connect to.
pub(super) fn obstacle(observed: &Observed, validated: &Validated<'_>) -> Option<Finding> {
    way(validated.exposure).obstacle(observed, validated)
}

/// Names that lead to the API server besides the endpoint's.
pub(super) fn names(observed: &Observed, validated: &Validated<'_>) -> Vec<String> {
    way(validated.exposure).names(observed, validated, Exposed::Api)
}

/// Names that lead to the tunnel's server, which are known before its address is.
pub(super) fn tunnel_names(observed: &Observed, validated: &Validated<'_>) -> Vec<String> {
    way(validated.exposure).names(observed, validated, Exposed::Tunnel)
}

/// Whether names may be missing because something could not be read.
pub(super) fn is_unread(observed: &Observed, validated: &Validated<'_>) -> bool {
    way(validated.exposure).is_unread(observed, validated)
}

/// Whether the endpoint is an address that whoever gave it no longer has: who it was, and the addresses that it has now.
/// A name may lead anywhere.
pub(super) fn moved(
    observed: &Observed,
    validated: &Validated<'_>,
    endpoint: &Endpoint,
) -> Option<(&'static str, Vec<IpAddr>)> {
    let address = endpoint.host.parse().ok()?;
    let (whose, present) = way(validated.exposure).present(observed, validated)?;
    (!present.is_empty() && !present.contains(&address)).then_some((whose, present))
}

/// Whether the port that was promised to people is the Service's.
pub(super) fn is_service_reached(exposure: ExposureType) -> bool {
    way(exposure).is_service_reached()
}

/// What has to be read for the way in, besides Services and routes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs {
    /// The Gateway.
    pub gateway: Option<GatewayReference>,
    /// The management cluster's Nodes.
    pub nodes: bool,
    /// The addresses that a name leads to.
    pub name: Option<String>,
}

/// How a control plane is reached; nothing where its record cannot be read.
pub fn of(control_plane: &HostedControlPlane) -> Option<ExposureType> {
    let recorded = RecordedWay::recorded(control_plane).ok()?;
    Some(chosen(recorded.as_ref(), &control_plane.spec.settings))
}

/// What has to be read for the way in of a control plane.
pub fn needs(observed: &Observed) -> Needs {
    let control_plane = &observed.control_plane;
    of(control_plane)
        .map(|exposure| way(exposure).needs(observed, &control_plane.spec.settings))
        .unwrap_or_default()
}

/// The way in as it is to be recorded, where it is not recorded so. Once people know an endpoint it has to stay.
pub(super) fn to_record(observed: &Observed, validated: &Validated<'_>) -> Option<RecordedWay> {
    let way = way(validated.exposure);
    let api = way.address(observed, validated, Exposed::Api).ok()?;
    let given = given(validated).host;
    let is_name_given = match &validated.way {
        Some(recorded) => recorded.is_name_given,
        None => !given.is_empty() && given != api.host && given.parse::<IpAddr>().is_err(),
    };
    let domain = way.domain(observed, validated);
    let wanted = RecordedWay { type_: validated.exposure, domain, is_name_given };
    (validated.way.as_ref() != Some(&wanted)).then_some(wanted)
}

pub(super) fn draft(draft: &mut Draft<'_>, validated: &Validated<'_>) {
    for exposed in Exposed::BOTH {
        draft.apply(&service(validated, exposed));
        if exposed.facts(draft.observed).is_ok_and(|facts| facts.is_deleting) {
            let on = "the Service to be gone, so that it can be made again";
            draft.report.wait(Waiting::new(MANAGEMENT_CLUSTER, on));
        }
    }
    if validated.exposure != ExposureType::Gateway {
        gateway::leave(draft, validated);
    }
    way(validated.exposure).draft(draft, validated);
}

/// The endpoint that was given or published; half or empty while there is none.
fn given(validated: &Validated<'_>) -> Endpoint {
    validated.settings.control_plane_endpoint.clone().unwrap_or_default()
}

fn parsed<'text>(texts: impl IntoIterator<Item = &'text String>) -> Vec<IpAddr> {
    texts.into_iter().filter_map(|text| text.parse().ok()).collect()
}

fn service(validated: &Validated<'_>, exposed: Exposed) -> Service {
    let (port, target) = exposed.ports(validated);
    let mut metadata = validated.metadata(exposed.name(validated), Component::ApiServer);
    let port = service_port(exposed.port_name(), port, "TCP");
    let mut spec = ServiceSpec {
        selector: Some(validated.selector(Component::ApiServer)),
        publish_not_ready_addresses: (exposed == Exposed::Tunnel).then_some(true),
        ports: Some(vec![ServicePort { target_port: Some(IntOrString::Int(target.into())), ..port }]),
        ..ServiceSpec::default()
    };
    way(validated.exposure).shape(validated, exposed, &mut metadata, &mut spec);
    pieces::service(metadata, spec)
}
