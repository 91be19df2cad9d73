//! What every controller is given: clients, shared watches, leadership, metrics.
//!
//! Watches are started by the first controller that asks for them and shared by all, so a manager that runs a subset of
//! the controllers watches only what that subset needs.

mod ambient;
mod foreign;
mod kinds;
mod kubeconfigs;
mod neighbours;
mod reach;
mod watches;
mod ways_in;

use std::sync::Arc;
use std::time::Duration;

use hangar_kit::Error;
use hangar_kit::call::{CallGate, Room, ServerClock};
use hangar_kit::client::{TenantOptions, Tenants};
use hangar_kit::controller::ControllerBuilder;
use hangar_kit::event::Recorder;
use hangar_kit::leadership::Leadership;
use hangar_kit::metrics::Metrics;
use hangar_kit::tenant::Nodes;
use hangar_plan::controllers::Controller;
use hangar_plan::flow::Read;
use hangar_plan::hosted_control_plane::Material;
use hangar_plan::limits::Limits;
use hangar_plan::namespaces::Namespaces;
use kube::Client;
use tokio_util::sync::CancellationToken;

pub(crate) use ambient::Ambient;
pub(crate) use foreign::Foreign;
pub(crate) use kinds::{Facts, Kind, Text};
pub(crate) use kubeconfigs::{KubeconfigSecrets, facts as kubeconfig_facts, read as read_kubeconfig};
pub(crate) use neighbours::Neighbours;
pub(crate) use reach::Reach;
pub(crate) use watches::{SecretFacts, Watches};
pub(crate) use ways_in::{Touched, WaysIn};

use crate::clouds::Clouds;
use crate::contracts::Contracts;
use crate::reconcile::WRITE_LIMIT;

/// What a manager gives to its controllers.
#[derive(Clone)]
pub struct Handles {
    /// Of the management cluster. Writes are fenced already.
    pub client: Client,
    pub leadership: Arc<dyn Leadership>,
    /// Where controllers, watches and calls are counted.
    pub metrics: Metrics,
    /// The time by the management cluster's API server; a gate of its client.
    pub clock: ServerClock,
    /// Where objects are looked after.
    pub namespaces: Namespaces,
    /// At most this many reconciles of one controller at a time.
    pub concurrency: usize,
    /// Who we are, in events.
    pub instance: String,
    /// Who is asked about each call to a tenant.
    pub tenant_gates: Vec<Arc<dyn CallGate>>,
    /// Who is asked about each call to a cloud, besides the fence and the counters that every session has.
    pub cloud_gates: Vec<Arc<dyn hangar_openstack::CallGate>>,
    /// The same for each call to a member of etcd.
    pub etcd_gates: Vec<Arc<dyn hangar_etcd::CallGate>>,
    /// How long a cloud may still carry out a request whose answer was lost.
    pub settling: Duration,
    /// What control planes may ask for beyond their namespace.
    pub limits: Arc<Limits>,
    /// The image that the manager runs from, where it was told: audit proxies run from it, too.
    pub image: Option<String>,
    /// The namespace that managers run in: the one of their lease.
    pub own_namespace: Option<String>,
}

/// What every controller is given. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Context {
    /// The handles as they came.
    pub(crate) handles: Handles,
    /// Stores of the kinds we know, by kind.
    pub(crate) watches: Arc<Watches>,
    /// Stores of kinds that objects refer to, whoever owns them.
    pub(crate) foreign: Arc<Foreign>,
    /// Stores of what some ways in need: Gateways, routes, Nodes.
    pub(crate) ways_in: Arc<WaysIn>,
    /// Stores of kinds of other projects that the management cluster may have.
    pub(crate) neighbours: Arc<Neighbours>,
    /// Clients of tenants, from `<cluster>-kubeconfig`; the key is the Cluster's.
    pub(crate) tenants: Arc<Tenants<KubeconfigSecrets>>,
    /// Room for the answers of all tenants.
    pub(crate) room: Room,
    /// Nodes of tenants, as small facts, while somebody needs them.
    pub(crate) nodes: Arc<Nodes<KubeconfigSecrets>>,
    /// Sessions of clouds, from the Secrets that identity references name.
    pub(crate) clouds: Arc<Clouds>,
    /// Time and chance.
    pub(crate) ambient: Ambient,
    /// Ends the controllers; the stores outlive them.
    pub(crate) stop: CancellationToken,
}

impl Context {
    /// Nothing is started yet but what the handles hold.
    pub(crate) fn new(
        handles: Handles,
        contracts: Contracts,
        storing: &CancellationToken,
        stop: &CancellationToken,
    ) -> Self {
        let metrics = &handles.metrics.watch;
        let reach = Reach::new(handles.client.clone(), handles.namespaces.clone());
        let watches = Arc::new(Watches::new(reach.clone(), metrics.clone(), storing.clone()));
        let ways_in = WaysIn::new(reach.clone(), metrics.clone(), contracts.clone(), storing.clone());
        let neighbours = Neighbours::new(reach.clone(), metrics.clone(), contracts.clone(), storing.clone());
        let foreign = Foreign::new(reach, metrics.clone(), contracts, storing.clone());
        let source =
            KubeconfigSecrets::new(handles.client.clone(), Arc::clone(&watches), Material::Kubeconfig);
        let room = Room::default();
        let tenants = Arc::new(Tenants::new(source, tenant_options(&handles, &room)));
        let nodes = Nodes::new(Arc::clone(&tenants), stop);
        let clouds = Arc::new(Clouds::new(&handles));
        Self {
            watches,
            foreign: Arc::new(foreign),
            ways_in: Arc::new(ways_in),
            neighbours: Arc::new(neighbours),
            tenants,
            room,
            nodes,
            clouds,
            ambient: Ambient::Real,
            stop: stop.clone(),
            handles,
        }
    }

    /// Clients of tenants from another Secret, `<cluster>-<suffix>`.
    pub(crate) fn tenants_by(&self, material: Material) -> Arc<Tenants<KubeconfigSecrets>> {
        let client = self.handles.client.clone();
        let source = KubeconfigSecrets::new(client, Arc::clone(&self.watches), material);
        Arc::new(Tenants::new(source, tenant_options(&self.handles, &self.room)))
    }

    /// A kind of the management cluster, for writing.
    pub(crate) fn kind(&self, group: &str, kind: &str) -> Read<Kind> {
        if let Some(known) = self.watches.kind(group, kind) {
            return Read::One(known.with(self.foreign.started(group, kind)));
        }
        let known = self.ways_in.kind(group, kind).or_else(|| self.neighbours.kind(group, kind));
        known.unwrap_or_else(|| self.foreign.kind(group, kind))
    }

    /// Returns when every store that was started is listed, or one cannot be.
    pub(crate) async fn listed(&self) -> Result<(), Error> {
        self.watches.listed().await?;
        self.neighbours.listed().await?;
        self.foreign.listed().await
    }

    /// The client of the management cluster.
    pub(crate) fn client(&self) -> Client {
        self.handles.client.clone()
    }

    /// A controller with the manager's settings, to which roots and watches are added.
    pub(crate) fn builder(&self, controller: Controller) -> ControllerBuilder {
        ControllerBuilder::new(controller.name())
            .concurrency(self.handles.concurrency)
            .observer(Arc::new(self.handles.metrics.clone()))
    }

    /// Writes events in the name of a controller.
    pub(crate) fn recorder(&self, controller: Controller) -> Recorder {
        Recorder::new(self.client(), controller.name(), self.handles.instance.clone())
    }
}

fn tenant_options(handles: &Handles, room: &Room) -> TenantOptions {
    TenantOptions {
        gates: handles.tenant_gates.clone(),
        // Writes to tenants are fenced as well: none may outlast what the lease is certain to last.
        call_limit: WRITE_LIMIT,
        room: room.clone(),
        ..TenantOptions::default()
    }
}
