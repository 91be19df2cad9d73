//! Crash sweep: the controller is killed after each of its writes, and must reach the same end as without.

use std::collections::BTreeSet;
use std::time::Duration;

use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use hangar_kit::call::Call;
use hangar_kit::metrics::Metrics;
use hangar_operator::controllers;
use hangar_plan::namespaces::Namespaces;
use hangar_testbed::sweep::{Extent, Manager as Swept, Scenario, Sweep};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::{Client, ResourceExt as _};
use tokio_util::sync::CancellationToken;

use super::actor::Actor;
use super::gateway::{self, Serving, Shared};
use super::lifecycle::{fingerprints, nothing_is_left};
use super::world::{BED, CONTROLLER, Manager, World, eventually, handles, is_at_rest, spec, turn};
use crate::rights;

/// Which part of a life is swept.
#[derive(Clone, Copy, PartialEq)]
enum Life {
    Birth,
    /// Behind a Gateway, whose controller accepts everything.
    BirthBehindGateway,
    Death,
}

/// What is so at the end of a birth in which no API server runs.
const BORN: [&str; 5] = [
    "condition EtcdClusterHealthy True",
    "condition APIServerReady False NoneReady",
    "condition EndpointReady True",
    "condition RollingOut False",
    "condition ScalingUp False",
];

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
            Self::Birth | Self::BirthBehindGateway => {
                let routes = (*self == Self::BirthBehindGateway).then_some("condition RoutesReady True");
                let wanted = BORN.iter().copied().chain(routes);
                wanted.into_iter().all(|wanted| state.iter().any(|line| line.starts_with(wanted)))
            }
            Self::Death => state.is_empty(),
        }
    }
}

/// Async closures in a future make it impossible to say that it may move between threads.
fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(future))
}

impl Life {
    async fn prepared(self) -> (World, Actor, Option<Serving>) {
        let world = World::new("crash").await;
        let actor = Actor::start(&world);
        actor.run("etcd");
        let (mut wanted, mut serving) = (spec(), None);
        if self == Self::BirthBehindGateway {
            gateway::install(&world, &["v1alpha3", "v1alpha2"]).await;
            let shared = Shared::create(&world, serde_json::json!({"from": "All"})).await;
            wanted["gateway"] = shared.reference();
            serving = Some(shared.serve("v1alpha2").await);
        }
        world.apply(wanted).await;
        if self == Self::Death {
            let manager = Manager::start();
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

/// Everything there is, without what is random: keys, uids, times.
async fn describe(world: &World) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut add = |kind: &str, names: Vec<String>| {
        all.extend(names.into_iter().map(|name| format!("{kind} {name}")));
    };
    add("Secret", fingerprints(world).await.into_keys().collect());
    add("ConfigMap", world.names::<ConfigMap>().await);
    add("Service", world.names::<Service>().await);
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

/// Writes that every run makes under the same name. How often a status is written depends on when others act, and pods
/// have random names.
fn is_point(call: &Call) -> bool {
    let is_by_chance = call.resource.ends_with("/status")
        || ["pods", "events.events.k8s.io"].contains(&call.resource.as_str());
    call.verb.is_write() && !is_by_chance
}

async fn sweep(life: Life, cases: usize) {
    let _turn = turn().await;
    let extent = Extent::sample(cases, Duration::from_secs(60), 1);
    let config = rights::config(&BED, CONTROLLER, &Namespaces::All);
    let report = Sweep::new(config, extent).counting(is_point).run(&life).await.unwrap();
    eprintln!("{report}");
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
