//! `hangar plan`: shows what the controllers would do with some objects, without doing it.
//!
//! ```text
//! files -> admit -> overlay (nothing, or a live cluster) -> the controllers in turn, until nothing is written -> Preview
//! ```
//!
//! The controllers that run are the real ones (`reconcile::rehearse`), so a preview observes and plans as the manager
//! does. Offline the time is fixed, tenants and clouds are assumed ([`hangar_plan::flow::Planner::assume`]) and no
//! connection is opened. Otherwise the live cluster's objects, Secrets, tenants and clouds are read, and gates stop
//! every write before it is sent.

mod admit;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use hangar_api::cluster::v1beta2::Cluster;
use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_api::reference::is_kind;
use hangar_kit::call::{Call, CallGate, CallLog, ServerClock};
use hangar_kit::client::{ClientOptions, client};
use hangar_kit::leadership::Always;
use hangar_kit::metrics::Metrics;
use hangar_kit::overlay::{Overlay, Place, Written};
use hangar_plan::controllers::Controller;
use hangar_plan::install::DEFAULT_NAMESPACE;
use hangar_plan::limits::Limits;
use hangar_plan::namespaces::Namespaces;
use hangar_plan::openstack::SETTLING;
use hangar_plan::preview::{Change, Planned, Sides};
use jiff::Timestamp;
use kube::Config;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use admit::{Given, Refused};
pub use hangar_plan::preview::{Preview, render, to_yaml};

use crate::context::{Ambient, Context, Handles};
use crate::contracts::Contracts;
use crate::reconcile::{Rehearse, Scene, Taken, Told};
use crate::{Error, controllers};

/// No chain of objects is this long: each sweep settles at least one link.
const SWEEPS: usize = 32;
/// The order in which a cluster comes to life, so that few sweeps are needed and plans are shown in it. Controllers that
/// are not in it follow.
const ORDER: [Controller; 8] = [
    Controller::Cluster,
    Controller::OpenStackCluster,
    Controller::HostedControlPlane,
    Controller::MachineDeployment,
    Controller::MachineSet,
    Controller::Machine,
    Controller::KubeadmBootstrap,
    Controller::OpenStackMachine,
];
/// When offline previews happen.
const MOMENT: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// A live cluster to compare with; it is only read.
pub struct Against {
    pub config: Config,
    /// Every call to it is noted here.
    pub calls: CallLog,
}

impl Against {
    /// The cluster of a configuration.
    pub fn new(config: Config) -> Self {
        Self { config, calls: CallLog::default() }
    }
}

/// What the objects would lead to, offline or against a live cluster.
pub async fn preview(
    given: Vec<Given>,
    against: Option<Against>,
    limits: Arc<Limits>,
    namespaces: Namespaces,
) -> Result<Preview, Error> {
    let is_offline = against.is_none();
    let now = if is_offline { MOMENT } else { Timestamp::now() };
    let objects = admit::prepared(given)?;
    let overlay = match against {
        None => Overlay::offline(admit::definitions(), now, admit::admission()),
        Some(Against { config, calls }) => {
            let reading = ClientOptions::default().gate(ReadOnly { is_offline }).gate(calls);
            Overlay::live(client(config, &reading)?, now, admit::admission())
        }
    };
    let stop = CancellationToken::new();
    let _stores_end_with_us = stop.clone().drop_guard();
    for (given, object) in &objects {
        overlay.give(object.clone()).await.map_err(|why| given.refused(&why))?;
    }
    let mut preview = Preview::default();
    if is_offline {
        overlay.settle();
    } else {
        preview.given = changes(&overlay, overlay.since(0));
    }
    let context = context(&overlay, is_offline, now, (limits, namespaces), &stop).await?;
    preview.warnings = admit::validated(&context, &overlay, &objects, is_offline).await?;
    let clusters = clusters(&overlay, &objects).await?;
    let concerns = |share: &str| is_offline || clusters.contains(share);
    let scene = Scene { context: &context, overlay: &overlay, is_offline, concerns: &concerns };
    preview.plans = planned(&scene).await?;
    Ok(preview)
}

/// A manager's context over the overlay, with every CRD's contract known.
async fn context(
    overlay: &Overlay,
    is_offline: bool,
    now: Timestamp,
    (limits, namespaces): (Arc<Limits>, Namespaces),
    stop: &CancellationToken,
) -> Result<Context, Error> {
    let handles = Handles {
        client: overlay.client(),
        leadership: Arc::new(Always),
        metrics: Metrics::new(),
        clock: ServerClock::default(),
        namespaces,
        concurrency: 1,
        instance: "hangar-plan".to_owned(),
        tenant_gates: vec![Arc::new(ReadOnly { is_offline })],
        cloud_gates: vec![Arc::new(ReadOnly { is_offline })],
        // Its edge calls no member.
        etcd_gates: Vec::new(),
        settling: SETTLING,
        limits,
        image: Some("(the manager's image)".to_owned()),
        own_namespace: Some(DEFAULT_NAMESPACE.to_owned()),
    };
    let contracts = Contracts::of(&handles, stop);
    contracts.listed().await?;
    let ambient = if is_offline { Ambient::Fixed(now) } else { Ambient::Real };
    let context = Context { ambient, ..Context::new(handles, contracts, stop, stop) };
    context.watches.start_all();
    if is_offline {
        context.ways_in.assume();
    }
    context.listed().await?;
    Ok(context)
}

/// Runs the controllers in turn until none writes any more.
async fn planned(scene: &Scene<'_>) -> Result<Vec<Planned>, Error> {
    let mut controllers = rehearsed(scene.context);
    for _ in 0..SWEEPS {
        let before = scene.overlay.count();
        for controller in &mut controllers {
            controller.sweep(scene).await?;
        }
        if scene.overlay.count() == before {
            break;
        }
    }
    let told = controllers.iter().flat_map(|controller| controller.told());
    let mut plans: Vec<Planned> = told.map(|told| planned_of(scene.overlay, told)).collect();
    plans.retain(|plan| scene.is_offline || !plan.steps.is_empty() || !plan.changes.is_empty());
    Ok(plans)
}

fn planned_of(overlay: &Overlay, told: Told) -> Planned {
    Planned {
        kind: told.kind,
        namespace: told.place.namespace.unwrap_or_default(),
        name: told.place.name,
        steps: told.steps.iter().map(Taken::words).collect(),
        changes: changes(overlay, told.wrote),
        decisions: told.report.decisions,
        waits: told.report.waits,
    }
}

/// All controllers that a manager runs.
fn rehearsed(context: &Context) -> Vec<Box<dyn Rehearse>> {
    let mut all = Controller::ALL;
    all.sort_by_key(|controller| ORDER.iter().position(|placed| placed == controller).unwrap_or(ORDER.len()));
    all.into_iter().filter_map(controllers::ways).map(|ways| (ways.rehearsed)(context)).collect()
}

/// What writes mean, by object, in the order of the first write to each.
fn changes(overlay: &Overlay, writes: Vec<Written>) -> Vec<Change> {
    let latest = overlay.written();
    let mut objects: Vec<(Place, Vec<Sides>)> = Vec::new();
    for Written { place, before, after } in writes {
        let sides = Sides { before, after };
        match objects.iter_mut().find(|(present, _)| *present == place) {
            Some((_, all)) => all.push(sides),
            None => objects.push((place, vec![sides])),
        }
    }
    let of = |(place, sides): (Place, Vec<Sides>)| {
        let latest = latest.iter().find(|written| written.place == place);
        Change::of(&sides, latest.and_then(|written| written.after.as_ref()))
    };
    objects.into_iter().filter_map(of).collect()
}

/// The Clusters that the objects belong to, as `namespace/name`; all of a namespace where an object does not say.
async fn clusters(overlay: &Overlay, objects: &[(Given, Value)]) -> Result<BTreeSet<String>, Error> {
    let mut found = BTreeSet::new();
    for (given, object) in objects {
        let Some(place) = Place::of(object) else { continue };
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let now = overlay.get(&place, version).await.map_err(|why| given.refused(&why))?.unwrap_or_default();
        let owners = now["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        let text = |owner: &Value, field: &str| owner[field].as_str().unwrap_or_default().to_owned();
        let is_cluster =
            |owner: &&Value| is_kind::<Cluster>(&text(owner, "apiVersion"), &text(owner, "kind"));
        let owner = owners.iter().find(is_cluster).map(|owner| owner["name"].clone());
        let label = now["metadata"]["labels"][CLUSTER_NAME_LABEL].clone();
        let named = [label, now["spec"]["clusterName"].clone(), owner.unwrap_or_default()];
        let namespace = place.namespace.unwrap_or_default();
        found.insert(format!("{namespace}/{}", place.name));
        found.extend(named.iter().filter_map(Value::as_str).map(|name| format!("{namespace}/{name}")));
    }
    Ok(found)
}

/// Stops every write to a management cluster, a tenant or a cloud before it is sent, and offline every call. Nothing here
/// tries one; this holds if somebody forgets.
#[derive(Clone, Copy)]
struct ReadOnly {
    is_offline: bool,
}

impl ReadOnly {
    fn passes(self, is_write: bool) -> Result<(), &'static str> {
        match (self.is_offline, is_write) {
            (true, _) => Err("an offline preview calls nobody"),
            (false, true) => Err("a preview writes nothing"),
            (false, false) => Ok(()),
        }
    }
}

impl CallGate for ReadOnly {
    fn before(&self, call: &Call) -> Result<(), &'static str> {
        self.passes(call.verb.is_write())
    }
}

impl hangar_openstack::CallGate for ReadOnly {
    fn before(&self, call: &hangar_openstack::Call, _: Duration) -> Result<(), &'static str> {
        self.passes(call.verb.is_write())
    }
}
