//! Observe, plan, run, write the status.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hangar_api::infrastructure::v1beta1::{OpenStackMachine, OpenStackMachineStatus};
use hangar_api::names::OPENSTACK_MACHINE_FINALIZER;
use hangar_kit::controller::{Reconcile, Settled};
use hangar_kit::event::Recorder;
use hangar_kit::execute::{DEFAULT_ROUNDS, Workbench, execute};
use hangar_kit::watch::Kept;
use hangar_kit::{Error, ObjectKey, finalizer};
use hangar_openstack::Session;
use hangar_plan::controllers::Controller;
use hangar_plan::flow::{Outcome, Plan, Read};
use hangar_plan::openstack::OWNER_ID_ANNOTATION;
use hangar_plan::openstack_machine::{Observed, Step, fold, plan};
use kube::{Api, Resource as _};
use serde_json::json;

use super::{observe, run};
use crate::context::{Context, WRITE_LIMIT};
use crate::{clouds, outcome, patch};

/// The controller's own part.
pub(super) struct Reconciler {
    context: Context,
    recorder: Recorder,
}

impl Reconciler {
    pub(super) fn new(context: &Context) -> Self {
        Self { context: context.clone(), recorder: context.recorder(Controller::OpenStackMachine) }
    }
}

impl Reconcile for Reconciler {
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Settled, Error> {
        let watch = self.context.watches.openstack_machines();
        let object = match watch.get(key) {
            Read::One(object) => object,
            Read::Unknown(unknown) => {
                return Err(Error::Undecidable { what: format!("OpenStackMachine {key}"), unknown });
            }
            Read::Absent | Read::Many(_) => return Ok(Settled::done()),
        };
        let bench = Bench::new(&self.context, &object);
        let pass = execute(&bench, &self.context.parts.leadership, WRITE_LIMIT, DEFAULT_ROUNDS).await?;
        let now = bench.object().clone();
        clouds::record(&self.recorder, &now.object_ref(&()), &pass.ran).await;
        let is_released =
            now.metadata.deletion_timestamp.is_some() && !finalizer::has(&now, OPENSTACK_MACHINE_FINALIZER);
        if !is_released {
            let written = patch::status(&bench.api(), &now, now.status.as_ref(), &pass.plan.status).await?;
            if let Some(changed) = written {
                watch.written(changed);
            }
        }
        Ok(outcome::settled(&pass))
    }
}

/// One object's reads and effects.
struct Bench<'a> {
    context: &'a Context,
    seen: Arc<Kept<OpenStackMachine>>,
    /// As our own writes left it.
    object: Mutex<OpenStackMachine>,
    session: Mutex<Option<Session>>,
}

impl<'a> Bench<'a> {
    fn new(context: &'a Context, seen: &Arc<Kept<OpenStackMachine>>) -> Self {
        let object = Mutex::new(seen.value.clone());
        Self { context, seen: Arc::clone(seen), object, session: Mutex::new(None) }
    }

    fn api(&self) -> Api<OpenStackMachine> {
        Api::namespaced(self.context.client(), self.seen.key.namespace_or_empty())
    }

    fn object(&self) -> MutexGuard<'_, OpenStackMachine> {
        self.object.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session(&self) -> Option<Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn claim(&self, owner_id: &str) -> Outcome {
        let object = self.object().clone();
        let mut finalizers = object.metadata.finalizers.clone().unwrap_or_default();
        if !finalizer::has(&object, OPENSTACK_MACHINE_FINALIZER) {
            finalizers.push(OPENSTACK_MACHINE_FINALIZER.to_owned());
        }
        let fields = json!({"metadata": {
            "annotations": {OWNER_ID_ANNOTATION: owner_id},
            "finalizers": finalizers,
        }});
        let answer = patch::merge(&self.api(), &object, fields).await;
        self.keep(answer)
    }

    async fn release(&self) -> Outcome {
        let object = self.object().clone();
        match finalizer::remove(&self.api(), &object, OPENSTACK_MACHINE_FINALIZER).await {
            Ok(changed) => {
                let left = changed.as_ref().and_then(|changed| changed.metadata.finalizers.as_ref());
                if left.is_none_or(Vec::is_empty) {
                    self.context.watches.openstack_machines().removed(&self.seen.key, &self.seen.uid);
                }
                let mut object = self.object();
                object.metadata.finalizers = left.cloned();
                Outcome::Done
            }
            Err(error) => outcome::of_kit::<()>(Err(error)),
        }
    }

    fn keep(&self, answer: Result<Option<OpenStackMachine>, Error>) -> Outcome {
        match answer {
            Ok(Some(changed)) => {
                self.context.watches.openstack_machines().written(changed.clone());
                *self.object() = changed;
                Outcome::Done
            }
            other => outcome::of_kit(other),
        }
    }
}

impl Workbench for Bench<'_> {
    type Observation = Observed;
    type Step = Step;
    type Status = OpenStackMachineStatus;
    type Object = ();
    type Error = Error;

    async fn observe(&self) -> Result<Observed, Error> {
        let mut seen = observe::from_stores(self.context, &self.seen);
        let session = observe::complete(self.context, &mut seen).await;
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = session;
        Ok(seen.observed)
    }

    fn plan(&self, observed: &Observed) -> Plan<Step, OpenStackMachineStatus, ()> {
        plan(observed)
    }

    async fn run(&self, step: &Step, _limit: Duration) -> Outcome {
        match step {
            Step::Claim { owner_id } => self.claim(owner_id).await,
            Step::Release => self.release().await,
            Step::Record { provider_id } => {
                let object = self.object().clone();
                let fields = json!({"spec": {"providerID": provider_id}});
                let answer = patch::merge(&self.api(), &object, fields).await;
                self.keep(answer)
            }
            _ => {
                let owner_id = hangar_plan::openstack::owner_id(self.object().metadata.annotations.as_ref());
                match (self.session(), owner_id) {
                    (Some(session), Some(owner_id)) => run::run(&session, &owner_id, step).await,
                    // The plan asks the cloud only after it was asked for facts.
                    _ => Outcome::Lost,
                }
            }
        }
    }

    fn fold(&self, observed: &mut Observed, step: &Step, outcome: &Outcome) {
        fold(observed, step, outcome);
    }
}
