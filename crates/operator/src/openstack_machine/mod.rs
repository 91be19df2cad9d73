//! The controller of OpenStackMachines: one server each, with its ports.
//!
//! It owns the status of the OpenStackMachine, its finalizer, its owner id and its provider id, and everything in the
//! cloud that carries the owner id. The cloud cannot be watched, so servers are listed, all of a project together: up
//! to once a second while some are being created, otherwise every half minute. All decisions are in
//! `hangar_plan::openstack_machine`.

mod observe;
mod watch;

use hangar_api::infrastructure::v1beta1::{OpenStackMachine, OpenStackMachineStatus};
use hangar_kit::watch::{Kept, Watch};
use hangar_plan::controllers::Controller;
use hangar_plan::openstack_machine::{Observed, Wanted};
use tokio::task::JoinSet;

use crate::context::{Context, Watches};
use crate::reconcile::{self, Case, Edge, Rehearsal, Rehearse};

/// It keeps nothing between passes.
struct OpenStackMachines;

/// Starts the controller.
pub(crate) fn spawn(context: &Context, running: &mut JoinSet<()>) {
    reconcile::spawn(context, running, OpenStackMachines, |builder| watch::watched(context, builder));
}

/// The same for a preview.
pub(crate) fn rehearsed(context: &Context) -> Box<dyn Rehearse> {
    Rehearsal::boxed(context, OpenStackMachines)
}

impl Edge for OpenStackMachines {
    const CONTROLLER: Controller = Controller::OpenStackMachine;
    const FIELD_MANAGER: &'static str = "hangar-openstack-machine";

    type Root = OpenStackMachine;
    type Observed = Observed;
    type Scratch = ();

    fn watch(watches: &Watches) -> &Watch<OpenStackMachine> {
        watches.openstack_machines()
    }

    fn status(root: &OpenStackMachine) -> Option<&OpenStackMachineStatus> {
        root.status.as_ref()
    }

    fn observe(&self, context: &Context, root: &Kept<OpenStackMachine>) -> Observed {
        observe::observe(context, root)
    }

    async fn read(&self, case: &Case<'_, Self>, observed: &mut Observed, wanted: Wanted) {
        observe::read(case, observed, wanted).await;
    }
}
