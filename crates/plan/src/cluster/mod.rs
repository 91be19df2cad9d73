//! Cluster: claims its infrastructure and control plane, says where its API server is, and goes away in order.
//!
//! Everything is read through contracts, so any provider works. Facts that were reached once stay reached
//! (`status.initialization`). Deletion is a chain of stages (`deletion`), derived anew from what still exists, so
//! nothing is remembered: workers, then the control plane, then the infrastructure, then the finalizer.

mod deletion;
mod endpoint;
mod status;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use hangar_api::cluster::v1beta2::{Cluster, ClusterStatus, Machine, MachineDeployment, MachineSet};
use hangar_api::contract::Endpoint;
use hangar_api::names;
use hangar_api::reference::ContractVersionedObjectReference;
use jiff::Timestamp;

use crate::flow::{Plan, Read, Step as FlowStep, StepId, Wake};
use crate::referred::{self, Claim, Claiming, Referred};

/// A look at the tenant's API server once a minute: it is the only sign of a cluster that nobody uses.
const PROBE_INTERVAL: Duration = Duration::from_secs(60);
/// What was just tried is tried again soon: the end of an outage should show.
const FAILING_INTERVAL: Duration = Duration::from_secs(10);
/// References whose object is not there are woken by its appearance; this only catches what a watch cannot show, such
/// as a CRD that gets its contract label.
const MISSING_INTERVAL: Duration = Duration::from_secs(30);

/// Everything that decides about a Cluster.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The Cluster.
    pub cluster: Cluster,
    /// The object behind its infrastructure reference, if it has one.
    pub infrastructure: Option<Read<Referred>>,
    /// The object behind its control plane reference, if it has one.
    pub control_plane: Option<Read<Referred>>,
    /// Its MachineDeployments.
    pub deployments: Read<MachineDeployment>,
    /// Its MachineSets.
    pub sets: Read<MachineSet>,
    /// Its Machines.
    pub machines: Read<Machine>,
    /// How its API server answers.
    pub connection: Connection,
    /// Steps of this pass that were refused, in the words of who refused.
    pub refusals: BTreeMap<StepId, String>,
    /// The time.
    pub now: Timestamp,
}

/// How a tenant's API server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Connection {
    /// Nobody asked: there is no control plane yet.
    NotTried,
    /// It answers.
    Answering,
    /// It does not.
    Failing {
        /// What the last call said.
        why: String,
        /// Whether it failed often enough to believe it.
        is_lasting: bool,
    },
}

/// One of the two objects that a Cluster refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The infrastructure.
    Infrastructure,
    /// The control plane.
    ControlPlane,
}

/// Kinds that a Cluster's deletion deletes by their own names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worker {
    /// A MachineDeployment.
    MachineDeployment,
    /// A MachineSet.
    MachineSet,
    /// A Machine.
    Machine,
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Our finalizer on the Cluster.
    AddFinalizer,
    /// Owner reference and label on an object that the Cluster refers to.
    Claim {
        /// Which.
        part: Part,
        /// What is written.
        claim: Claim,
    },
    /// Where the API server is reached, into the Cluster's spec.
    SetEndpoint(Endpoint),
    /// Deletes an object that the Cluster refers to.
    DeletePart {
        /// Which.
        part: Part,
        /// The one that was seen.
        uid: String,
    },
    /// Deletes something that makes workers.
    DeleteWorker {
        /// Of which kind.
        kind: Worker,
        /// Its name.
        name: String,
        /// The one that was seen.
        uid: String,
    },
    /// Lets the Cluster go.
    RemoveFinalizer,
}

impl FlowStep for Step {
    fn id(&self) -> StepId {
        let part = |part: &Part| match part {
            Part::Infrastructure => "infrastructure",
            Part::ControlPlane => "control-plane",
        };
        match self {
            Self::AddFinalizer => StepId::new("add", "finalizer", "cluster"),
            Self::Claim { part: which, .. } => StepId::new("claim", part(which), ""),
            Self::SetEndpoint(_) => StepId::new("set", "endpoint", "cluster"),
            Self::DeletePart { part: which, .. } => StepId::new("delete", part(which), ""),
            Self::DeleteWorker { kind, name, .. } => {
                let kind = match kind {
                    Worker::MachineDeployment => "machine-deployment",
                    Worker::MachineSet => "machine-set",
                    Worker::Machine => "machine",
                };
                StepId::new("delete", kind, name)
            }
            Self::RemoveFinalizer => StepId::new("remove", "finalizer", "cluster"),
        }
    }
}

impl Observed {
    /// The reference to one of the two objects.
    pub fn reference(&self, part: Part) -> Option<&ContractVersionedObjectReference> {
        match part {
            Part::Infrastructure => self.cluster.spec.infrastructure_ref.as_ref(),
            Part::ControlPlane => self.cluster.spec.control_plane_ref.as_ref(),
        }
    }

    fn read(&self, part: Part) -> Option<&Read<Referred>> {
        match part {
            Part::Infrastructure => self.infrastructure.as_ref(),
            Part::ControlPlane => self.control_plane.as_ref(),
        }
    }

    /// The object, where it is ours: what another Cluster refers to and owns is left to it, also when we go.
    fn object(&self, part: Part) -> Option<&Referred> {
        match self.read(part) {
            Some(Read::One(object)) if self.taken_by(object).is_none() => Some(object),
            _ => None,
        }
    }

    fn taken_by<'object>(&self, object: &'object Referred) -> Option<&'object str> {
        let name = self.cluster.metadata.name.as_deref().unwrap_or_default();
        referred::other_cluster(&object.metadata, name)
    }

    fn is_deleting(&self) -> bool {
        self.cluster.metadata.deletion_timestamp.is_some()
    }

    /// Whether the API server should answer: the edge asks it then.
    pub fn is_control_plane_initialized(&self) -> bool {
        let before = self.cluster.status.as_ref().and_then(|status| status.initialization.as_ref());
        let was = before.is_some_and(|reached| reached.control_plane_initialized == Some(true));
        was || match &self.control_plane {
            Some(_) => {
                self.object(Part::ControlPlane).is_some_and(|object| object.control_plane().is_initialized())
            }
            None => self.machines.iter().any(is_control_plane_node),
        }
    }
}

/// Without a control plane object, the first control plane Machine with a Node is the sign of life.
fn is_control_plane_node(machine: &Machine) -> bool {
    is_control_plane(machine) && machine.status.as_ref().is_some_and(|status| status.node_ref.is_some())
}

fn is_control_plane(machine: &Machine) -> bool {
    machine.metadata.labels.iter().flatten().any(|(name, _)| name == names::CONTROL_PLANE_LABEL)
}

/// What to do about a Cluster, and what to say.
pub fn plan(observed: &Observed) -> Plan<Step, ClusterStatus, ()> {
    let mut plan = Plan::default();
    if let Some(until) = referred::paused(&observed.cluster.metadata, Some(&observed.cluster)) {
        plan.status = status::paused(observed, until);
        return plan;
    }
    if observed.is_deleting() {
        let stage = deletion::next(observed);
        plan.report.waits.push(stage.wait());
        plan.status = status::deleting(observed, &stage);
        for step in stage.steps {
            plan.steps.push(step);
        }
        plan.wake = Wake::after(observed.now, MISSING_INTERVAL);
        return plan;
    }
    let finalizers = observed.cluster.metadata.finalizers.as_deref().unwrap_or_default();
    if finalizers.iter().any(|finalizer| finalizer == names::CLUSTER_FINALIZER) {
        for part in [Part::Infrastructure, Part::ControlPlane] {
            if let Some(claim) = claim(observed, part) {
                plan.steps.push(Step::Claim { part, claim });
            }
        }
        if let endpoint::Choice::Set(endpoint) = endpoint::choose(observed) {
            plan.report.decide(format!("endpoint {endpoint}"), "the Cluster has none of its own");
            plan.steps.push(Step::SetEndpoint(endpoint));
        }
    } else {
        plan.steps.push(Step::AddFinalizer);
    }
    plan.status = status::normal(observed);
    plan.wake = wake(observed);
    plan
}

fn claim(observed: &Observed, part: Part) -> Option<Claim> {
    let object = observed.object(part)?;
    if object.is_terminating() {
        return None;
    }
    // Only a topology manages the objects; otherwise whoever wrote the manifest may have put them under an owner.
    let is_managed = observed.cluster.spec.topology.is_some();
    let owner = referred::owner("Cluster", &observed.cluster.metadata, is_managed);
    let name = observed.cluster.metadata.name.as_deref().unwrap_or_default();
    match object.claiming(&owner, name, None) {
        Claiming::Needs(claim) => Some(claim),
        Claiming::Held | Claiming::Taken(_) => None,
    }
}

fn wake(observed: &Observed) -> Wake {
    let is_missing = |part| matches!(observed.read(part), Some(Read::Absent | Read::Unknown(_)));
    let missing = if is_missing(Part::Infrastructure) || is_missing(Part::ControlPlane) {
        Wake::after(observed.now, MISSING_INTERVAL)
    } else {
        Wake::OnChange
    };
    let probe = match observed.connection {
        Connection::NotTried => Wake::OnChange,
        Connection::Answering => Wake::after(observed.now, PROBE_INTERVAL),
        Connection::Failing { .. } => Wake::after(observed.now, FAILING_INTERVAL),
    };
    missing.sooner(probe)
}
