//! MachineSet: a number of Machines of one template, with the objects they refer to.
//!
//! A Machine is named from the set's uid and a slot (`naming`), so that a planner that does not see the latest Machine
//! yet names it again and collides with it instead of making one too many. The Machine is made first; its bootstrap
//! configuration and its server are cloned from their templates under the Machine's name and are the Machine's from
//! their first moment. Whatever is missing after a crash is found missing and made; a Machine that goes away takes
//! along what was made for it, so there is nothing to sweep.
//!
//! Machines that are being deleted still count: a replacement comes when the old one is gone.

mod clone;
mod desired;
mod naming;
mod status;
mod surplus;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use hangar_api::cluster::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet, MachineSetStatus};
use hangar_api::names;
use hangar_api::reference::ContractVersionedObjectReference;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{DynamicObject, Selector, SelectorExt as _};
use serde_json::Value;

use crate::flow::{Plan, Read, Step as FlowStep, StepId, Wake};
use crate::machine_deployment;
use crate::referred::{self, Claim, Claiming};

pub use clone::kind as clone_kind;
pub(crate) use desired::travels;
pub use naming::{NamingError, SLOT_ANNOTATION, machine_name};
pub(crate) use naming::{suffix, with_suffix};

/// Templates that are missing are woken by their appearance; this only catches what a watch cannot show, and a watch that
/// is broken.
const MISSING_INTERVAL: Duration = Duration::from_secs(30);

/// Everything that decides about a MachineSet.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The set.
    pub set: MachineSet,
    /// Its Cluster.
    pub cluster: Read<Cluster>,
    /// The MachineDeployment that manages it, if one does and is known.
    pub deployment: Option<MachineDeployment>,
    /// All Machines of the cluster in its namespace.
    pub machines: Read<Machine>,
    /// The template of bootstrap configurations, if the set names one.
    pub bootstrap_template: Option<Read<Template>>,
    /// The template of servers.
    pub infrastructure_template: Read<Template>,
    /// What exists under the names that the set's Machines refer to, by Machine.
    pub clones: BTreeMap<String, Clones>,
    /// Steps of this pass that were refused, in the words of who refused.
    pub refusals: BTreeMap<StepId, String>,
    /// The time.
    pub now: Timestamp,
}

/// A template of a kind that is not known here.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// The API version that it was read in, and that its clones are written in.
    pub api_version: String,
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// Everything but its metadata.
    pub data: Value,
}

/// Which of a Machine's objects exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clones {
    /// Its bootstrap configuration, if it refers to one.
    pub bootstrap: Option<Read<()>>,
    /// Its server.
    pub infrastructure: Read<()>,
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Our finalizer on the set.
    AddFinalizer,
    /// Owner reference and label on the object itself.
    ClaimItself(Claim),
    /// Owner reference on a Machine that matches and that nobody manages.
    Adopt {
        /// Its name.
        name: String,
        /// The one that was seen.
        uid: String,
        /// What is written.
        claim: Claim,
    },
    /// Owner reference on a template, so that it goes and moves with its Cluster.
    OwnTemplate {
        /// Which one.
        reference: ContractVersionedObjectReference,
        /// The one that was seen.
        uid: String,
        /// What is written.
        claim: Claim,
    },
    /// A new Machine.
    CreateMachine(Box<Machine>),
    /// An object that a Machine refers to.
    CreateClone(Box<DynamicObject>),
    /// Deletes a Machine.
    DeleteMachine {
        /// Its name.
        name: String,
        /// The one that was seen.
        uid: String,
    },
    /// Lets the set go.
    RemoveFinalizer,
}

impl FlowStep for Step {
    fn id(&self) -> StepId {
        let name = |name: &Option<String>| name.clone().unwrap_or_default();
        match self {
            Self::AddFinalizer => StepId::new("add", "finalizer", "machine-set"),
            Self::ClaimItself(_) => StepId::new("claim", "machine-set", ""),
            Self::Adopt { name, .. } => StepId::new("adopt", "machine", name),
            Self::OwnTemplate { reference, .. } => {
                StepId::new("own", "template", format!("{}/{}", reference.kind, reference.name))
            }
            Self::CreateMachine(machine) => StepId::new("create", "machine", name(&machine.metadata.name)),
            Self::CreateClone(object) => {
                let kind = object.types.as_ref().map(|types| types.kind.as_str()).unwrap_or_default();
                StepId::new("create", "clone", format!("{kind}/{}", name(&object.metadata.name)))
            }
            Self::DeleteMachine { name, .. } => StepId::new("delete", "machine", name),
            Self::RemoveFinalizer => StepId::new("remove", "finalizer", "machine-set"),
        }
    }
}

impl Observed {
    /// The Machines that the set manages, in the order of their names.
    pub fn members(&self) -> Vec<&Machine> {
        let uid = self.set.metadata.uid.as_deref().unwrap_or_default();
        self.machines.iter().filter(|machine| referred::is_controlled_by(&machine.metadata, uid)).collect()
    }

    fn replicas(&self) -> usize {
        usize::try_from(self.set.spec.replicas.unwrap_or(1)).unwrap_or_default()
    }

    fn is_deleting(&self) -> bool {
        self.set.metadata.deletion_timestamp.is_some()
    }
}

/// What to do about a MachineSet, and what to say. The objects are the Machines that exist, with what a change of the
/// template changes in place.
pub fn plan(observed: &Observed) -> Plan<Step, MachineSetStatus, Machine> {
    let mut plan = Plan::default();
    let cluster = observed.cluster.iter().next();
    if let Some(until) = referred::paused(&observed.set.metadata, cluster) {
        plan.status = status::paused(observed, until);
        return plan;
    }
    if observed.cluster.is_unknown() {
        // Whether it is paused cannot be told, so nothing is made and nothing deleted.
        plan.status = status::normal(observed);
        plan.wake = wake(observed);
        return plan;
    }
    let finalizers = observed.set.metadata.finalizers.as_deref().unwrap_or_default();
    let has_finalizer = finalizers.iter().any(|finalizer| finalizer == names::MACHINE_SET_FINALIZER);
    if observed.is_deleting() {
        if has_finalizer {
            delete_all(observed, &mut plan);
        }
    } else if has_finalizer {
        if let (Some(cluster), set) = (cluster, &observed.set)
            && let Some(claim) = referred::claim_for_cluster(&set.metadata, cluster, &set.spec.cluster_name)
        {
            plan.steps.push(Step::ClaimItself(claim));
        }
        own_templates(observed, &mut plan);
        adopt(observed, &mut plan);
        scale(observed, &mut plan);
        complete(observed, &mut plan);
        plan.objects = desired::in_place(observed);
    } else {
        plan.steps.push(Step::AddFinalizer);
    }
    plan.status = status::normal(observed);
    plan.wake = wake(observed);
    plan
}

fn delete_all(observed: &Observed, plan: &mut Plan<Step, MachineSetStatus, Machine>) {
    if observed.machines.is_unknown() {
        return;
    }
    let members = observed.members();
    if members.is_empty() {
        plan.steps.push(Step::RemoveFinalizer);
    }
    for machine in members {
        push_delete(machine, plan);
    }
}

fn push_delete(machine: &Machine, plan: &mut Plan<Step, MachineSetStatus, Machine>) {
    if machine.metadata.deletion_timestamp.is_none() {
        let name = machine.metadata.name.clone().unwrap_or_default();
        let uid = machine.metadata.uid.clone().unwrap_or_default();
        plan.steps.push(Step::DeleteMachine { name, uid });
    }
}

fn adopt(observed: &Observed, plan: &mut Plan<Step, MachineSetStatus, Machine>) {
    let Ok(selector) = Selector::try_from(observed.set.spec.selector.clone()) else { return };
    // A selector that selects everything would take every orphan of the cluster; admission fills empty ones in.
    if selector.selects_all() {
        return;
    }
    let owner = referred::owner("MachineSet", &observed.set.metadata, true);
    for machine in observed.machines.iter() {
        let metadata = &machine.metadata;
        let labels = metadata.labels.clone().unwrap_or_default();
        let is_orphan = referred::controller(metadata).is_none() && metadata.deletion_timestamp.is_none();
        if !is_orphan || !selector.matches(&labels) {
            continue;
        }
        if let Claiming::Needs(claim) =
            referred::claiming(metadata, &owner, &observed.set.spec.cluster_name, Some("Cluster"))
        {
            let name = metadata.name.clone().unwrap_or_default();
            let uid = metadata.uid.clone().unwrap_or_default();
            plan.steps.push(Step::Adopt { name, uid, claim });
        }
    }
}

/// The Cluster becomes an owner, one of several where Clusters share a template.
fn own_templates(observed: &Observed, plan: &mut Plan<Step, MachineSetStatus, Machine>) {
    let Some(cluster) = observed.cluster.iter().find(|cluster| cluster.metadata.deletion_timestamp.is_none())
    else {
        return;
    };
    let owner = referred::owner("Cluster", &cluster.metadata, false);
    let spec = &observed.set.spec.template.spec;
    let bootstrap = spec.bootstrap.config_ref.as_ref().zip(observed.bootstrap_template.as_ref());
    let templates =
        bootstrap.into_iter().chain([(&spec.infrastructure_ref, &observed.infrastructure_template)]);
    for (reference, template) in templates {
        let Read::One(Template { metadata, .. }) = template else { continue };
        let owners = metadata.owner_references.as_deref().unwrap_or_default();
        if metadata.deletion_timestamp.is_some() || owners.iter().any(|present| present.uid == owner.uid) {
            continue;
        }
        let owner_references = owners.iter().cloned().chain([owner.clone()]).collect();
        plan.steps.push(Step::OwnTemplate {
            reference: reference.clone(),
            uid: metadata.uid.clone().unwrap_or_default(),
            claim: Claim { owner_references, labels: BTreeMap::new() },
        });
    }
}

/// Why no Machine may be made now, for people; none when they may.
fn obstacle(observed: &Observed) -> Option<status::Obstacle> {
    let annotations = observed.set.metadata.annotations.iter().flatten();
    let is_disabled = annotations
        .into_iter()
        .any(|(name, value)| name == names::DISABLE_MACHINE_CREATE_ANNOTATION && value == "true");
    if is_disabled {
        return Some(status::Obstacle::Disabled);
    }
    match &observed.cluster {
        Read::Unknown(unknown) => return Some(status::Obstacle::Unknown(unknown.clone())),
        Read::One(cluster) if cluster.metadata.deletion_timestamp.is_none() => {}
        Read::One(_) => return Some(status::Obstacle::ClusterDeleting),
        Read::Absent | Read::Many(_) => return Some(status::Obstacle::NoCluster),
    }
    let spec = &observed.set.spec.template.spec;
    let templates = [
        (spec.bootstrap.config_ref.as_ref(), observed.bootstrap_template.as_ref()),
        (Some(&spec.infrastructure_ref), Some(&observed.infrastructure_template)),
    ];
    for (reference, template) in templates {
        let (Some(reference), Some(template)) = (reference, template) else { continue };
        let what = format!("{} {}", reference.kind, reference.name);
        if clone::kind(&reference.kind).is_none() {
            return Some(status::Obstacle::NoTemplateKind(what));
        }
        match template {
            Read::One(_) => {}
            Read::Unknown(unknown) => return Some(status::Obstacle::Unknown(unknown.clone())),
            Read::Absent | Read::Many(_) => return Some(status::Obstacle::NoTemplate(what)),
        }
    }
    None
}

fn scale(observed: &Observed, plan: &mut Plan<Step, MachineSetStatus, Machine>) {
    if observed.machines.is_unknown() {
        return;
    }
    let (members, wanted) = (observed.members(), observed.replicas());
    if members.len() > wanted {
        let surplus = members.len() - wanted;
        let order = observed.set.spec.deletion.as_ref().and_then(|deletion| deletion.order);
        for machine in surplus::choose(members, surplus, order.unwrap_or_default(), observed.now) {
            push_delete(machine, plan);
        }
        return;
    }
    if members.len() == wanted || obstacle(observed).is_some() {
        return;
    }
    let names = observed.machines.iter().filter_map(|machine| machine.metadata.name.clone()).collect();
    // One at a time: a slot whose answer was lost is tried again before the next one is used.
    let Ok(Some((slot, name))) = naming::free(&observed.set, naming::next_slot(&members), &names) else {
        return;
    };
    plan.report
        .decide(format!("Machine {name}"), format!("slot {slot}, {} of {wanted} exist", members.len()));
    plan.steps.push(Step::CreateMachine(Box::new(desired::machine(&observed.set, &name, slot))));
}

/// Objects that Machines of this set refer to and that were never there.
fn complete(observed: &Observed, plan: &mut Plan<Step, MachineSetStatus, Machine>) {
    for machine in observed.members() {
        let name = machine.metadata.name.as_deref().unwrap_or_default();
        if machine.metadata.deletion_timestamp.is_some() {
            continue;
        }
        let Some(clones) = observed.clones.get(name) else { continue };
        for object in clone::missing(observed, machine, clones) {
            plan.steps.push(Step::CreateClone(Box::new(object)));
        }
    }
}

fn wake(observed: &Observed) -> Wake {
    let is_waiting = observed.members().len() < observed.replicas() && obstacle(observed).is_some();
    let is_unread = observed.cluster.is_unknown() || observed.machines.is_unknown();
    if is_waiting || is_unread { Wake::after(observed.now, MISSING_INTERVAL) } else { Wake::OnChange }
}

/// Whether a Machine is what its set, and the deployment above it, want now.
pub fn is_up_to_date(
    machine: &Machine,
    set: &MachineSet,
    deployment: Option<&MachineDeployment>,
    now: Timestamp,
) -> bool {
    let template = &set.spec.template.spec;
    let is_version = template.version.is_none() || template.version == machine.spec.version;
    let is_domain =
        template.failure_domain.is_none() || template.failure_domain == machine.spec.failure_domain;
    let is_current = deployment.is_none_or(|deployment| machine_deployment::is_current(deployment, set, now));
    is_version && is_domain && is_current
}
