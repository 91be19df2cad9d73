//! Stores of what some ways in need besides Services: Gateways with their classes, our routes, Namespaces and Nodes.
//!
//! Each is started by the first control plane that needs it. The Gateway API is not part of Kubernetes: which versions of
//! a kind are served is read from its CRD, once for each version of that CRD as an object, which the watch of CRDs shows.
//! A manager of some namespaces has none of these stores: what has no namespace is not its to read.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use hangar_api::controlplane::v1alpha1::HostedControlPlane;
use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_kit::ObjectKey;
use hangar_kit::metrics::WatchMetrics;
use hangar_kit::queue::WorkQueue;
use hangar_kit::watch::{Change, Kept, Watch, WatchBuilder};
use hangar_plan::flow::Read;
use hangar_plan::hosted_control_plane::exposure::{
    ClassFacts, GATEWAY_GROUP, GatewayFacts, NamespaceFacts, NodeFacts, ROUTE_KIND, RouteApi, RouteVersion,
    SOME_NAMESPACES,
};
use k8s_openapi::api::core::v1::{Namespace, Node};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::{Api, Resource};
use tokio_util::sync::CancellationToken;

use super::{Kind, Reach};
use crate::contracts::Contracts;

/// The CRDs of the Gateway API that we need.
const GATEWAYS: &str = "gateways.gateway.networking.k8s.io";
const ROUTES: &str = "tlsroutes.gateway.networking.k8s.io";
/// Versions of Gateway and GatewayClass, the best first: they say the same where we look.
const GATEWAY_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// A pass waits this long for the first list of a store that it started, so that it does not plan from nothing.
const LIST_LIMIT: Duration = Duration::from_secs(5);

/// What has changed, for whom to wake.
pub(crate) enum Touched<'a> {
    /// This Gateway.
    Gateway(&'a ObjectKey),
    /// Something that all Gateways may depend on.
    GatewayApi,
    /// Routes of these control planes.
    Routes(Vec<ObjectKey>),
    /// The labels of this Namespace.
    Namespace(&'a str),
    Nodes,
}

type Mapper = Arc<dyn Fn(&Touched<'_>) -> Vec<ObjectKey> + Send + Sync>;

pub(crate) struct WaysIn {
    reach: Reach,
    metrics: WatchMetrics,
    contracts: Contracts,
    stop: CancellationToken,
    wakes: Arc<OnceLock<(WorkQueue<ObjectKey>, Mapper)>>,
    namespaces: OnceLock<Watch<PartialObjectMeta<Namespace>, NamespaceFacts>>,
    nodes: OnceLock<Watch<Node, NodeFacts>>,
    /// For previews without a cluster.
    is_assumed: OnceLock<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The versions that a CRD serves, with its own version when it was read.
    served: BTreeMap<&'static str, (String, Vec<String>)>,
    gateways: Option<Versioned<GatewayFacts>>,
    classes: Option<Versioned<ClassFacts>>,
    routes: Option<Versioned<DynamicObject>>,
}

/// A store of a kind in the version that was chosen.
struct Versioned<F> {
    resource: ApiResource,
    watch: Watch<DynamicObject, F>,
    stop: CancellationToken,
}

impl<F> Drop for Versioned<F> {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl WaysIn {
    pub(super) fn new(
        reach: Reach,
        metrics: WatchMetrics,
        contracts: Contracts,
        stop: CancellationToken,
    ) -> Self {
        Self {
            reach,
            metrics,
            contracts,
            stop,
            wakes: Arc::default(),
            namespaces: OnceLock::new(),
            nodes: OnceLock::new(),
            is_assumed: OnceLock::new(),
            state: Mutex::default(),
        }
    }

    /// Adds keys to a queue for each change, of stores that are started later as well. For one controller only.
    pub(crate) fn feed(
        &self,
        queue: &WorkQueue<ObjectKey>,
        mapper: impl Fn(&Touched<'_>) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) {
        if self.wakes.set((queue.clone(), Arc::new(mapper))).is_ok() {
            let wake = self.wake();
            self.contracts.each(move |name| {
                if name == GATEWAYS || name == ROUTES {
                    wake(&Touched::GatewayApi);
                }
            });
        }
    }

    /// Takes the Gateway API for installed: an offline preview has no cluster that could have it.
    pub(crate) fn assume(&self) {
        let _ = self.is_assumed.set(());
    }

    fn wake(&self) -> impl Fn(&Touched<'_>) + Send + Sync + 'static + use<> {
        let wakes = Arc::clone(&self.wakes);
        move |touched| {
            if let Some((queue, mapper)) = wakes.get() {
                for key in mapper(touched) {
                    queue.add(key);
                }
            }
        }
    }

    /// How routes are written.
    pub(crate) async fn route_api(&self) -> Read<RouteApi> {
        let served = self.served(ROUTES).await;
        let api = served.map(|served| RouteApi { version: RouteVersion::best(&served) });
        if !api.is_unknown() && api.iter().all(|api| api.version.is_none()) {
            self.state().routes = None;
        }
        api
    }

    /// A route of ours, as a whole.
    pub(crate) async fn route(
        &self,
        version: RouteVersion,
        key: &ObjectKey,
    ) -> Read<Arc<Kept<DynamicObject>>> {
        let routes = self.routes(version);
        listed(&routes).await;
        routes.get(key)
    }

    /// A Gateway, and its class.
    pub(crate) async fn gateway(
        &self,
        key: &ObjectKey,
    ) -> (Read<Arc<Kept<GatewayFacts>>>, Read<Arc<Kept<ClassFacts>>>) {
        let version = match self.served(GATEWAYS).await {
            Read::Unknown(unknown) => return (Read::Unknown(unknown.clone()), Read::Unknown(unknown)),
            served => served.iter().find_map(|served| {
                GATEWAY_VERSIONS.into_iter().find(|version| served.iter().any(|served| served == version))
            }),
        };
        let Some(version) = version else {
            let mut state = self.state();
            (state.gateways, state.classes) = (None, None);
            return (Read::Absent, Read::Absent);
        };
        let gateways = self.gateways(version);
        listed(&gateways).await;
        let gateway = gateways.get(key);
        let Read::One(found) = &gateway else {
            return (gateway, Read::unknown("there is no Gateway that names one"));
        };
        let classes = self.classes(version);
        listed(&classes).await;
        let class = classes.get(&ObjectKey::cluster(&*found.class));
        (gateway, class)
    }

    /// A Namespace.
    pub(crate) async fn namespace(&self, name: &str) -> Read<NamespaceFacts> {
        let Some(client) = self.reach.everywhere() else { return Read::unknown(SOME_NAMESPACES) };
        let watch = self.namespaces.get_or_init(|| {
            let api: Api<PartialObjectMeta<Namespace>> = Api::all(client);
            let watch = WatchBuilder::new("namespaces", api).project(&self.stop, |namespace| {
                NamespaceFacts { labels: namespace.metadata.labels.unwrap_or_default() }
            });
            self.subscribe(&watch, |change, wake| {
                if is_other(change) {
                    wake(&Touched::Namespace(&change.key.name));
                }
            });
            watch
        });
        listed(watch).await;
        watch.get(&ObjectKey::cluster(name)).map(|kept| kept.value.clone())
    }

    /// All Nodes.
    pub(crate) async fn nodes(&self) -> Read<NodeFacts> {
        let Some(client) = self.reach.everywhere() else { return Read::unknown(SOME_NAMESPACES) };
        let watch = self.nodes.get_or_init(|| {
            let api: Api<Node> = Api::all(client);
            let watch = WatchBuilder::new("nodes", api).project(&self.stop, |node| NodeFacts::of(&node));
            self.subscribe(&watch, |change, wake| {
                if is_other(change) {
                    wake(&Touched::Nodes);
                }
            });
            watch
        });
        listed(watch).await;
        watch.all().map(|kept| kept.value.clone())
    }

    /// Our routes as a kind to write, once they were read; nothing for other kinds.
    pub(super) fn kind(&self, group: &str, kind: &str) -> Option<Read<Kind>> {
        if group != GATEWAY_GROUP || kind != ROUTE_KIND {
            return None;
        }
        let state = self.state();
        let unread = || Read::unknown("how routes are written was not read yet");
        let routes = state.routes.as_ref();
        Some(routes.map_or_else(unread, |routes| {
            Read::One(Kind::new(routes.resource.clone(), vec![Box::new(routes.watch.clone())]))
        }))
    }

    /// The versions of a CRD that are served. Absent: there is no such CRD.
    async fn served(&self, name: &'static str) -> Read<Vec<String>> {
        let Some(client) = self.reach.everywhere() else { return Read::unknown(SOME_NAMESPACES) };
        if self.is_assumed.get().is_some() {
            return Read::One(vec![RouteVersion::V1.as_str().to_owned()]);
        }
        let present = match self.contracts.definition(name) {
            Read::One(version) => version,
            Read::Unknown(unknown) => return Read::Unknown(unknown),
            Read::Absent | Read::Many(_) => return Read::Absent,
        };
        if let Some((_, served)) = self.state().served.get(name).filter(|(read, _)| *read == present) {
            return Read::One(served.clone());
        }
        let api: Api<CustomResourceDefinition> = Api::all(client);
        match api.get_opt(name).await {
            Ok(Some(definition)) => {
                let served = definition.spec.versions.into_iter().filter(|version| version.served);
                let served: Vec<String> = served.map(|version| version.name).collect();
                self.state().served.insert(name, (present, served.clone()));
                Read::One(served)
            }
            Ok(None) => Read::Absent,
            Err(error) => Read::unknown(error.to_string()),
        }
    }

    fn routes(&self, version: RouteVersion) -> Watch<DynamicObject> {
        let resource = resource(version.as_str(), ROUTE_KIND, "tlsroutes");
        self.versioned(
            |state| &mut state.routes,
            resource,
            |resource, stop| {
                let builder = WatchBuilder::over("tlsroutes", self.reach.dynamic(resource));
                builder.index_label(CLUSTER_NAME_LABEL).labels(CLUSTER_NAME_LABEL).start(stop)
            },
            |change, wake| wake(&Touched::Routes(change.controllers::<HostedControlPlane>())),
        )
    }

    fn gateways(&self, version: &str) -> Watch<DynamicObject, GatewayFacts> {
        self.versioned(
            |state| &mut state.gateways,
            resource(version, "Gateway", "gateways"),
            |resource, stop| {
                let builder = WatchBuilder::over("gateways", self.reach.dynamic(resource));
                builder.project(stop, |gateway| GatewayFacts::of(&gateway))
            },
            |change, wake| {
                if is_other(change) {
                    wake(&Touched::Gateway(&change.key));
                }
            },
        )
    }

    fn classes(&self, version: &str) -> Watch<DynamicObject, ClassFacts> {
        self.versioned(
            |state| &mut state.classes,
            resource(version, "GatewayClass", "gatewayclasses"),
            |resource, stop| {
                let builder = WatchBuilder::over("gatewayclasses", self.reach.dynamic(resource));
                builder.project(stop, |class| ClassFacts::of(&class))
            },
            |change, wake| {
                if is_other(change) {
                    wake(&Touched::GatewayApi);
                }
            },
        )
    }

    /// The store of a kind in a version; that of another version ends.
    fn versioned<F: Send + Sync + 'static>(
        &self,
        place: impl FnOnce(&mut State) -> &mut Option<Versioned<F>>,
        resource: ApiResource,
        start: impl FnOnce(&ApiResource, &CancellationToken) -> Watch<DynamicObject, F>,
        touch: impl Fn(&Change<F>, &dyn Fn(&Touched<'_>)) + Send + Sync + 'static,
    ) -> Watch<DynamicObject, F> {
        let mut state = self.state();
        let place = place(&mut state);
        if let Some(present) = place.as_ref().filter(|present| present.resource.version == resource.version) {
            return present.watch.clone();
        }
        let stop = self.stop.child_token();
        let watch = start(&resource, &stop);
        *place = Some(Versioned { resource, watch: watch.clone(), stop });
        drop(state);
        self.subscribe(&watch, touch);
        watch
    }

    fn subscribe<K: Resource + 'static, F: Send + Sync + 'static>(
        &self,
        watch: &Watch<K, F>,
        touch: impl Fn(&Change<F>, &dyn Fn(&Touched<'_>)) + Send + Sync + 'static,
    ) {
        let counted = watch.clone();
        self.metrics.add(watch.name(), move || counted.stats());
        let wake = self.wake();
        watch.each(move |change| touch(change, &wake));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for the first list, but not for long. What is not there then is unknown.
async fn listed<K: Resource + 'static, F: Send + Sync + 'static>(watch: &Watch<K, F>) {
    let _ = tokio::time::timeout(LIST_LIMIT, watch.listed()).await;
}

/// Whether something that we keep is another now: most changes are heartbeats.
fn is_other<F: PartialEq>(change: &Change<F>) -> bool {
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => before.value != after.value || before.uid != after.uid,
        _ => true,
    }
}

fn resource(version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: GATEWAY_GROUP.to_owned(),
        version: version.to_owned(),
        api_version: format!("{GATEWAY_GROUP}/{version}"),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}
