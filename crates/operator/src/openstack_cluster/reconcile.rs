//! What is an OpenStackCluster's own in a reconcile.

use hangar_api::infrastructure::v1beta1::{OpenStackCluster, OpenStackClusterStatus};
use hangar_api::names::OPENSTACK_CLUSTER_FINALIZER;
use hangar_kit::watch::{Kept, Watch};
use hangar_openstack::Session;
use hangar_plan::controllers::Controller;
use hangar_plan::flow::{Outcome, Plan};
use hangar_plan::openstack_cluster::{Observed, Step, fold, plan};

use super::{observe, run};
use crate::clouds::{InCloud, Owned};
use crate::context::{Context, Watches};

impl InCloud for OpenStackCluster {
    const CONTROLLER: Controller = Controller::OpenStackCluster;
    const FINALIZER: &'static str = OPENSTACK_CLUSTER_FINALIZER;
    /// Two groups with the rules that users give are about forty calls.
    const ROUNDS: usize = 64;

    type Observed = Observed;
    type Step = Step;
    type Status = OpenStackClusterStatus;

    fn watch(watches: &Watches) -> &Watch<Self> {
        watches.openstack_clusters()
    }

    fn status(&self) -> Option<&OpenStackClusterStatus> {
        self.status.as_ref()
    }

    async fn observe(context: &Context, seen: &Kept<Self>) -> (Observed, Option<Session>) {
        let mut observed = observe::from_stores(context, seen);
        let session = observe::complete(context, &mut observed).await;
        (observed, session)
    }

    fn plan(observed: &Observed) -> Plan<Step, OpenStackClusterStatus, ()> {
        plan(observed)
    }

    async fn run(owned: &Owned<'_, Self>, step: &Step) -> Outcome {
        match step {
            Step::Claim { owner_id } => owned.claim(owner_id).await,
            Step::Release => owned.release().await,
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
