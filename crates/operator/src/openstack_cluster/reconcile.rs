//! Observe, plan, run, write the status.

use std::sync::Arc;
use std::time::Duration;

use hangar_api::infrastructure::v1beta1::{OpenStackCluster, OpenStackClusterStatus};
use hangar_api::names::OPENSTACK_CLUSTER_FINALIZER;
use hangar_kit::controller::{Reconcile, Settled};
use hangar_kit::event::Recorder;
use hangar_kit::execute::{Workbench, execute};
use hangar_kit::watch::Kept;
use hangar_kit::{Error, ObjectKey};
use hangar_plan::controllers::Controller;
use hangar_plan::flow::{Outcome, Plan, Read};
use hangar_plan::openstack_cluster::{Observed, Step, fold, plan};
use kube::Resource as _;

use super::{observe, run};
use crate::clouds::{self, Owned};
use crate::context::{Context, WRITE_LIMIT};
use crate::outcome;

/// Two groups with the rules that users give are about forty calls.
const ROUNDS: usize = 64;

/// The controller's own part.
pub(super) struct Reconciler {
    context: Context,
    recorder: Recorder,
}

impl Reconciler {
    pub(super) fn new(context: &Context) -> Self {
        Self { context: context.clone(), recorder: context.recorder(Controller::OpenStackCluster) }
    }
}

impl Reconcile for Reconciler {
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Settled, Error> {
        let object = match self.context.watches.openstack_clusters().get(key) {
            Read::One(object) => object,
            Read::Unknown(unknown) => {
                return Err(Error::Undecidable { what: format!("OpenStackCluster {key}"), unknown });
            }
            Read::Absent | Read::Many(_) => return Ok(Settled::done()),
        };
        let bench = Bench::new(&self.context, &object);
        let pass = execute(&bench, &self.context.parts.leadership, WRITE_LIMIT, ROUNDS).await?;
        let now = bench.owned.object().clone();
        clouds::record(&self.recorder, &now.object_ref(&()), &pass.ran).await;
        bench.owned.write_status(now.status.as_ref(), &pass.plan.status).await?;
        Ok(outcome::settled(&pass))
    }
}

/// One object's reads and effects.
struct Bench<'a> {
    context: &'a Context,
    owned: Owned<'a, OpenStackCluster>,
}

impl<'a> Bench<'a> {
    fn new(context: &'a Context, seen: &Arc<Kept<OpenStackCluster>>) -> Self {
        let watch = context.watches.openstack_clusters();
        let owned = Owned::new(context.client(), watch, seen, OPENSTACK_CLUSTER_FINALIZER);
        Self { context, owned }
    }
}

impl Workbench for Bench<'_> {
    type Observation = Observed;
    type Step = Step;
    type Status = OpenStackClusterStatus;
    type Object = ();
    type Error = Error;

    async fn observe(&self) -> Result<Observed, Error> {
        let mut observed = observe::from_stores(self.context, self.owned.seen());
        self.owned.set_session(observe::complete(self.context, &mut observed).await);
        Ok(observed)
    }

    fn plan(&self, observed: &Observed) -> Plan<Step, OpenStackClusterStatus, ()> {
        plan(observed)
    }

    async fn run(&self, step: &Step, _limit: Duration) -> Outcome {
        match step {
            Step::Claim { owner_id } => self.owned.claim(owner_id).await,
            Step::Release => self.owned.release().await,
            _ => match self.owned.access() {
                Some((session, owner_id)) => run::run(&session, &owner_id, step).await,
                None => Outcome::Lost,
            },
        }
    }

    fn fold(&self, observed: &mut Observed, step: &Step, outcome: &Outcome) {
        fold(observed, step, outcome);
    }
}
