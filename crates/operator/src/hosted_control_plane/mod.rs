//! The controller of HostedControlPlanes: from the stores to an observation, from a plan to calls.
//!
//! It owns the HostedControlPlane's status, our finalizer on it, and everything that names it as controller: Secrets,
//! ConfigMaps, Services, workloads, budgets, policies; in the tenant, what carries the hash of what we desired. It decides
//! nothing: `hangar_plan::hosted_control_plane` does.
//!
//! One reconcile: observe, run the plan's steps (each fenced, each outcome folded), apply the last plan's objects, write
//! the status, say when to look again. A failed object or step stops no other.
//!
//! Invariants
//! - A key is created by POST and replaced only where the one that was seen is still there (uid and resourceVersion): two
//!   managers, or a stale store, can never mint over each other.
//! - Keys are in memory only while something is signed or written. Facts about them are annotations of their Secrets, and
//!   a watch of metadata is all that is kept.
//! - The tenant is called only when something is to be learned or done: what was seen is remembered for some minutes, and
//!   own writes are folded into it. A tenant that cannot be reached makes its part of the observation Unknown.
//! - Nothing changed means nothing is sent: objects, status and tenant alike.

mod fail;
mod look;
mod material;
mod mint;
mod objects;
mod observe;
mod reconcile;
mod run;
mod status;
mod watch;
mod workload;

use std::sync::Arc;

use hangar_kit::apply::Applier;
use hangar_kit::client::Tenants;
use hangar_kit::event::Recorder;
use hangar_plan::controllers::Controller;
use hangar_plan::hosted_control_plane::Material;
use tokio::task::JoinSet;

use crate::context::{Context, KubeconfigSecrets};
use look::Looks;
use material::Given;

/// The field manager of everything we write; it never changes.
const FIELD_MANAGER: &str = "hangar-hosted-control-plane";

/// The kind we are about, as references name it.
const KIND: &str = "HostedControlPlane";
const GROUP: &str = "controlplane.cluster.x-k8s.io";

/// What a reconcile works with.
struct ControlPlanes {
    context: Context,
    applier: Applier,
    recorder: Recorder,
    /// By our own kubeconfig, which exists before anybody else's.
    tenants: Arc<Tenants<KubeconfigSecrets>>,
    looks: Looks,
    given: Given,
}

/// Starts the controller.
pub(crate) fn spawn(context: &Context, running: &mut JoinSet<()>) {
    let controller = Controller::HostedControlPlane;
    let reconciler = ControlPlanes {
        applier: Applier::new(FIELD_MANAGER),
        recorder: context.recorder(controller),
        tenants: context.tenants_by(Material::OperatorAccess.suffix()),
        looks: Looks::default(),
        given: Given::default(),
        context: context.clone(),
    };
    let builder = watch::watched(context, context.builder(controller));
    let (leadership, stop) = (Arc::clone(&context.parts.leadership), context.stop.clone());
    running.spawn(async move {
        builder.run(reconciler, leadership, stop).await;
    });
}
