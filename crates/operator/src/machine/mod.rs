//! The controller of Machines.
//!
//! It owns the Machine's finalizer, the facts in its spec that come from providers, and its status; on the objects that
//! the Machine refers to, an owner reference and a label; on its Node, labels, annotations and the removal of the first
//! taint. One watch of the tenant's Nodes serves all Machines of that tenant. Pods are read live, while a Node is
//! drained.

mod observe;
mod run;
mod watch;

use hangar_api::cluster::v1beta2::{Machine, MachineStatus};
use hangar_kit::error::Error;
use hangar_kit::watch::{Kept, Watch};
use hangar_plan::controllers::Controller;
use hangar_plan::machine::{NodeStep, Observed, TenantRead};
use kube::Client;
use tokio::task::JoinSet;

use crate::context::{Context, Watches};
use crate::reconcile::{self, Case, Edge, Rehearsal, Rehearse};

/// It keeps nothing between passes.
struct Machines;

/// Starts the controller.
pub(crate) fn spawn(context: &Context, running: &mut JoinSet<()>) {
    reconcile::spawn(context, running, Machines, |builder| watch::watched(context, builder));
}

/// The same for a preview.
pub(crate) fn rehearsed(context: &Context) -> Box<dyn Rehearse> {
    Rehearsal::boxed(context, Machines)
}

impl Edge for Machines {
    const CONTROLLER: Controller = Controller::Machine;
    const FIELD_MANAGER: &'static str = "hangar-machine";

    type Root = Machine;
    type Observed = Observed;
    type Scratch = ();

    fn watch(watches: &Watches) -> &Watch<Machine> {
        watches.machines()
    }

    fn status(root: &Machine) -> Option<&MachineStatus> {
        root.status.as_ref()
    }

    fn is_starting(&self, context: &Context, root: &Machine) -> bool {
        observe::is_starting(context, root)
    }

    fn observe(&self, context: &Context, root: &Kept<Machine>) -> Observed {
        observe::observe(context, root)
    }

    async fn read(&self, case: &Case<'_, Self>, observed: &mut Observed, wanted: TenantRead) {
        observe::read(case.context, observed, wanted).await;
    }

    async fn tenant(&self, context: &Context, observed: &Observed, _: &NodeStep) -> Result<Client, Error> {
        context.tenants.writer(&observe::cluster_of(&observed.machine)).await
    }
}
