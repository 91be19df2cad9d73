//! One reconcile of an object whose things are in a cloud: the same for every kind of them.
//!
//! Observe, plan, run the steps, tell what was made and deleted, write the status. What a kind looks at and how its
//! steps become calls is its own ([`InCloud`]).

use std::fmt::Debug;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use hangar_kit::controller::{Reconcile, Settled};
use hangar_kit::event::Recorder;
use hangar_kit::execute::{Workbench, execute};
use hangar_kit::watch::{Kept, Watch};
use hangar_kit::{Error, ObjectKey};
use hangar_openstack::Session;
use hangar_plan::controllers::Controller;
use hangar_plan::flow::{Outcome, Plan, Read, Step};
use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Owned, record};
use crate::context::{Context, WRITE_LIMIT, Watches};
use crate::outcome;

/// A kind whose things are in a cloud.
pub(crate) trait InCloud:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// Who looks after it.
    const CONTROLLER: Controller;
    /// What holds it until its things are gone.
    const FINALIZER: &'static str;
    /// At most so many steps in one pass.
    const ROUNDS: usize;

    /// What its plans are made from.
    type Observed: Send + Sync;
    /// What its plans do.
    type Step: Step + Send + Sync;
    /// What its plans say.
    type Status: Serialize + PartialEq + Send + Sync;

    /// Where it is kept.
    fn watch(watches: &Watches) -> &Watch<Self>;
    /// What was said last.
    fn status(&self) -> Option<&Self::Status>;
    /// Reads the stores, and the cloud if it is time for it; the way into it is then there for the steps.
    fn observe(
        context: &Context,
        seen: &Kept<Self>,
    ) -> impl Future<Output = (Self::Observed, Option<Session>)> + Send;
    /// Decides.
    fn plan(observed: &Self::Observed) -> Plan<Self::Step, Self::Status, ()>;
    /// Runs one step.
    fn run(owned: &Owned<'_, Self>, step: &Self::Step) -> impl Future<Output = Outcome> + Send;
    /// Makes the observation what it is after that outcome.
    fn fold(observed: &mut Self::Observed, step: &Self::Step, outcome: &Outcome);
}

/// The controller's own part.
pub(crate) struct Reconciler<K> {
    context: Context,
    recorder: Recorder,
    kind: PhantomData<fn() -> K>,
}

impl<K: InCloud> Reconciler<K> {
    pub(crate) fn new(context: &Context) -> Self {
        let recorder = context.recorder(K::CONTROLLER);
        Self { context: context.clone(), recorder, kind: PhantomData }
    }
}

impl<K: InCloud> Reconcile for Reconciler<K> {
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Settled, Error> {
        let watch = K::watch(&self.context.watches);
        let object = match watch.get(key) {
            Read::One(object) => object,
            Read::Unknown(unknown) => {
                return Err(Error::Undecidable { what: format!("{} {key}", K::kind(&())), unknown });
            }
            Read::Absent | Read::Many(_) => return Ok(Settled::done()),
        };
        let bench = Bench::new(&self.context, watch, &object);
        let pass = execute(&bench, &self.context.parts.leadership, WRITE_LIMIT, K::ROUNDS).await?;
        let now = bench.owned.object().clone();
        record(&self.recorder, &now.object_ref(&()), &pass.ran).await;
        bench.owned.write_status(now.status(), &pass.plan.status).await?;
        Ok(outcome::settled(&pass))
    }
}

/// One object's reads and effects.
struct Bench<'a, K> {
    context: &'a Context,
    owned: Owned<'a, K>,
}

impl<'a, K: InCloud> Bench<'a, K> {
    fn new(context: &'a Context, watch: &'a Watch<K>, seen: &Arc<Kept<K>>) -> Self {
        Self { context, owned: Owned::new(context.client(), watch, seen, K::FINALIZER) }
    }
}

impl<K: InCloud> Workbench for Bench<'_, K> {
    type Observation = K::Observed;
    type Step = K::Step;
    type Status = K::Status;
    type Object = ();
    type Error = Error;

    async fn observe(&self) -> Result<K::Observed, Error> {
        let (observed, session) = K::observe(self.context, self.owned.seen()).await;
        self.owned.set_session(session);
        Ok(observed)
    }

    fn plan(&self, observed: &K::Observed) -> Plan<K::Step, K::Status, ()> {
        K::plan(observed)
    }

    async fn run(&self, step: &K::Step, _limit: Duration) -> Outcome {
        K::run(&self.owned, step).await
    }

    fn fold(&self, observed: &mut K::Observed, step: &K::Step, outcome: &Outcome) {
        K::fold(observed, step, outcome);
    }
}
