//! A reconcile without effects: the real observation and the real plans, on a cluster whose writes stay in memory.
//!
//! Writes to the management cluster run the real code with the client of an [`Overlay`]. Steps in a tenant or a cloud
//! do not run: they count as succeeded. Their results are folded into the observation, which the next pass recalls.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hangar_kit::apply::Applier;
use hangar_kit::event::Recorder;
use hangar_kit::execute::{Workbench, execute};
use hangar_kit::leadership::Always;
use hangar_kit::overlay::{Overlay, Place, Written};
use hangar_kit::{Error, ObjectKey};
use hangar_plan::flow::{
    Action, Identified as _, Outcome, Planner as _, Read, Report, Setbacks, Step, StepId, StepOf, dynamic,
};
use kube::Resource as _;

use super::{Case, Edge, RunOwn as _, Wanted, apply, share, write};
use crate::context::Context;

/// Longer than anything in memory takes.
const LIMIT: Duration = Duration::from_secs(60);

/// What one object's passes led to.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) kind: String,
    pub(crate) place: Place,
    /// Each once, in the order run.
    pub(crate) steps: Vec<Taken>,
    pub(crate) wrote: Vec<Written>,
    /// Of the last plan.
    pub(crate) report: Report,
}

/// A step that counts as run.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    id: StepId,
    /// Where it is run, where that is not the management cluster.
    pub(crate) place: Option<&'static str>,
}

impl Taken {
    /// The step in words.
    pub(crate) fn words(&self) -> String {
        let StepId { verb, kind, name } = &self.id;
        let (verb, kind) = (verb.replace('-', " "), kind.replace('-', " "));
        // Some steps are about the object itself, and are named after it or its kind.
        let name = if name == "self" || *name == self.id.kind { "" } else { name };
        let what = format!("{verb} {kind} {name}");
        match self.place {
            Some(place) => format!("in the {place}: {}", what.trim_end()),
            None => what.trim_end().to_owned(),
        }
    }
}

/// What a preview runs: all objects of one controller, one pass each.
pub(crate) trait Rehearse: Send {
    fn sweep<'a>(
        &'a mut self,
        scene: &'a Scene<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>>;
    /// What was told so far, by object.
    fn told(&self) -> Vec<Told>;
}

/// Where a preview happens.
pub(crate) struct Scene<'a> {
    pub(crate) context: &'a Context,
    pub(crate) overlay: &'a Overlay,
    /// Whether tenants and clouds are not asked.
    pub(crate) is_offline: bool,
    /// Which objects are looked at, by namespace and Cluster.
    pub(crate) concerns: &'a (dyn Fn(&str) -> bool + Sync),
}

/// One controller in a preview.
pub(crate) struct Rehearsal<E: Edge> {
    edge: E,
    applier: Applier,
    recorder: Recorder,
    before: BTreeMap<ObjectKey, E::Observed>,
    told: BTreeMap<ObjectKey, Told>,
}

impl<E: Edge> Rehearsal<E> {
    pub(crate) fn boxed(context: &Context, edge: E) -> Box<dyn Rehearse> {
        Box::new(Self {
            edge,
            applier: Applier::new(E::FIELD_MANAGER),
            recorder: context.recorder(E::CONTROLLER),
            before: BTreeMap::new(),
            told: BTreeMap::new(),
        })
    }

    async fn pass(&mut self, scene: &Scene<'_>, key: &ObjectKey) -> Result<(), Error> {
        let watch = E::watch(&scene.context.watches);
        let Read::One(root) = watch.get(key) else { return Ok(()) };
        // The first look starts the stores that are needed; plans are made when all are listed.
        let _ = self.edge.observe(scene.context, &root);
        scene.context.listed().await?;
        let written = scene.overlay.count();
        let case = Case::new(&self.edge, scene.context, &root);
        let bench = RehearsalBench {
            case: &case,
            applier: &self.applier,
            before: self.before.get(key),
            is_offline: scene.is_offline,
            taken: Mutex::default(),
        };
        // No preview waits for a cloud.
        let Some(mut pass) = execute(&bench, &Always, &mut Setbacks::default()).await else { return Ok(()) };
        let taken = bench.taken.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.edge.remember(&case, &pass.observed, pass.ending);
        let _ = apply(scene.context, &self.applier, &case, &mut pass).await;
        case.write_status(&self.recorder, &pass.plan.status).await?;
        let told = self.told.entry(key.clone()).or_insert_with(|| Told {
            kind: E::Root::kind(&()).into_owned(),
            place: Place {
                group: E::Root::group(&()).into_owned(),
                plural: E::Root::plural(&()).into_owned(),
                namespace: key.namespace.clone(),
                name: key.name.clone(),
            },
            steps: Vec::new(),
            wrote: Vec::new(),
            report: Report::default(),
        });
        for step in taken {
            if !told.steps.iter().any(|present| present.id == step.id) {
                told.steps.push(step);
            }
        }
        let wrote = scene.overlay.since(written);
        show(scene.context, &wrote);
        told.wrote.extend(wrote);
        told.report = pass.plan.report;
        self.before.insert(key.clone(), pass.observed);
        Ok(())
    }
}

/// Shows writes to every store of their kinds: no watch will.
fn show(context: &Context, wrote: &[Written]) {
    for Written { place, before, after } in wrote {
        let Some(object) = after.as_ref().or(before.as_ref()) else { continue };
        let Read::One(kind) = context.kind(&place.group, object["kind"].as_str().unwrap_or_default()) else {
            continue;
        };
        let key = ObjectKey { namespace: place.namespace.clone(), name: place.name.clone() };
        match after {
            Some(object) => kind.written(&dynamic(object)),
            None => kind.removed(&key, object["metadata"]["uid"].as_str().unwrap_or_default()),
        }
    }
}

impl<E: Edge> Rehearse for Rehearsal<E> {
    fn sweep<'a>(
        &'a mut self,
        scene: &'a Scene<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>> {
        Box::pin(async move {
            let watch = E::watch(&scene.context.watches);
            scene.context.listed().await?;
            let unreadable = watch.unreadable();
            if let Some(object) = unreadable.iter().find(|one| (scene.concerns)(&share(watch, &one.key))) {
                let what = format!("{} {}", E::Root::kind(&()), object.key);
                return Err(Error::Malformed { what, problem: object.why.clone() });
            }
            let keys: Vec<ObjectKey> = watch.all().iter().map(|kept| kept.key.clone()).collect();
            for key in keys.into_iter().filter(|key| (scene.concerns)(&share(watch, key))) {
                self.pass(scene, &key).await?;
            }
            Ok(())
        })
    }

    fn told(&self) -> Vec<Told> {
        self.told.values().cloned().collect()
    }
}

/// One object's reads, and effects that stay in memory.
struct RehearsalBench<'a, E: Edge> {
    case: &'a Case<'a, E>,
    applier: &'a Applier,
    before: Option<&'a E::Observed>,
    is_offline: bool,
    taken: Mutex<Vec<Taken>>,
}

impl<E: Edge> Workbench for RehearsalBench<'_, E> {
    type Observed = E::Observed;

    fn observe(&self) -> E::Observed {
        let mut observed = self.case.edge.observe(self.case.context, self.case.seen());
        if let Some(before) = self.before {
            observed.recall(before);
        }
        observed
    }

    async fn read(&self, observed: &mut E::Observed, wanted: Wanted<E>) {
        let wanted = if self.is_offline { observed.assume(wanted) } else { Some(wanted) };
        if let Some(wanted) = wanted {
            self.case.edge.read(self.case, observed, wanted).await;
        }
    }

    fn limit(&self, _: &StepOf<E::Observed>) -> Duration {
        LIMIT
    }

    async fn run(&self, _: &E::Observed, step: &StepOf<E::Observed>) -> Outcome {
        let id = step.id();
        let made = format!("<{} {}>", id.kind.replace('-', " "), id.name);
        let outcome = match step {
            Step::Write(write) => write::run(self.case, self.applier, write).await,
            Step::Own(step) => step.rehearse(self.case).await,
            Step::Tenant(_) | Step::Cloud(_) => Outcome::Created(made),
        };
        let place = match step {
            // An object that is made is told as such.
            Step::Own(_) => return outcome,
            Step::Write(write) if matches!(write.action, Action::Create { .. }) => return outcome,
            Step::Write(_) => None,
            Step::Tenant(_) => Some("tenant"),
            Step::Cloud(_) => Some("cloud"),
        };
        if outcome.is_success() {
            self.taken.lock().unwrap_or_else(PoisonError::into_inner).push(Taken { id, place });
        }
        outcome
    }
}
