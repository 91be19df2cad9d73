//! The controller of MachineSets.
//!
//! It owns the set's finalizer and status; the Machines that it creates, with their fields that follow the template;
//! and the clones that those Machines refer to, until the Machine claims them.

mod observe;
mod watch;

use hangar_api::cluster::v1beta2::{MachineSet, MachineSetStatus};
use hangar_kit::watch::{Kept, Watch};
use hangar_plan::controllers::Controller;
use hangar_plan::flow::Never;
use hangar_plan::machine_set::Observed;
use tokio::task::JoinSet;

use crate::context::{Context, Watches};
use crate::reconcile::{self, Case, Edge, Rehearsal, Rehearse};

/// It keeps nothing between passes.
struct MachineSets;

/// Starts the controller.
pub(crate) fn spawn(context: &Context, running: &mut JoinSet<()>) {
    reconcile::spawn(context, running, MachineSets, |builder| watch::watched(context, builder));
}

/// The same for a preview.
pub(crate) fn rehearsed(context: &Context) -> Box<dyn Rehearse> {
    Rehearsal::boxed(context, MachineSets)
}

impl Edge for MachineSets {
    const CONTROLLER: Controller = Controller::MachineSet;
    const FIELD_MANAGER: &'static str = "hangar-machine-set";

    type Root = MachineSet;
    type Observed = Observed;
    type Scratch = ();

    fn watch(watches: &Watches) -> &Watch<MachineSet> {
        watches.machine_sets()
    }

    fn status(root: &MachineSet) -> Option<&MachineSetStatus> {
        root.status.as_ref()
    }

    fn is_starting(&self, context: &Context, root: &MachineSet) -> bool {
        observe::is_starting(context, root)
    }

    fn observe(&self, context: &Context, root: &Kept<MachineSet>) -> Observed {
        observe::observe(context, root)
    }

    async fn read(&self, _: &Case<'_, Self>, _: &mut Observed, wanted: Never) {
        match wanted {}
    }
}
