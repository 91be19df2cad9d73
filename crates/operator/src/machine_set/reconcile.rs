//! One reconcile: observe, run the steps, apply what follows the template, write the status.

use std::time::Duration;

use hangar_api::cluster::v1beta2::{Machine, MachineSet, MachineSetStatus};
use hangar_api::names;
use hangar_kit::ObjectKey;
use hangar_kit::controller::{Reconcile, Settled};
use hangar_kit::error::{Error, Result};
use hangar_kit::execute::{DEFAULT_ROUNDS, Ending, Workbench, execute};
use hangar_plan::flow::{Outcome, Plan, Read, Step as _};
use hangar_plan::machine_set::{Observed, Step, plan};
use kube::Api;

use super::MachineSets;
use crate::context::WRITE_LIMIT;
use crate::managed::{Managed, create_foreign, starting, unknown, writable};
use crate::outcome;

impl Reconcile for MachineSets {
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Settled> {
        match self.context.watches.machine_sets().get(key) {
            Read::One(set) => {
                if self.is_starting(&set.value) {
                    return Ok(starting());
                }
            }
            Read::Unknown(why) => return Err(unknown(key, why)),
            Read::Absent | Read::Many(_) => return Ok(Settled::done()),
        }
        let bench = Bench { sets: self, key };
        let pass = execute(&bench, &self.context.parts.leadership, WRITE_LIMIT, DEFAULT_ROUNDS).await?;
        bench.managed().status(key, |set| set.status.as_ref(), &pass.plan.status).await?;
        if pass.ending == Ending::AtRest {
            for machine in &pass.plan.objects {
                bench.machines().apply(&self.applier, machine).await?;
            }
        }
        Ok(outcome::settled(&pass))
    }
}

struct Bench<'pass> {
    sets: &'pass MachineSets,
    key: &'pass ObjectKey,
}

impl Bench<'_> {
    fn managed(&self) -> Managed<MachineSet> {
        let context = &self.sets.context;
        let api = Api::namespaced(context.client(), self.key.namespace_or_empty());
        Managed::new(api, context.watches.machine_sets())
    }

    fn machines(&self) -> Managed<Machine> {
        let context = &self.sets.context;
        let api = Api::namespaced(context.client(), self.key.namespace_or_empty());
        Managed::new(api, context.watches.machines())
    }

    fn set(&self) -> Option<MachineSet> {
        match self.sets.context.watches.machine_sets().get(self.key) {
            Read::One(kept) => Some(kept.value.clone()),
            _ => None,
        }
    }
}

impl Workbench for Bench<'_> {
    type Observation = Observed;
    type Step = Step;
    type Status = MachineSetStatus;
    type Object = Machine;
    type Error = Error;

    async fn observe(&self) -> Result<Observed> {
        let set = self.set().ok_or_else(|| Error::Stale { what: self.key.to_string() })?;
        Ok(self.sets.read(set))
    }

    fn plan(&self, observed: &Observed) -> Plan<Step, MachineSetStatus, Machine> {
        plan(observed)
    }

    async fn run(&self, step: &Step, _: Duration) -> Outcome {
        let Some(set) = self.set() else { return Outcome::Lost };
        let context = &self.sets.context;
        match step {
            Step::AddFinalizer => self.managed().add_finalizer(&set, names::MACHINE_SET_FINALIZER).await,
            Step::RemoveFinalizer => {
                self.managed().remove_finalizer(&set, names::MACHINE_SET_FINALIZER).await
            }
            Step::ClaimItself(claim) => self.managed().claim(&set, claim).await,
            Step::Adopt { name, uid, claim } => {
                let key = ObjectKey { namespace: self.key.namespace.clone(), name: name.clone() };
                match context.watches.machines().get(&key) {
                    Read::One(seen) if seen.uid == *uid => self.machines().claim(&seen.value, claim).await,
                    _ => Outcome::Lost,
                }
            }
            Step::OwnTemplate { reference, uid, claim } => {
                let namespace = self.key.namespace_or_empty();
                match writable(context.client(), &context.foreign, namespace, reference) {
                    Some((managed, seen)) if seen.uid == *uid => managed.claim(&seen.value, claim).await,
                    _ => Outcome::Lost,
                }
            }
            Step::CreateMachine(machine) => self.machines().create(&self.sets.applier, machine).await,
            Step::CreateClone(object) => create_foreign(context.client(), &context.foreign, object).await,
            Step::DeleteMachine { name, uid } => self.machines().delete(name, uid).await,
        }
    }

    fn fold(&self, observed: &mut Observed, step: &Step, outcome: &Outcome) {
        if let Outcome::Refused(words) = outcome {
            observed.refusals.insert(step.id(), words.clone());
        } else if let (true, Some(set)) = (outcome.is_success(), self.set()) {
            let mut next = self.sets.read(set);
            next.refusals = std::mem::take(&mut observed.refusals);
            *observed = next;
        }
    }
}
