//! One reconcile: observe, run the steps, write the status.

use std::sync::Arc;
use std::time::Duration;

use hangar_api::cluster::v1beta2::{Cluster, ClusterStatus};
use hangar_api::names;
use hangar_kit::ObjectKey;
use hangar_kit::controller::{Reconcile, Settled};
use hangar_kit::error::{Error, Result};
use hangar_kit::execute::{DEFAULT_ROUNDS, Workbench, execute};
use hangar_kit::watch::Kept;
use hangar_plan::cluster::{Connection, Observed, Part, Step, Worker, plan};
use hangar_plan::flow::{Outcome, Plan, Read, Step as _};
use kube::Api;
use kube::core::DynamicObject;
use serde_json::json;

use super::Clusters;
use crate::context::WRITE_LIMIT;
use crate::managed::{Managed, is_starting, starting, unknown, writable};
use crate::outcome;

impl Reconcile for Clusters {
    type Error = Error;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Settled> {
        match self.context.watches.clusters().get(key) {
            Read::One(cluster) => {
                let spec = &cluster.spec;
                let references = spec.infrastructure_ref.iter().chain(&spec.control_plane_ref);
                if is_starting(&self.context.foreign, references) {
                    return Ok(starting());
                }
            }
            Read::Unknown(why) => return Err(unknown(key, why)),
            Read::Absent | Read::Many(_) => {
                self.forget(key);
                self.context.tenants.forget(key);
                return Ok(Settled::done());
            }
        }
        let bench = Bench { clusters: self, key };
        let pass = execute(&bench, &self.context.parts.leadership, WRITE_LIMIT, DEFAULT_ROUNDS).await?;
        bench.managed().status(key, |cluster| cluster.status.as_ref(), &pass.plan.status).await?;
        Ok(outcome::settled(&pass))
    }
}

struct Bench<'pass> {
    clusters: &'pass Clusters,
    key: &'pass ObjectKey,
}

impl Bench<'_> {
    fn namespace(&self) -> &str {
        self.key.namespace_or_empty()
    }

    fn managed(&self) -> Managed<Cluster> {
        let context = &self.clusters.context;
        Managed::new(Api::namespaced(context.client(), self.namespace()), context.watches.clusters())
    }

    fn cluster(&self) -> Option<Cluster> {
        match self.clusters.context.watches.clusters().get(self.key) {
            Read::One(kept) => Some(kept.value.clone()),
            _ => None,
        }
    }

    fn part(
        &self,
        cluster: &Cluster,
        part: Part,
    ) -> Option<(Managed<DynamicObject>, Arc<Kept<DynamicObject>>)> {
        let reference = match part {
            Part::Infrastructure => cluster.spec.infrastructure_ref.as_ref(),
            Part::ControlPlane => cluster.spec.control_plane_ref.as_ref(),
        };
        let context = &self.clusters.context;
        writable(context.client(), &context.foreign, self.namespace(), reference?)
    }

    async fn delete_worker(&self, kind: Worker, name: &str, uid: &str) -> Outcome {
        let context = &self.clusters.context;
        let (client, namespace) = (context.client(), self.namespace());
        let watches = &context.watches;
        match kind {
            Worker::MachineDeployment => {
                let api = Api::namespaced(client, namespace);
                Managed::new(api, watches.machine_deployments()).delete(name, uid).await
            }
            Worker::MachineSet => {
                Managed::new(Api::namespaced(client, namespace), watches.machine_sets())
                    .delete(name, uid)
                    .await
            }
            Worker::Machine => {
                Managed::new(Api::namespaced(client, namespace), watches.machines()).delete(name, uid).await
            }
        }
    }
}

impl Workbench for Bench<'_> {
    type Observation = Observed;
    type Step = Step;
    type Status = ClusterStatus;
    type Object = ();
    type Error = Error;

    async fn observe(&self) -> Result<Observed> {
        let Some(cluster) = self.cluster() else {
            return Err(Error::Stale { what: self.key.to_string() });
        };
        let mut observed = self.clusters.read(cluster, Connection::NotTried);
        observed.connection = self.clusters.probe(&observed).await;
        Ok(observed)
    }

    fn plan(&self, observed: &Observed) -> Plan<Step, ClusterStatus, ()> {
        plan(observed)
    }

    async fn run(&self, step: &Step, _: Duration) -> Outcome {
        let Some(cluster) = self.cluster() else { return Outcome::Lost };
        let managed = self.managed();
        match step {
            Step::AddFinalizer => managed.add_finalizer(&cluster, names::CLUSTER_FINALIZER).await,
            Step::RemoveFinalizer => managed.remove_finalizer(&cluster, names::CLUSTER_FINALIZER).await,
            Step::SetEndpoint(endpoint) => {
                let endpoint = json!({ "host": endpoint.host, "port": endpoint.port });
                managed.merge(&cluster, json!({ "spec": { "controlPlaneEndpoint": endpoint } })).await
            }
            Step::Claim { part, claim } => match self.part(&cluster, *part) {
                Some((managed, seen)) => managed.claim(&seen.value, claim).await,
                None => Outcome::Lost,
            },
            Step::DeletePart { part, uid } => match self.part(&cluster, *part) {
                Some((managed, seen)) => managed.delete(&seen.key.name, uid).await,
                None => Outcome::Lost,
            },
            Step::DeleteWorker { kind, name, uid } => self.delete_worker(*kind, name, uid).await,
        }
    }

    fn fold(&self, observed: &mut Observed, step: &Step, outcome: &Outcome) {
        if let Outcome::Refused(words) = outcome {
            observed.refusals.insert(step.id(), words.clone());
        } else if let (true, Some(cluster)) = (outcome.is_success(), self.cluster()) {
            let mut next = self.clusters.read(cluster, observed.connection.clone());
            next.refusals = std::mem::take(&mut observed.refusals);
            *observed = next;
        }
    }
}
