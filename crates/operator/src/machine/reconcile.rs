//! One reconcile: observe, ask the tenant for what the plan needs, run the steps, write the status.

use std::sync::Arc;
use std::time::Duration;

use hangar_api::cluster::v1beta2::{Machine, MachineStatus};
use hangar_api::names;
use hangar_kit::ObjectKey;
use hangar_kit::controller::{Reconcile, Settled};
use hangar_kit::error::{Error, Result};
use hangar_kit::execute::{DEFAULT_ROUNDS, Workbench, execute};
use hangar_kit::watch::Kept;
use hangar_plan::flow::{Failure, Outcome, Plan, Read};
use hangar_plan::machine::{Observed, Part, Step, fold, look, plan};
use kube::core::DynamicObject;
use kube::{Api, Client};
use serde_json::{Value, json};

use super::{Machines, tenant};
use crate::context::WRITE_LIMIT;
use crate::managed::{Managed, starting, unknown, writable};
use crate::outcome;

impl Reconcile for Machines {
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Settled> {
        match self.context.watches.machines().get(key) {
            Read::One(machine) => {
                if self.is_starting(&machine.value) {
                    return Ok(starting());
                }
            }
            Read::Unknown(why) => return Err(unknown(key, why)),
            Read::Absent | Read::Many(_) => return Ok(Settled::done()),
        }
        let bench = Bench { machines: self, key };
        let pass = execute(&bench, &self.context.parts.leadership, WRITE_LIMIT, DEFAULT_ROUNDS).await?;
        bench.managed().status(key, |machine| machine.status.as_ref(), &pass.plan.status).await?;
        Ok(outcome::settled(&pass))
    }
}

struct Bench<'pass> {
    machines: &'pass Machines,
    key: &'pass ObjectKey,
}

impl Bench<'_> {
    fn managed(&self) -> Managed<Machine> {
        let context = &self.machines.context;
        let api = Api::namespaced(context.client(), self.key.namespace_or_empty());
        Managed::new(api, context.watches.machines())
    }

    fn machine(&self) -> Option<Machine> {
        match self.machines.context.watches.machines().get(self.key) {
            Read::One(kept) => Some(kept.value.clone()),
            _ => None,
        }
    }

    fn part(
        &self,
        machine: &Machine,
        part: Part,
    ) -> Option<(Managed<DynamicObject>, Arc<Kept<DynamicObject>>)> {
        let reference = match part {
            Part::Bootstrap => machine.spec.bootstrap.config_ref.as_ref(),
            Part::Infrastructure => Some(&machine.spec.infrastructure_ref),
        };
        let context = &self.machines.context;
        writable(context.client(), &context.foreign, self.key.namespace_or_empty(), reference?)
    }

    /// A client of the tenant, or what became of a step that needed one.
    async fn client(&self, machine: &Machine) -> Result<Client, Outcome> {
        let cluster =
            ObjectKey { namespace: self.key.namespace.clone(), name: machine.spec.cluster_name.clone() };
        self.machines.context.tenants.client(&cluster).await.map_err(|error| {
            let (category, message) = ("TenantUnavailable", error.to_string());
            Outcome::Failed(Failure { category, message, is_retryable: true })
        })
    }

    async fn in_tenant(&self, machine: &Machine, step: &Step) -> Outcome {
        let client = match self.client(machine).await {
            Ok(client) => client,
            Err(outcome) => return outcome,
        };
        match step {
            Step::PatchNode { name, patch } => tenant::patch_node(client, name, patch).await,
            Step::Cordon { name } => tenant::cordon(client, name).await,
            Step::DeleteNode { name } => tenant::delete_node(client, name).await,
            Step::Evict { pod, uid, grace_seconds } => tenant::evict(client, pod, uid, *grace_seconds).await,
            _ => Outcome::Lost,
        }
    }
}

impl Workbench for Bench<'_> {
    type Observation = Observed;
    type Step = Step;
    type Status = MachineStatus;
    type Object = ();
    type Error = Error;

    async fn observe(&self) -> Result<Observed> {
        let machine = self.machine().ok_or_else(|| Error::Stale { what: self.key.to_string() })?;
        let mut observed = self.machines.read(machine);
        let wanted = look(&observed);
        self.machines.look(&mut observed, wanted).await;
        Ok(observed)
    }

    fn plan(&self, observed: &Observed) -> Plan<Step, MachineStatus, ()> {
        plan(observed)
    }

    async fn run(&self, step: &Step, _: Duration) -> Outcome {
        let Some(machine) = self.machine() else { return Outcome::Lost };
        match step {
            Step::AddFinalizer => self.managed().add_finalizer(&machine, names::MACHINE_FINALIZER).await,
            Step::RemoveFinalizer => {
                self.managed().remove_finalizer(&machine, names::MACHINE_FINALIZER).await
            }
            Step::ClaimItself(claim) => self.managed().claim(&machine, claim).await,
            Step::Note { data_secret_name, provider_id, failure_domain } => {
                let fields = noted(data_secret_name.as_ref(), provider_id.as_ref(), failure_domain.as_ref());
                self.managed().merge(&machine, fields).await
            }
            Step::Claim { part, claim } => match self.part(&machine, *part) {
                Some((managed, seen)) => managed.claim(&seen.value, claim).await,
                None => Outcome::Lost,
            },
            Step::DeletePart { part, uid } => match self.part(&machine, *part) {
                Some((managed, seen)) => managed.delete(&seen.key.name, uid).await,
                None => Outcome::Lost,
            },
            Step::PatchNode { .. } | Step::Cordon { .. } | Step::Evict { .. } | Step::DeleteNode { .. } => {
                self.in_tenant(&machine, step).await
            }
        }
    }

    fn fold(&self, observed: &mut Observed, step: &Step, outcome: &Outcome) {
        fold(observed, step, outcome);
        if let (true, Some(machine)) = (outcome.is_success(), self.machine()) {
            let next = self.machines.read(machine);
            let node = std::mem::replace(&mut observed.node, hangar_plan::machine::NodeView::NotLooked);
            let pods = std::mem::replace(&mut observed.pods, Read::Absent);
            let refusals = std::mem::take(&mut observed.refusals);
            *observed = Observed { node, pods, refusals, ..next };
        }
    }
}

fn noted(
    data_secret: Option<&String>,
    provider_id: Option<&String>,
    failure_domain: Option<&String>,
) -> Value {
    let mut fields = json!({ "spec": {} });
    if let Some(name) = data_secret {
        fields["spec"]["bootstrap"] = json!({ "dataSecretName": name });
    }
    if let Some(id) = provider_id {
        fields["spec"]["providerID"] = json!(id);
    }
    if let Some(domain) = failure_domain {
        fields["spec"]["failureDomain"] = json!(domain);
    }
    fields
}
