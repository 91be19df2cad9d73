//! Crash sweep: the controller is killed after each of its writes, and must reach the same end as without.

use std::collections::BTreeSet;
use std::time::Duration;

use hangar_api::controlplane::v1alpha1::{ExposureType, HostedControlPlane};
use hangar_kit::call::Call;
use hangar_kit::metrics::Metrics;
use hangar_operator::controllers;
use hangar_plan::namespaces::Namespaces;
use hangar_testbed::sweep::{Extent, Manager as Swept, Scenario, Sweep};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::actor::Actor;
use super::gateway::{self, Serving, Shared};
use super::lifecycle::{fingerprints, nothing_is_left};
use super::world::{CONTROLLER, Manager, SWEPT, World, eventually, handles, is_at_rest, spec, turn_to_sweep};
use crate::rights;

/// Which part of a life is swept.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Life {
    Birth,
    /// Behind a Gateway, whose controller accepts everything.
    BirthBehindGateway,
    /// From one way in to another, under a name that people gave.
    Change(ExposureType, ExposureType),
    Death,
}

/// What is so at every end, where no API server runs.
const ALIVE: [&str; 4] = [
    "condition EtcdClusterHealthy True",
    "condition APIServerReady False NoneReady",
    "condition EndpointReady True",
    "condition ScalingUp False",
];
/// And at the end of a birth. After a change API servers are replaced, which those that do not run never are.
const BORN: &str = "condition RollingOut False";

impl Scenario for Life {
    type World = (World, Actor, Option<Serving>);
    type State = BTreeSet<String>;

    async fn prepare(&self) -> Self::World {
        wait(self.prepared())
    }

    fn aliases(&self, (world, ..): &Self::World) -> Vec<(String, String)> {
        vec![(world.namespace.clone(), "ns".to_owned())]
    }

    fn manager(&self, _: &Self::World, client: Client) -> Swept {
        let metrics = Metrics::new();
        let handles = handles(client, &metrics, None);
        let main = async move {
            controllers::run(handles, &CONTROLLER.parse().unwrap(), CancellationToken::new()).await.unwrap();
        };
        Swept::new(main, move || is_at_rest(&metrics))
    }

    async fn snapshot(&self, (world, ..): &Self::World) -> Self::State {
        wait(self.seen(world))
    }

    fn is_end(&self, state: &Self::State) -> bool {
        match self {
            // What pods there are is told by the cluster's controllers.
            Self::Birth | Self::BirthBehindGateway => is_born(state, self.way()),
            Self::Change(_, after) => is_reached_by(state, *after),
            Self::Death => state.is_empty(),
        }
    }
}

/// Async closures in a future make it impossible to say that it may move between threads.
pub(super) fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(future))
}

/// Whether everything is there that a control plane has which is reached in this way, and nothing of another way.
fn is_reached_by(state: &BTreeSet<String>, way: ExposureType) -> bool {
    let is_there = |wanted: &str| state.iter().any(|line| line.starts_with(wanted));
    let is_behind_gateway = way == ExposureType::Gateway;
    // Pods of the tenant connect to a load balancer beside a Gateway.
    let service = if is_behind_gateway { ExposureType::LoadBalancer } else { way };
    ALIVE.iter().all(|wanted| is_there(wanted))
        && is_there(&format!("Service api-demo {service:?}"))
        && is_there("TLSRoute") == is_behind_gateway
        && (!is_behind_gateway || is_there("condition RoutesReady True"))
}

fn is_born(state: &BTreeSet<String>, way: ExposureType) -> bool {
    state.iter().any(|line| line.starts_with(BORN)) && is_reached_by(state, way)
}

impl Life {
    /// How it is reached at first.
    fn way(self) -> ExposureType {
        match self {
            Self::Birth | Self::Death => ExposureType::LoadBalancer,
            Self::BirthBehindGateway => ExposureType::Gateway,
            Self::Change(before, _) => before,
        }
    }

    async fn prepared(self) -> (World, Actor, Option<Serving>) {
        let world = World::new_in(&SWEPT, "crash").await;
        let actor = Actor::start(&world);
        actor.run("etcd");
        let is_behind_gateway = |way: ExposureType| way == ExposureType::Gateway;
        let mut shared = None;
        if is_behind_gateway(self.way()) || matches!(self, Self::Change(_, after) if is_behind_gateway(after))
        {
            gateway::install(&world, &["v1alpha3", "v1alpha2"]).await;
            shared = Some(Shared::create(&world, json!({"from": "All"})).await);
        }
        let serving = match &shared {
            Some(shared) => Some(shared.serve("v1alpha2").await),
            None => None,
        };
        let mut wanted = spec();
        let way = reached_by(self.way(), shared.as_ref());
        wanted.as_object_mut().unwrap().extend(way.as_object().unwrap().clone());
        if let Self::Change(..) = self {
            // A Gateway leads names of the namespace only.
            let host = format!("api.{}.clusters.example.com", world.namespace);
            wanted["controlPlaneEndpoint"] = json!({"host": host, "port": 443});
        }
        world.apply(wanted).await;
        if let Self::Change(before, after) = self {
            let manager = Manager::start_in(&world.bed);
            eventually("it is reached in the former way", async || is_born(&describe(&world).await, before))
                .await;
            manager.rest().await;
            manager.stop().await;
            let other = Patch::Merge(json!({"spec": reached_by(after, shared.as_ref())}));
            let api = world.api::<HostedControlPlane>();
            api.patch("demo", &PatchParams::default(), &other).await.unwrap();
        }
        if self == Self::Death {
            let manager = Manager::start_in(&world.bed);
            eventually("it lives", async || world.names::<Deployment>().await == ["demo-apiserver"]).await;
            manager.rest().await;
            manager.stop().await;
            world.delete().await;
        }
        (world, actor, serving)
    }

    async fn seen(self, world: &World) -> BTreeSet<String> {
        if self == Self::Death {
            let left = world.api::<HostedControlPlane>().get_opt("demo").await.unwrap();
            if left.is_some() {
                return BTreeSet::from(["HostedControlPlane".to_owned()]);
            }
            // The garbage collector comes after us.
            nothing_is_left(world).await;
            return BTreeSet::new();
        }
        describe(world).await
    }
}

/// The part of a spec that says how it is reached; null is for what only another way has.
fn reached_by(way: ExposureType, shared: Option<&Shared>) -> Value {
    let node_port = (way == ExposureType::NodePort).then(|| json!({"addresses": ["192.0.2.7"]}));
    let gateway = shared.filter(|_| way == ExposureType::Gateway).map(Shared::reference);
    json!({"gateway": gateway, "exposure": {"type": way, "nodePort": node_port}})
}

/// Everything there is, without what is random: keys, uids, times.
pub(super) async fn describe(world: &World) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut add = |kind: &str, names: Vec<String>| {
        all.extend(names.into_iter().map(|name| format!("{kind} {name}")));
    };
    add("Secret", fingerprints(world).await.into_keys().collect());
    add("ConfigMap", world.names::<ConfigMap>().await);
    add("Service", services(world).await);
    add("StatefulSet", world.names::<StatefulSet>().await);
    add("Deployment", world.names::<Deployment>().await);
    add("PodDisruptionBudget", world.names::<PodDisruptionBudget>().await);
    add("NetworkPolicy", world.names::<NetworkPolicy>().await);
    add("TLSRoute", gateway::route_names(world).await);
    let control_plane = world.control_plane().await;
    let endpoint = control_plane.spec.settings.control_plane_endpoint.clone().unwrap_or_default();
    let recorded: Vec<_> = control_plane
        .annotations()
        .iter()
        .filter(|(name, _)| name.contains("hangar"))
        .map(|(name, _)| name)
        .collect();
    let finalizers = control_plane.finalizers();
    add("control plane", vec![format!("at {endpoint}, finalizers {finalizers:?}, recorded {recorded:?}")]);
    let infrastructure =
        world.api::<hangar_api::infrastructure::v1beta1::OpenStackCluster>().get("demo").await;
    let infrastructure = serde_json::to_value(infrastructure.unwrap().spec).unwrap();
    add("infrastructure", vec![infrastructure["controlPlaneEndpoint"].to_string()]);
    let conditions = control_plane.status.unwrap_or_default().conditions.into_iter();
    add(
        "condition",
        conditions.map(|found| format!("{} {} {}", found.type_, found.status, found.reason)).collect(),
    );
    // Names behind a Gateway have it in them.
    all.into_iter().map(|line| line.replace(&world.namespace, "ns")).collect()
}

/// Names of the Services, each with its type.
async fn services(world: &World) -> Vec<String> {
    let all = world.api::<Service>().list(&ListParams::default()).await.unwrap();
    let shape =
        |service: &Service| service.spec.as_ref().and_then(|spec| spec.type_.clone()).unwrap_or_default();
    all.iter().map(|service| format!("{} {}", service.name_any(), shape(service))).collect()
}

/// Writes that every run makes under the same name. How often a status is written depends on when others act, and pods
/// have random names.
pub(super) fn is_point(call: &Call) -> bool {
    let is_by_chance = call.resource.ends_with("/status")
        || ["pods", "events.events.k8s.io"].contains(&call.resource.as_str());
    call.verb.is_write() && !is_by_chance
}

async fn sweep(life: Life, cases: usize) {
    let _turn = turn_to_sweep().await;
    swept(life, Extent::sample(cases, Duration::from_secs(60), 1)).await;
}

async fn swept(life: Life, extent: Extent) {
    let config = rights::config(&SWEPT, CONTROLLER, &Namespaces::All);
    let report = Sweep::new(config, extent).counting(is_point).run(&life).await.unwrap();
    eprintln!("{life:?}: {report}");
    assert_eq!(report.verdict(), Ok(()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_while_it_is_made_leads_to_the_same_control_plane() {
    sweep(Life::Birth, 8).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_while_it_is_made_behind_a_gateway_leads_to_the_same_routes() {
    sweep(Life::BirthBehindGateway, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_while_it_is_deleted_leaves_nothing() {
    sweep(Life::Death, 4).await;
}

/// From each way to each other one. The sample has one that leaves a Gateway.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_while_the_way_in_changes_leads_to_the_same_way() {
    use ExposureType::{ClusterIP, Gateway, LoadBalancer, NodePort};
    let _turn = turn_to_sweep().await;
    let extent = Extent::sample(2, Duration::from_secs(60), 1);
    if extent != Extent::All {
        return swept(Life::Change(Gateway, NodePort), extent).await;
    }
    for before in [Gateway, LoadBalancer, NodePort, ClusterIP] {
        for after in [Gateway, LoadBalancer, NodePort, ClusterIP] {
            if before != after {
                swept(Life::Change(before, after), extent.clone()).await;
            }
        }
    }
}
