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
mod fold;
mod naming;
mod observed;
mod status;
mod surplus;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use hangar_api::cluster::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet, MachineSetStatus};
use hangar_api::names;
use jiff::Timestamp;
use kube::core::{Selector, SelectorExt as _};

pub use clone::kind as clone_kind;
pub(crate) use desired::travels;
pub use naming::{NamingError, SLOT_ANNOTATION, machine_name};
pub(crate) use naming::{suffix, with_suffix};
pub use observed::{Clones, Observed, Template};

use crate::flow::{self, Never, Outcome, Plan, Planner, Read, StepId, Target, Wake, Write};
use crate::machine_deployment;
use crate::referred::{self, Claim, Claiming};

/// Templates that are missing are woken by their appearance; this only catches what a watch cannot show, and a watch that
/// is broken.
const MISSING_INTERVAL: Duration = Duration::from_secs(30);

/// What the object is called in step names.
const NAME: &str = "machine-set";

/// One call: writes to the management cluster, and nothing else.
pub type Step = flow::Step;
type SetPlan = Plan<Step, MachineSetStatus, Machine>;

impl Planner for Observed {
    type Wanted = Never;
    type Own = Never;
    type Tenant = Never;
    type Cloud = Never;
    type Status = MachineSetStatus;
    type Object = Machine;

    /// The objects are the Machines that exist, with what a change of the template changes in place.
    fn plan(&self) -> SetPlan {
        let mut plan = Plan::default();
        let cluster = self.cluster.iter().next();
        if let Some(until) = referred::paused(&self.set.metadata, cluster) {
            plan.status = status::paused(self, until);
            return plan;
        }
        if self.cluster.is_unknown() {
            // Whether it is paused cannot be told, so nothing is made and nothing deleted.
            plan.status = status::normal(self);
            plan.wake = wake(self);
            return plan;
        }
        let finalizers = self.set.metadata.finalizers.as_deref().unwrap_or_default();
        let has_finalizer = finalizers.iter().any(|finalizer| finalizer == names::MACHINE_SET_FINALIZER);
        if self.is_deleting() {
            if has_finalizer {
                delete_all(self, &mut plan);
            }
        } else if has_finalizer {
            if let (Some(cluster), set) = (cluster, &self.set)
                && let Some(claim) =
                    referred::claim_for_cluster(&set.metadata, cluster, &set.spec.cluster_name)
            {
                plan.steps.push(Write::itself(StepId::new("claim", NAME, ""), claim.fields()).into());
            }
            own_templates(self, &mut plan);
            adopt(self, &mut plan);
            scale(self, &mut plan);
            complete(self, &mut plan);
            plan.objects = desired::in_place(self);
        } else {
            let metadata = &self.set.metadata;
            plan.steps.push(Write::add_finalizer(metadata, names::MACHINE_SET_FINALIZER, NAME).into());
        }
        plan.status = status::normal(self);
        plan.wake = wake(self);
        plan
    }

    fn fold(&mut self, step: &Step, outcome: &Outcome) {
        self.refusals.extend(outcome.refusal(step));
        if let Some(uid) = outcome.made() {
            self.written(step.write(), uid);
        }
    }
}

fn delete_all(observed: &Observed, plan: &mut SetPlan) {
    if observed.machines.is_unknown() {
        return;
    }
    let members = observed.members();
    if members.is_empty() {
        let metadata = &observed.set.metadata;
        plan.steps.push(Write::remove_finalizer(metadata, names::MACHINE_SET_FINALIZER, NAME).into());
    }
    for machine in members {
        push_delete(machine, plan);
    }
}

fn push_delete(machine: &Machine, plan: &mut SetPlan) {
    if machine.metadata.deletion_timestamp.is_none() {
        let target = Target::of::<Machine>(&machine.metadata);
        plan.steps.push(Write::delete(StepId::new("delete", "machine", &target.name), target).into());
    }
}

fn adopt(observed: &Observed, plan: &mut SetPlan) {
    let Ok(selector) = Selector::try_from(observed.set.spec.selector.clone()) else { return };
    // A selector that selects everything would take every orphan of the cluster; admission fills empty ones in.
    if selector.selects_all() {
        return;
    }
    let owner = referred::owner::<MachineSet>(&observed.set.metadata, true);
    for machine in observed.machines.iter() {
        let metadata = &machine.metadata;
        let labels = metadata.labels.clone().unwrap_or_default();
        let is_orphan = referred::controller(metadata).is_none() && metadata.deletion_timestamp.is_none();
        if !is_orphan || !selector.matches(&labels) {
            continue;
        }
        if let Claiming::Needs(claim) = referred::claiming(
            metadata,
            &owner,
            &observed.set.spec.cluster_name,
            Some(referred::is_kind::<Cluster>),
        ) {
            let target = Target::of::<Machine>(metadata);
            let id = StepId::new("adopt", "machine", &target.name);
            plan.steps.push(Write::claim(id, target, &claim).into());
        }
    }
}

/// The Cluster becomes an owner, one of several where Clusters share a template.
fn own_templates(observed: &Observed, plan: &mut SetPlan) {
    let Some(cluster) = observed.cluster.iter().find(|cluster| cluster.metadata.deletion_timestamp.is_none())
    else {
        return;
    };
    let owner = referred::owner::<Cluster>(&cluster.metadata, false);
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
        let claim = Claim { owner_references, labels: BTreeMap::new() };
        let target = Target::referred(reference, metadata.uid.clone().unwrap_or_default());
        let id = StepId::new("own", "template", format!("{}/{}", target.kind, target.name));
        plan.steps.push(Write::claim(id, target, &claim).into());
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

fn scale(observed: &Observed, plan: &mut SetPlan) {
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
    let machine = desired::machine(&observed.set, &name, slot);
    plan.steps.push(Write::create(StepId::new("create", "machine", name), &machine, true).into());
}

/// Objects that Machines of this set refer to and that were never there.
fn complete(observed: &Observed, plan: &mut SetPlan) {
    for machine in observed.members() {
        let name = machine.metadata.name.as_deref().unwrap_or_default();
        if machine.metadata.deletion_timestamp.is_some() {
            continue;
        }
        let Some(clones) = observed.clones.get(name) else { continue };
        for object in clone::missing(observed, machine, clones) {
            let kind = object.types.as_ref().map(|types| types.kind.as_str()).unwrap_or_default();
            let id = StepId::new("create", "clone", format!("{kind}/{name}"));
            plan.steps.push(Write::create(id, &object, false).into());
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
