//! The controller of MachineDeployments.
//!
//! It owns the deployment's finalizer, revision and status, the MachineSets that it creates, and the replicas of every
//! MachineSet that it manages.

mod observe;
mod watch;

use hangar_api::cluster::v1beta2::{MachineDeployment, MachineDeploymentStatus};
use hangar_kit::watch::{Kept, Watch};
use hangar_plan::controllers::Controller;
use hangar_plan::flow::Never;
use hangar_plan::machine_deployment::Observed;
use tokio::task::JoinSet;

use crate::context::{Context, Watches};
use crate::reconcile::{self, Case, Edge, Rehearsal, Rehearse};
use crate::referring::{is_starting, is_version_starting, of_machine};

/// It keeps nothing between passes.
struct MachineDeployments;

/// Starts the controller.
pub(crate) fn spawn(context: &Context, running: &mut JoinSet<()>) {
    reconcile::spawn(context, running, MachineDeployments, |builder| watch::watched(context, builder));
}

/// The same for a preview.
pub(crate) fn rehearsed(context: &Context) -> Box<dyn Rehearse> {
    Rehearsal::boxed(context, MachineDeployments)
}

impl Edge for MachineDeployments {
    const CONTROLLER: Controller = Controller::MachineDeployment;
    const FIELD_MANAGER: &'static str = "hangar-machine-deployment";

    type Root = MachineDeployment;
    type Observed = Observed;
    type Scratch = ();

    fn watch(watches: &Watches) -> &Watch<MachineDeployment> {
        watches.machine_deployments()
    }

    fn status(root: &MachineDeployment) -> Option<&MachineDeploymentStatus> {
        root.status.as_ref()
    }

    fn is_starting(&self, context: &Context, root: &MachineDeployment) -> bool {
        is_version_starting(context, &observe::cluster_of(root))
            || is_starting(&context.foreign, of_machine(&root.spec.template.spec))
    }

    fn observe(&self, context: &Context, root: &Kept<MachineDeployment>) -> Observed {
        observe::observe(context, root)
    }

    async fn read(&self, _: &Case<'_, Self>, _: &mut Observed, wanted: Never) {
        match wanted {}
    }
}

#[cfg(test)]
mod tests {
    use hangar_kit::apply::APPLIED_ANNOTATION_PREFIX;

    use super::*;

    #[test]
    fn the_plan_knows_the_mark_of_our_field_manager() {
        let mark = format!("{APPLIED_ANNOTATION_PREFIX}{}", MachineDeployments::FIELD_MANAGER);
        assert_eq!(mark, hangar_plan::machine_deployment::APPLIED_MARK);
    }
}
