//! What is an OpenStackMachine's own in a reconcile.

use hangar_api::infrastructure::v1beta1::{OpenStackMachine, OpenStackMachineStatus};
use hangar_api::names::OPENSTACK_MACHINE_FINALIZER;
use hangar_kit::execute::DEFAULT_ROUNDS;
use hangar_kit::watch::{Kept, Watch};
use hangar_openstack::Session;
use hangar_plan::controllers::Controller;
use hangar_plan::flow::{Outcome, Plan};
use hangar_plan::openstack_machine::{Observed, Step, fold, plan};
use serde_json::json;

use super::{observe, run};
use crate::clouds::{InCloud, Owned};
use crate::context::{Context, Watches};

impl InCloud for OpenStackMachine {
    const CONTROLLER: Controller = Controller::OpenStackMachine;
    const FINALIZER: &'static str = OPENSTACK_MACHINE_FINALIZER;
    const ROUNDS: usize = DEFAULT_ROUNDS;

    type Observed = Observed;
    type Step = Step;
    type Status = OpenStackMachineStatus;

    fn watch(watches: &Watches) -> &Watch<Self> {
        watches.openstack_machines()
    }

    fn status(&self) -> Option<&OpenStackMachineStatus> {
        self.status.as_ref()
    }

    async fn observe(context: &Context, seen: &Kept<Self>) -> (Observed, Option<Session>) {
        let mut seen = observe::from_stores(context, seen);
        let session = observe::complete(context, &mut seen).await;
        (seen.observed, session)
    }

    fn plan(observed: &Observed) -> Plan<Step, OpenStackMachineStatus, ()> {
        plan(observed)
    }

    async fn run(owned: &Owned<'_, Self>, step: &Step) -> Outcome {
        match step {
            Step::Claim { owner_id } => owned.claim(owner_id).await,
            Step::Release => owned.release().await,
            Step::Record { provider_id } => owned.merge(json!({"spec": {"providerID": provider_id}})).await,
            _ => match owned.access() {
                Some((session, owner_id)) => run::run(&session, &owner_id, step).await,
                None => Outcome::Lost,
            },
        }
    }

    fn fold(observed: &mut Observed, step: &Step, outcome: &Outcome) {
        fold(observed, step, outcome);
    }
}
