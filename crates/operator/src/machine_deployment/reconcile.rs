//! One reconcile: observe, run the steps, keep the current set, write the status.

use std::collections::BTreeMap;
use std::time::Duration;

use hangar_api::cluster::v1beta2::{MachineDeployment, MachineDeploymentStatus, MachineSet};
use hangar_api::names::{self, CLUSTER_NAME_LABEL};
use hangar_kit::ObjectKey;
use hangar_kit::controller::{Reconcile, Settled};
use hangar_kit::error::{Error, Result};
use hangar_kit::execute::{DEFAULT_ROUNDS, Ending, Workbench, execute};
use hangar_kit::watch::Kept;
use hangar_plan::flow::{Outcome, Plan, Read, Step as _};
use hangar_plan::machine_deployment::{Observed, Step, plan};
use jiff::Timestamp;
use kube::Api;
use serde_json::json;
use std::sync::Arc;

use super::MachineDeployments;
use crate::context::WRITE_LIMIT;
use crate::managed::{Managed, in_namespace, unknown};
use crate::outcome;

impl Reconcile for MachineDeployments {
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Settled> {
        match self.context.watches.machine_deployments().get(key) {
            Read::One(_) => {}
            Read::Unknown(why) => return Err(unknown(key, why)),
            Read::Absent | Read::Many(_) => return Ok(Settled::done()),
        }
        let bench = Bench { deployments: self, key };
        let pass = execute(&bench, &self.context.parts.leadership, WRITE_LIMIT, DEFAULT_ROUNDS).await?;
        bench.managed().status(key, |deployment| deployment.status.as_ref(), &pass.plan.status).await?;
        if pass.ending == Ending::AtRest {
            for set in &pass.plan.objects {
                bench.sets().apply(&self.applier, set).await?;
            }
        }
        Ok(outcome::settled(&pass))
    }
}

impl MachineDeployments {
    /// What the stores show now. Nothing is read live.
    fn read(&self, deployment: MachineDeployment) -> Observed {
        let key = ObjectKey::of(&deployment);
        let watches = &self.context.watches;
        let name = &deployment.spec.cluster_name;
        let cluster = ObjectKey { namespace: key.namespace.clone(), name: name.clone() };
        Observed {
            cluster: watches.clusters().get(&cluster).map(|kept| kept.value.clone()),
            sets: in_namespace(watches.machine_sets().by_label(CLUSTER_NAME_LABEL, name), &key),
            machines: in_namespace(watches.machines().by_label(CLUSTER_NAME_LABEL, name), &key),
            refusals: BTreeMap::new(),
            now: Timestamp::now(),
            deployment,
        }
    }
}

struct Bench<'pass> {
    deployments: &'pass MachineDeployments,
    key: &'pass ObjectKey,
}

impl Bench<'_> {
    fn managed(&self) -> Managed<MachineDeployment> {
        let context = &self.deployments.context;
        let api = Api::namespaced(context.client(), self.key.namespace_or_empty());
        Managed::new(api, context.watches.machine_deployments())
    }

    fn sets(&self) -> Managed<MachineSet> {
        let context = &self.deployments.context;
        let api = Api::namespaced(context.client(), self.key.namespace_or_empty());
        Managed::new(api, context.watches.machine_sets())
    }

    fn deployment(&self) -> Option<MachineDeployment> {
        match self.deployments.context.watches.machine_deployments().get(self.key) {
            Read::One(kept) => Some(kept.value.clone()),
            _ => None,
        }
    }

    fn set(&self, name: &str, uid: &str) -> Option<Arc<Kept<MachineSet>>> {
        let key = ObjectKey { namespace: self.key.namespace.clone(), name: name.to_owned() };
        match self.deployments.context.watches.machine_sets().get(&key) {
            Read::One(seen) if seen.uid == uid => Some(seen),
            _ => None,
        }
    }
}

impl Workbench for Bench<'_> {
    type Observation = Observed;
    type Step = Step;
    type Status = MachineDeploymentStatus;
    type Object = MachineSet;
    type Error = Error;

    async fn observe(&self) -> Result<Observed> {
        let deployment = self.deployment().ok_or_else(|| Error::Stale { what: self.key.to_string() })?;
        Ok(self.deployments.read(deployment))
    }

    fn plan(&self, observed: &Observed) -> Plan<Step, MachineDeploymentStatus, MachineSet> {
        plan(observed)
    }

    async fn run(&self, step: &Step, _: Duration) -> Outcome {
        let Some(deployment) = self.deployment() else { return Outcome::Lost };
        let finalizer = names::MACHINE_DEPLOYMENT_FINALIZER;
        match step {
            Step::AddFinalizer => self.managed().add_finalizer(&deployment, finalizer).await,
            Step::RemoveFinalizer => self.managed().remove_finalizer(&deployment, finalizer).await,
            Step::ClaimItself(claim) => self.managed().claim(&deployment, claim).await,
            Step::Adopt { name, uid, claim } => match self.set(name, uid) {
                Some(seen) => self.sets().claim(&seen.value, claim).await,
                None => Outcome::Lost,
            },
            Step::CreateSet(set) => self.sets().create(&self.deployments.applier, set).await,
            Step::Scale { name, uid, replicas, annotations } => match self.set(name, uid) {
                Some(seen) => {
                    let fields = json!({
                        "metadata": { "annotations": annotations },
                        "spec": { "replicas": replicas },
                    });
                    self.sets().merge(&seen.value, fields).await
                }
                None => Outcome::Lost,
            },
            Step::SetRevision(revision) => {
                let annotations = json!({ names::REVISION_ANNOTATION: revision });
                self.managed().merge(&deployment, json!({ "metadata": { "annotations": annotations } })).await
            }
            Step::DeleteSet { name, uid } => self.sets().delete(name, uid).await,
        }
    }

    fn fold(&self, observed: &mut Observed, step: &Step, outcome: &Outcome) {
        if let Outcome::Refused(words) = outcome {
            observed.refusals.insert(step.id(), words.clone());
        } else if let (true, Some(deployment)) = (outcome.is_success(), self.deployment()) {
            let mut next = self.deployments.read(deployment);
            next.refusals = std::mem::take(&mut observed.refusals);
            *observed = next;
        }
    }
}
