//! The reconcile function that all controllers share.
//!
//! ```text
//! store -> observe -> wanted? -> read -> plan -> step -> fold -> plan ... -> objects -> status -> when to come back
//!          (edge)     (plan)    (edge)  (plan)  (here)  (plan)              (here)     (here)    (here)
//! ```
//!
//! A controller is a planner (`hangar_plan`), which decides, and an [`Edge`], which says what it watches and reads. The
//! type of a step says how it becomes a call: writes to the management cluster are made here ([`mod@write`]), steps in
//! a tenant or in a cloud make their own call ([`RunInTenant`], [`RunInCloud`]).
//!
//! Invariants
//! - Every answer becomes an outcome in one place ([`answer`]), every status is written in one place ([`Case`]).
//! - A failed step, object or status stops no other: the failure is folded, reported, and tried again later.
//! - A step that did not work is remembered per object until it works or the specification changes ([`Memory`]).
//! - An object that its type cannot read gets a condition ([`mod@unreadable`]), and nothing else is done with it.

pub(crate) mod answer;
mod case;
mod events;
mod rehearse;
mod settle;
mod unreadable;
mod write;

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use hangar_api::conditions::Conditioned;
use hangar_api::names::CLUSTER_NAME_LABEL;
use hangar_kit::apply::Applier;
use hangar_kit::controller::{ControllerBuilder, Reconcile, Settled};
use hangar_kit::event::{Event, Recorder};
use hangar_kit::execute::{Pass, Workbench, execute};
use hangar_kit::watch::{Kept, Watch};
use hangar_kit::{Error, ObjectKey};
use hangar_openstack::Session;
use hangar_plan::controllers::Controller;
use hangar_plan::flow::{Ending, Never, Outcome, Planner, Read, Step, StepOf, Wake};
use hangar_plan::openstack::Request;
use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use crate::context::{Context, Watches};
pub(crate) use case::Case;
pub(crate) use rehearse::{Rehearsal, Rehearse, Scene, Taken, Told};
use settle::Memory;

/// The longest that a write to the management cluster or to a tenant may take.
pub(crate) const WRITE_LIMIT: Duration = Duration::from_secs(10);
/// The longest that a write to a cloud may take: a busy Nova needs 20 s to accept a server.
pub(crate) const CLOUD_LIMIT: Duration = Duration::from_secs(30);

/// A kind that a controller is about.
pub(crate) trait Root:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Serialize
    + DeserializeOwned
    + Clone
    + Debug
    + Send
    + Sync
    + 'static
{
}

impl<K> Root for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Serialize
        + DeserializeOwned
        + Clone
        + Debug
        + Send
        + Sync
        + 'static
{
}

pub(crate) type Wanted<E> = <<E as Edge>::Observed as Planner>::Wanted;
pub(crate) type TenantStep<E> = <<E as Edge>::Observed as Planner>::Tenant;
pub(crate) type Status<E> = <<E as Edge>::Observed as Planner>::Status;

/// What a controller watches and reads.
pub(crate) trait Edge: Send + Sync + Sized + 'static {
    const CONTROLLER: Controller;
    /// The field manager of objects that it keeps; it never changes.
    const FIELD_MANAGER: &'static str;

    /// The kind it is about.
    type Root: Root;
    /// What its plans are made from.
    type Observed: Planner<
            Own: RunOwn<Self>,
            Tenant: RunInTenant,
            Cloud: RunInCloud,
            Status: Conditioned + Serialize + DeserializeOwned + PartialEq,
            Object: Serialize,
        >;
    /// What is kept for one pass and no longer.
    type Scratch: Default + Send + Sync;

    /// Where its objects are kept.
    fn watch(watches: &Watches) -> &Watch<Self::Root>;
    /// What was said last.
    fn status(root: &Self::Root) -> Option<&Status<Self>>;
    /// Reads what the stores show.
    fn observe(&self, context: &Context, root: &Kept<Self::Root>) -> Self::Observed;
    /// Reads what the plan asks for.
    fn read(
        &self,
        case: &Case<'_, Self>,
        observed: &mut Self::Observed,
        wanted: Wanted<Self>,
    ) -> impl Future<Output = ()> + Send;

    /// True while a store that its plans need is only just being listed.
    fn is_starting(&self, _context: &Context, _root: &Self::Root) -> bool {
        false
    }

    /// The client for a step in the tenant.
    fn tenant(
        &self,
        _context: &Context,
        _observed: &Self::Observed,
        _step: &TenantStep<Self>,
    ) -> impl Future<Output = Result<Client, Error>> + Send {
        let why = "the object belongs to no tenant".to_owned();
        let (tenant, retry_after) = (String::new(), Duration::ZERO);
        std::future::ready(Err(Error::TenantUnavailable { tenant, why, retry_after }))
    }

    /// What is worth an event when the status changes.
    fn news(&self, _root: &Self::Root, _before: Option<&Status<Self>>, _after: &Status<Self>) -> Vec<Event> {
        Vec::new()
    }

    /// The pass is over: what it learned may be kept.
    fn remember(&self, _case: &Case<'_, Self>, _observed: &Self::Observed, _ending: Ending) {}

    /// When something that it remembers has to be read again.
    fn due_in(&self, _key: &ObjectKey) -> Option<Duration> {
        None
    }

    /// The object is gone, perhaps without its finalizer having been waited for: lets go of what it held.
    fn let_go(&self, _context: &Context, _key: &ObjectKey) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(Ok(()))
    }

    /// The object is gone.
    fn forget(&self, _context: &Context, _key: &ObjectKey) {}
}

/// A step that only one controller's edge can run.
pub(crate) trait RunOwn<E: Edge> {
    /// The longest that it may take.
    fn limit(&self) -> Duration {
        WRITE_LIMIT
    }

    fn run(&self, case: &Case<'_, E>) -> impl Future<Output = Outcome> + Send;
    /// Makes what it would make, without keys: for previews.
    fn rehearse(&self, case: &Case<'_, E>) -> impl Future<Output = Outcome> + Send;
}

/// A step in a tenant.
pub(crate) trait RunInTenant {
    fn run(&self, client: Client) -> impl Future<Output = Outcome> + Send;
}

/// A step in a cloud.
pub(crate) trait RunInCloud {
    /// Runs it; everything that is made carries the owner id.
    fn run(&self, session: &Session, owner_id: &str) -> impl Future<Output = Outcome> + Send;

    /// What it asks for that may come long after its answer was given up, in another process' time.
    fn request(&self) -> Option<Request>;
}

impl<E: Edge> RunOwn<E> for Never {
    async fn run(&self, _: &Case<'_, E>) -> Outcome {
        match *self {}
    }

    async fn rehearse(&self, _: &Case<'_, E>) -> Outcome {
        match *self {}
    }
}

impl RunInTenant for Never {
    async fn run(&self, _: Client) -> Outcome {
        match *self {}
    }
}

impl RunInCloud for Never {
    async fn run(&self, _: &Session, _: &str) -> Outcome {
        match *self {}
    }

    fn request(&self) -> Option<Request> {
        match *self {}
    }
}

/// A controller at work.
struct Reconciler<E: Edge> {
    edge: E,
    context: Context,
    applier: Applier,
    recorder: Recorder,
    memory: Memory,
}

/// Starts a controller with what wakes it.
pub(crate) fn spawn<E: Edge>(
    context: &Context,
    running: &mut JoinSet<()>,
    edge: E,
    watched: impl FnOnce(ControllerBuilder) -> ControllerBuilder,
) {
    let reconciler = Reconciler {
        edge,
        applier: Applier::new(E::FIELD_MANAGER),
        recorder: context.recorder(E::CONTROLLER),
        memory: Memory::default(),
        context: context.clone(),
    };
    let watch = E::watch(&context.watches).clone();
    let builder = context.builder(E::CONTROLLER).share(move |key| share(&watch, key));
    let builder = watched(builder);
    let (leadership, stop) = (Arc::clone(&context.handles.leadership), context.stop.clone());
    running.spawn(async move {
        builder.run(reconciler, leadership, stop).await;
    });
}

/// Objects of one Cluster share a tenant and, as a rule, a cloud: one that hangs takes its share of the workers, and no
/// more.
fn share<K: Root>(watch: &Watch<K>, key: &ObjectKey) -> String {
    let (found, unreadable) = (watch.get(key), watch.unreadable_one(key));
    let labels = found.iter().map(|kept| &kept.labels).chain(unreadable.iter().map(|kept| &kept.labels));
    let cluster = labels.into_iter().find_map(|labels| labels.get(CLUSTER_NAME_LABEL));
    format!("{}/{}", key.namespace_or_empty(), cluster.unwrap_or(&key.name))
}

impl<E: Edge> Reconcile for Reconciler<E> {
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Settled, Error> {
        let watch = E::watch(&self.context.watches);
        let root = match watch.get(key) {
            Read::One(root) => root,
            Read::Unknown(unknown) => {
                if let Some(object) = watch.unreadable_one(key) {
                    return unreadable::report::<E>(&self.context, &object).await;
                }
                let what = format!("{} {key}", E::Root::kind(&()));
                return Err(Error::Undecidable { what, unknown });
            }
            Read::Absent | Read::Many(_) => {
                self.memory.forget(key);
                self.edge.forget(&self.context, key);
                self.edge.let_go(&self.context, key).await?;
                return Ok(Settled::done());
            }
        };
        if self.edge.is_starting(&self.context, &root.value) {
            return Ok(settle::starting());
        }
        let case = Case::new(&self.edge, &self.context, &root);
        let mut setbacks = self.memory.take(key, &root.value);
        let bench = Bench { reconciler: self, case: &case };
        let Some(mut pass) = execute(&bench, &self.context.handles.leadership, &mut setbacks).await else {
            self.memory.put(key, &root.value, setbacks);
            return Ok(settle::put_off());
        };
        self.edge.remember(&case, &pass.observed, pass.ending);
        let unapplied = apply(&self.context, &self.applier, &case, &mut pass).await;
        events::record(&self.recorder, &case, &pass.ran).await;
        let written = case.write_status(&self.recorder, &pass.plan.status).await;
        let mut settled = settle::settled(&pass, unapplied);
        if let Some(length) = self.edge.due_in(key) {
            settled.wake = settled.wake.sooner(Wake::after(Timestamp::now(), length));
        }
        self.memory.put(key, &root.value, setbacks);
        match written {
            Ok(()) => Ok(settled),
            // Somebody else wrote in between: what they wrote wakes us, and the status follows from it.
            Err(Error::Stale { .. }) => Ok(settle::outdated(&settled)),
            Err(error) => Err(error),
        }
    }
}

/// Applies the objects of the last plan, in order. One that fails stops no other; the status then tells why.
async fn apply<E: Edge>(
    context: &Context,
    applier: &Applier,
    case: &Case<'_, E>,
    pass: &mut Pass<E::Observed>,
) -> Option<String> {
    if pass.ending != Ending::AtRest {
        return None;
    }
    let mut first = None;
    for object in &pass.plan.objects {
        if let Err((id, outcome)) = write::keep(context, case.namespace(), applier, object).await {
            tracing::warn!(%id, %outcome, "an object was not applied");
            first.get_or_insert_with(|| format!("{id}: {outcome}"));
            pass.observed.not_applied(id, &outcome);
        }
    }
    if first.is_some() {
        pass.plan.status = pass.observed.plan().status;
    }
    first
}

/// One object's reads and effects.
struct Bench<'a, E: Edge> {
    reconciler: &'a Reconciler<E>,
    case: &'a Case<'a, E>,
}

impl<E: Edge> Workbench for Bench<'_, E> {
    type Observed = E::Observed;

    fn observe(&self) -> E::Observed {
        self.reconciler.edge.observe(&self.reconciler.context, self.case.seen())
    }

    async fn read(&self, observed: &mut E::Observed, wanted: Wanted<E>) {
        self.reconciler.edge.read(self.case, observed, wanted).await;
    }

    fn is_put_off(&self) -> bool {
        self.case.is_put_off()
    }

    fn limit(&self, step: &StepOf<E::Observed>) -> Duration {
        match step {
            Step::Cloud(_) => CLOUD_LIMIT,
            Step::Own(step) => step.limit(),
            Step::Write(_) | Step::Tenant(_) => WRITE_LIMIT,
        }
    }

    async fn run(&self, observed: &E::Observed, step: &StepOf<E::Observed>) -> Outcome {
        let Reconciler { edge, context, applier, .. } = self.reconciler;
        match step {
            Step::Write(write) => write::run(self.case, applier, write).await,
            Step::Own(step) => step.run(self.case).await,
            Step::Tenant(step) => match edge.tenant(context, observed, step).await {
                Ok(client) => step.run(client).await,
                Err(error) => answer::failed(error),
            },
            Step::Cloud(step) => self.run_in_cloud(step).await,
        }
    }
}

impl<E: Edge> Bench<'_, E> {
    /// What may come to pass late is written on the object before it is sent, and taken back once it is known.
    async fn run_in_cloud(&self, step: &impl RunInCloud) -> Outcome {
        // Plans ask for a cloud's facts first, and only for an object that is marked.
        let Some((project, owner_id)) = self.case.access() else { return Outcome::Stale };
        let _writing = project.writing(&owner_id);
        let Some(request) = step.request() else { return step.run(project.session(), &owner_id).await };
        let before = self.case.root().and_then(|root| root.meta().annotations.clone());
        let noted = self.case.merge(&request.noted(Timestamp::now())).await;
        if !noted.is_success() {
            return noted;
        }
        let outcome = step.run(project.session(), &owner_id).await;
        let is_settled = match &outcome {
            Outcome::Refused(_) | Outcome::Failed(_) => true,
            // It has to be seen before another is asked for.
            Outcome::Created(_) | Outcome::Done => request != Request::Server,
            Outcome::Stale | Outcome::Lost => false,
        };
        if is_settled {
            let cleared = self.case.merge(&request.as_before(before.as_ref())).await;
            if !cleared.is_success() {
                tracing::warn!(%cleared, "the note of a request stays until it is settled");
            }
        }
        outcome
    }
}
