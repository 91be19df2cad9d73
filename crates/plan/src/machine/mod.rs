//! Machine: from bootstrap data to a server to a Node, and back in the other order.
//!
//! Bootstrap and infrastructure are read by contract, whoever provides them. A Node is the Machine's when it has the same
//! server behind its provider id ([`node`]); it is searched only while the Machine has none. The tenant's API server is
//! asked live, for as little as the moment needs ([`look`]), and not being reachable is said and waited out, never taken
//! for an absence.
//!
//! Deletion (`deletion`): hooks, drain, hooks, server, bootstrap configuration, Node, finalizer. The Node goes after its
//! server: a kubelet that is still alive could register it again. Each stage is derived from what still exists.

mod deletion;
pub mod drain;
pub mod node;
mod status;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use hangar_api::cluster::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet, MachineStatus};
use hangar_api::contract::InfrastructureMachine;
use hangar_api::names;
use hangar_api::reference::ContractVersionedObjectReference;
use jiff::Timestamp;

use crate::flow::{Outcome, Plan, Read, Step as FlowStep, StepId, Wake};
use crate::referred::{self, Claim, Claiming, Referred};

pub use drain::{PodFacts, PodKey};
pub use node::{NodeFacts, NodePatch, NodeView};

/// A Node registers and becomes Ready within a minute or two of its server; nothing else tells us, and somebody waits.
const NODE_START_INTERVAL: Duration = Duration::from_secs(2);
/// What takes longer than this to start does not start, and is looked at as rarely as what is sick.
const NODE_START: Duration = Duration::from_mins(10);
/// A Node that is not well is looked at more often than one that is.
const NODE_SICK_INTERVAL: Duration = Duration::from_secs(10);
const NODE_WELL_INTERVAL: Duration = Duration::from_secs(60);
/// Pods end within their grace period, which is 30 s for most.
const DRAIN_INTERVAL: Duration = Duration::from_secs(5);
/// Objects that are missing are woken by their appearance; this only catches what a watch cannot show.
const MISSING_INTERVAL: Duration = Duration::from_secs(30);

/// Everything that decides about a Machine.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The Machine.
    pub machine: Machine,
    /// Its Cluster.
    pub cluster: Read<Cluster>,
    /// The object behind its bootstrap reference, if it has one.
    pub bootstrap: Option<Read<Referred>>,
    /// The object behind its infrastructure reference.
    pub infrastructure: Read<Referred>,
    /// The control plane of the cluster, if the Cluster refers to one.
    pub control_plane: Option<Read<Referred>>,
    /// Whether the cluster has Machines that are control plane nodes.
    pub has_control_plane_machines: bool,
    /// The set that manages it, if one does and is known.
    pub set: Option<MachineSet>,
    /// The deployment that manages the set, if one does and is known.
    pub deployment: Option<MachineDeployment>,
    /// Its Node in the tenant.
    pub node: NodeView,
    /// The pods on that Node; unknown unless they were asked for.
    pub pods: Read<PodFacts>,
    /// Steps of this pass that were refused, in the words of who refused.
    pub refusals: BTreeMap<StepId, String>,
    /// The time.
    pub now: Timestamp,
}

/// One of the two objects that a Machine refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The bootstrap configuration.
    Bootstrap,
    /// The server.
    Infrastructure,
}

/// What to ask the tenant for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// Nothing.
    Nothing,
    /// All Nodes, to find the one with this provider id.
    FindNode {
        /// The provider id.
        provider_id: String,
    },
    /// One Node.
    Node {
        /// Its name.
        name: String,
    },
    /// One Node and the pods on it.
    NodeAndPods {
        /// Its name.
        name: String,
    },
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Our finalizer on the Machine.
    AddFinalizer,
    /// Owner reference and label on the Machine itself.
    ClaimItself(Claim),
    /// Owner reference and label on an object that the Machine refers to.
    Claim {
        /// Which.
        part: Part,
        /// What is written.
        claim: Claim,
    },
    /// Facts from the providers, into the Machine's spec. What is none stays as it is.
    Note {
        /// The Secret with the bootstrap data.
        data_secret_name: Option<String>,
        /// The server's identity.
        provider_id: Option<String>,
        /// Where the server is.
        failure_domain: Option<String>,
    },
    /// Labels, annotations and taints of the Node.
    PatchNode {
        /// The Node.
        name: String,
        /// What changes.
        patch: NodePatch,
    },
    /// No more pods for the Node.
    Cordon {
        /// The Node.
        name: String,
    },
    /// Asks a pod to leave.
    Evict {
        /// The pod.
        pod: PodKey,
        /// The one that was seen.
        uid: String,
        /// A shorter grace than its own, where nobody is left to use it.
        grace_seconds: Option<u32>,
    },
    /// Deletes an object that the Machine refers to.
    DeletePart {
        /// Which.
        part: Part,
        /// The one that was seen.
        uid: String,
    },
    /// Deletes the Node.
    DeleteNode {
        /// The Node.
        name: String,
    },
    /// Lets the Machine go.
    RemoveFinalizer,
}

impl FlowStep for Step {
    fn id(&self) -> StepId {
        let part = |part: &Part| match part {
            Part::Bootstrap => "bootstrap",
            Part::Infrastructure => "infrastructure",
        };
        match self {
            Self::AddFinalizer => StepId::new("add", "finalizer", "machine"),
            Self::ClaimItself(_) => StepId::new("claim", "machine", ""),
            Self::Claim { part: which, .. } => StepId::new("claim", part(which), ""),
            Self::Note { .. } => StepId::new("note", "machine", ""),
            Self::PatchNode { name, .. } => StepId::new("patch", "node", name),
            Self::Cordon { name } => StepId::new("cordon", "node", name),
            Self::Evict { pod, .. } => drain::step(pod),
            Self::DeletePart { part: which, .. } => StepId::new("delete", part(which), ""),
            Self::DeleteNode { name } => StepId::new("delete", "node", name),
            Self::RemoveFinalizer => StepId::new("remove", "finalizer", "machine"),
        }
    }
}

impl Observed {
    /// The reference to one of the two objects.
    pub fn reference(&self, part: Part) -> Option<&ContractVersionedObjectReference> {
        match part {
            Part::Bootstrap => self.machine.spec.bootstrap.config_ref.as_ref(),
            Part::Infrastructure => Some(&self.machine.spec.infrastructure_ref),
        }
    }

    fn read(&self, part: Part) -> Option<&Read<Referred>> {
        match part {
            Part::Bootstrap => self.bootstrap.as_ref(),
            Part::Infrastructure => Some(&self.infrastructure),
        }
    }

    fn object(&self, part: Part) -> Option<&Referred> {
        match self.read(part) {
            Some(Read::One(object)) => Some(object),
            _ => None,
        }
    }

    fn is_deleting(&self) -> bool {
        self.machine.metadata.deletion_timestamp.is_some()
    }

    fn the_cluster(&self) -> Option<&Cluster> {
        match &self.cluster {
            Read::One(cluster) => Some(cluster),
            _ => None,
        }
    }

    fn is_paused(&self) -> Option<&'static str> {
        referred::paused(&self.machine.metadata, self.the_cluster())
    }

    fn is_control_plane_initialized(&self) -> bool {
        let reached = self.the_cluster().and_then(|cluster| cluster.status.as_ref()?.initialization.as_ref());
        reached.is_some_and(|reached| reached.control_plane_initialized == Some(true))
    }

    fn node_name(&self) -> Option<&str> {
        Some(self.machine.status.as_ref()?.node_ref.as_ref()?.name.as_str()).filter(|name| !name.is_empty())
    }
}

/// What the tenant has to be asked before [`plan`] can decide. Everything else of the observation is there already.
pub fn look(observed: &Observed) -> Look {
    if observed.is_paused().is_some() || !observed.is_control_plane_initialized() {
        return Look::Nothing;
    }
    match (observed.is_deleting(), observed.node_name()) {
        (true, name) => deletion::look(observed, name),
        (false, Some(name)) => Look::Node { name: name.to_owned() },
        (false, None) => match &observed.machine.spec.provider_id {
            Some(id) => Look::FindNode { provider_id: id.clone() },
            None => Look::Nothing,
        },
    }
}

/// What to do about a Machine, and what to say.
pub fn plan(observed: &Observed) -> Plan<Step, MachineStatus, ()> {
    let mut plan = Plan::default();
    if let Some(until) = observed.is_paused() {
        plan.status = status::paused(observed, until);
        return plan;
    }
    if observed.is_deleting() {
        let stage = deletion::next(observed);
        plan.report.waits.push(stage.wait());
        plan.wake = stage.wake(observed.now);
        plan.status = status::deleting(observed, &stage);
        for step in stage.steps {
            plan.steps.push(step);
        }
        return plan;
    }
    let finalizers = observed.machine.metadata.finalizers.as_deref().unwrap_or_default();
    if finalizers.iter().any(|finalizer| finalizer == names::MACHINE_FINALIZER) {
        provision(observed, &mut plan);
    } else {
        plan.steps.push(Step::AddFinalizer);
    }
    plan.status = status::normal(observed);
    plan.wake = wake(observed);
    plan
}

/// What a step made of the tenant. The stores show the rest.
pub fn fold(observed: &mut Observed, step: &Step, outcome: &Outcome) {
    if let Outcome::Refused(words) = outcome {
        observed.refusals.insert(step.id(), words.clone());
    }
    if !outcome.is_success() {
        return;
    }
    match (step, &mut observed.node) {
        (Step::PatchNode { patch, .. }, NodeView::Found(node)) => patch.apply(node),
        (Step::Cordon { .. }, NodeView::Found(node)) => node.is_cordoned = true,
        (Step::DeleteNode { .. }, node) => *node = NodeView::Absent,
        (Step::Evict { pod, .. }, _) => {
            let now = observed.now;
            let pods = std::mem::replace(&mut observed.pods, Read::Absent);
            observed.pods = pods.map(|mut facts| {
                if facts.key == *pod {
                    facts.leaves_by.get_or_insert(now);
                }
                facts
            });
        }
        _ => {}
    }
}

fn provision(observed: &Observed, plan: &mut Plan<Step, MachineStatus, ()>) {
    let Some(cluster) = observed.the_cluster() else { return };
    let metadata = &observed.machine.metadata;
    let name = &observed.machine.spec.cluster_name;
    if let Some(claim) = referred::claim_for_cluster(metadata, cluster, name) {
        plan.steps.push(Step::ClaimItself(claim));
    }
    let owner = referred::owner("Machine", metadata, true);
    for part in [Part::Bootstrap, Part::Infrastructure] {
        let Some(object) = observed.object(part).filter(|object| !object.is_terminating()) else { continue };
        if let Claiming::Needs(claim) = object.claiming(&owner, name, Some("MachineSet")) {
            plan.steps.push(Step::Claim { part, claim });
        }
    }
    plan.steps = plan.steps.iter().cloned().chain(note(observed)).collect();
    if let NodeView::Found(node) = &observed.node
        && let Some(patch) = node::patch(node, &observed.machine)
    {
        plan.steps.push(Step::PatchNode { name: node.name.clone(), patch });
    }
}

/// Facts that the providers know now and the Machine's spec does not.
fn note(observed: &Observed) -> Option<Step> {
    let spec = &observed.machine.spec;
    let is_empty = |text: &Option<String>| text.as_deref().unwrap_or_default().is_empty();
    let data_secret_name = observed
        .object(Part::Bootstrap)
        .map(Referred::bootstrap)
        .filter(|view| view.is_data_secret_created() && is_empty(&spec.bootstrap.data_secret_name))
        .and_then(|view| view.data_secret_name().map(str::to_owned));
    let server = observed.object(Part::Infrastructure).map(Referred::infrastructure_machine);
    let server = server.filter(InfrastructureMachine::is_provisioned);
    let provider_id = server
        .and_then(|view| view.provider_id().map(str::to_owned))
        .filter(|id| spec.provider_id.as_ref() != Some(id));
    let failure_domain = server
        .and_then(|view| view.failure_domain().map(str::to_owned))
        .filter(|_| is_empty(&spec.failure_domain));
    let is_news = data_secret_name.is_some() || provider_id.is_some() || failure_domain.is_some();
    is_news.then_some(Step::Note { data_secret_name, provider_id, failure_domain })
}

fn wake(observed: &Observed) -> Wake {
    let after = |length| Wake::after(observed.now, length);
    let is_missing = |part| matches!(observed.read(part), Some(Read::Absent | Read::Unknown(_)));
    let missing = if is_missing(Part::Bootstrap) || is_missing(Part::Infrastructure) {
        after(MISSING_INTERVAL)
    } else {
        Wake::OnChange
    };
    let sick = if is_starting(observed) { NODE_START_INTERVAL } else { NODE_SICK_INTERVAL };
    let node = match &observed.node {
        NodeView::NotLooked => Wake::OnChange,
        NodeView::Found(node) if node::is_healthy(node) && !node::is_uninitialized(node) => {
            after(NODE_WELL_INTERVAL)
        }
        NodeView::Absent if observed.node_name().is_some() => after(NODE_WELL_INTERVAL),
        NodeView::Found(_) | NodeView::Unreachable(_) | NodeView::Several(_) | NodeView::Absent => {
            after(sick)
        }
    };
    missing.sooner(node).sooner(status::available_at(observed))
}

fn is_starting(observed: &Observed) -> bool {
    let created = observed.machine.metadata.creation_timestamp.as_ref();
    created.is_some_and(|created| {
        let age = observed.now.duration_since(created.0);
        Duration::try_from(age).is_ok_and(|age| age < NODE_START)
    })
}
